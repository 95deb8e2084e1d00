import { describe, expect, it } from 'vitest'
import { cookiesSetBy, isExpired, matchesPath } from '../../src/sign-in/session-cookies.ts'
import { stillClock } from '../support/clock.ts'
import { growth, LINEAR } from '../support/lived-time.ts'

const clock = stillClock()
const now = clock.monotonic()
const set = (line: string, target = '/cgi/login?a=/b', ...more: string[]) =>
  cookiesSetBy(['Set-Cookie', line, ...more], target, clock)[0]

describe('A session cookie', () => {
  it('has a name, a value and the path of its login', () => {
    expect(set('SID=a=b')).toEqual({ name: 'SID', value: 'a=b', path: '/cgi', until: undefined })
    expect(set('SID="x y"; Path=/')).toMatchObject({ value: '"x y"', path: '/' })
    expect(set('SID=x; path=relative', '/login')?.path).toBe('/')
    expect(set('SID=')).toMatchObject({ value: '' })
  })

  it('is trimmed of spaces and tabs, but not of 0xA0, which may be part of a UTF-8 character', () => {
    expect(set('\tSID\t=\tx\t;\tPath\t=\t/p\t')).toMatchObject({ name: 'SID', value: 'x', path: '/p' })
    expect(set('SID=\xc3\xa0; Path=/\xc3\xa0')).toMatchObject({ value: '\xc3\xa0', path: '/\xc3\xa0' })
  })

  it('is parsed in linear time', () => {
    const grown = growth(8_000, (size) => {
      const blanks = ' '.repeat(size)
      for (const line of [`SID=x; a${blanks}b`, `SID=x; a=${blanks}b${blanks}c`, `SID=a${blanks}b`]) {
        expect(set(line)?.name).toBe('SID')
      }
    })
    expect(grown).toBeLessThan(LINEAR)
  })

  it('counts as it was set last, for each path', () => {
    const lines = ['SID=a; Path=/', 'SID=b; Path=/x', 'SID=c; Path=/']
    const fields = lines.flatMap((line) => ['Set-Cookie', line])
    expect(cookiesSetBy(fields, '/', clock).map(({ value }) => value)).toEqual(['c', 'b'])
  })

  it.each(['SID', '=x', 'S D=x', 'SID=a\rb', 'SID=a\x00b', ''])(
    'that is malformed is ignored: %j',
    (line) => {
      expect(set(line)).toBeUndefined()
    },
  )

  it('expires by Max-Age, or else by Expires', () => {
    const date = new Date(clock.wall() + 60_000).toUTCString()
    expect(set('SID=x; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT')?.until).toBe(now + 10_000)
    expect(set(`SID=x; expires=${date}`)?.until).toBeGreaterThan(now + 58_000)
    expect(set('SID=x; Max-Age=soon')?.until).toBeUndefined()
  })

  it("expires by the device's clock (Date), which may never have been set", () => {
    const cookie = set(
      'SID=x; Expires=Thu, 01 Jan 1970 01:10:00 GMT',
      '/',
      'Date',
      'Thu, 01 Jan 1970 01:00:00 GMT',
    )
    expect(cookie?.until).toBe(now + 600_000)
  })

  it('is over if its expiry has passed', () => {
    for (const line of [
      'SID=x; Max-Age=0',
      'SID=x; Max-Age=-1',
      'SID=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT',
    ]) {
      const cookie = set(line) ?? expect.fail('left out')
      expect(isExpired(cookie, now)).toBe(true)
    }
  })

  it.each([
    ['/', '/x', true],
    ['/cgi', '/cgi', true],
    ['/cgi', '/cgi?x', true],
    ['/cgi', '/cgi/x', true],
    ['/cgi/', '/cgi/x', true],
    ['/cgi', '/cgix', false],
    ['/cgi', '/x?/cgi', false],
  ])('with the path %s is sent to %s: %s', (path, target, sent) => {
    expect(matchesPath({ name: 'a', value: 'b', path, until: undefined }, target)).toBe(sent)
  })
})
