import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { withCredentials, withoutClientSession } from '../../src/forward/request-fields.ts'
import { mergeCookies } from '../../src/http/browsers.ts'
import { sessionNames } from '../../src/sign-in/session-cookies.ts'
import { needs } from '../support/tools.ts'

/** Parts of `Cookie` fields. */
const PARTS = [
  'sid=evil',
  ' sid=evil',
  'sid',
  '=',
  ' ',
  ',',
  ';',
  '"',
  '$Path',
  'secure',
  'httponly',
  'a',
  'a=b',
  'path=/',
]

/** Prints those of the `Cookie` fields in which `sid` is another one than Postern's. */
const READ_SESSIONS = `
import json, sys
from http.cookies import CookieError, SimpleCookie
for cookies in json.load(sys.stdin):
    try:
        sid = SimpleCookie(cookies).get('sid')
    except CookieError:
        continue
    if sid is not None and sid.value != 'own':
        print(cookies)
`

describe('The cookies of client and session', () => {
  it('are merged, with the session first', () => {
    expect(mergeCookies(['lang=en; theme=dark'], 'SID=1')).toBe('SID=1; lang=en; theme=dark')
    expect(mergeCookies(['a=1', 'b=2'], 'SID=1; X=2')).toBe('SID=1; X=2; a=1; b=2')
    expect(mergeCookies([], 'SID=1')).toBe('SID=1')
    expect(mergeCookies([' ; '], 'SID=1')).toBe('SID=1')
  })

  it.each([
    ['SID=evil'],
    ['sid=evil'],
    ['a=1; SID=evil; b=2'],
    ['a=1', 'SID=evil', 'b=2'],
    ['a=1;SID =evil'],
    ['a=1; \tSID\t = evil'],
    ['SID'],
    ['SID=evil; SID=worse'],
    ['\xa0SID\x0b=evil'],
    ['%53%49d=evil'],
    ['"SID"=evil'],
    ['SID="evil"'],
    ['a=1, SID=evil'],
    ['a=1 SID = evil'],
    ['a="; SID=evil; b="'],
    ['secure SID=evil'],
    ['$Path\tSID = evil'],
    ['$Version=1; SID=evil; $Path=/'],
    ['a, SID=evil'],
  ])('H239 never contain a session of the client, be there one of Postern or not: %s %s %s', (...client) => {
    expect(mergeCookies(client, 'SID=1')).not.toMatch(/evil|worse|SID$/)
    expect(mergeCookies(client, 'SID=1')).toMatch(/^SID=1/)
    const fields = client.flatMap((cookies) => ['Cookie', cookies])
    expect(withoutClientSession(fields, sessionNames(['SID'])).join()).not.toMatch(/evil|worse|SID$/)
  })

  it.each(['session.id', 'session id', 'session[id', 'session_id', 'session+id', 'session_id%00'])(
    'never contain a session of the client under a name that PHP takes for it: %s',
    (name) => expect(mergeCookies([`a.b=1; ${name}=evil`], 'session_id=1')).toBe('session_id=1; a.b=1'),
  )

  it('H239 name no session of the client for Python, which reads attributes in a request, too', () => {
    needs('python3')
    const part = fc.constantFrom(...PARTS)
    const pairs = fc.sample(fc.array(part, { minLength: 2, maxLength: 6 }), { numRuns: 5_000, seed: 1 })
    const merged = pairs.map((parts) => mergeCookies([parts.join('')], 'sid=own'))
    const input = JSON.stringify(merged.filter((cookies) => cookies.includes('evil')))
    expect(execFileSync('python3', ['-c', READ_SESSIONS], { input, encoding: 'utf8' })).toBe('')
    const unfiltered = JSON.stringify(['sid=own; secure sid=evil'])
    expect(execFileSync('python3', ['-c', READ_SESSIONS], { input: unfiltered, encoding: 'utf8' })).not.toBe(
      '',
    )
  })

  it('have unchanged values', () => {
    expect(mergeCookies(['side=2; a="x, y"=z'], 'SID=1')).toBe('SID=1; side=2; a="x, y"=z')
    expect(mergeCookies(['\ta=voil\xc3\xa0\t; b=\xa0'], 'SID=1')).toBe('SID=1; a=voil\xc3\xa0; b=\xa0')
  })
})

describe('Credentials', () => {
  it('replace an existing field and keep the others in order', () => {
    expect(
      withCredentials(['Host', 'h', 'authorization', 'x', 'A', '1'], ['Authorization', 'Basic y']),
    ).toEqual(['Host', 'h', 'A', '1', 'Authorization', 'Basic y'])
    expect(withCredentials(['Host', 'h', 'cookie', 'a=1', 'B', '2'], ['Cookie', 'SID=1'])).toEqual([
      'Host',
      'h',
      'B',
      '2',
      'Cookie',
      'SID=1; a=1',
    ])
    expect(withCredentials(['Cookie', 'a=1'], [])).toEqual(['Cookie', 'a=1'])
  })

  it('replace every field that a CGI program takes for the same', () => {
    const own = ['X_Session', 'own']
    for (const name of ['X_Session', 'x-session', 'X.Session', 'x~SESSION'])
      expect(withCredentials([name, 'client'], own)).toEqual(own)
  })
})

describe('H239 A request without the session of its client', () => {
  const names = sessionNames(['PHP_SESS'], ['X-Auth-Token'])

  it.each([
    'PHP_SESS',
    'php_sess',
    'PHP.SESS',
    'PHP SESS',
    'php[sess',
    'PHP%5fSESS',
    '"PHP_SESS"',
    'PHP_SESS[]',
    'php_sess[a][b]',
    'PHP_SESS%5B%5D',
    'PHP+SESS',
    '+PHP_SESS',
    'PHP_SESS%00.a',
  ])('has no cookie that a program may read as that of the session: %s', (name) => {
    const fields = ['Host', 'h', 'Cookie', `a=1; ${name}=x; b=2`, 'X-Auth-Token', 'x', 'x_auth_token', 'x']
    expect(withoutClientSession(fields, names)).toEqual(['Host', 'h', 'Cookie', 'a=1; b=2'])
  })

  it('has no field that a program may read as that of the session, whatever stands between its words', () => {
    const dotted = sessionNames([], ['X.Auth.Token'])
    for (const name of ['X.Auth.Token', 'x-auth-token', 'X_Auth_Token'])
      expect(withoutClientSession(['Host', 'h', name, 'x'], dotted)).toEqual(['Host', 'h'])
  })

  it('has all other fields as they came', () => {
    const fields = ['cookie', 'a=1;b="x; y",  c=PHP_SESS', 'X-Auth', '1', 'Cookie', 'PHP_SESSION=2']
    expect(withoutClientSession(fields, names)).toEqual(fields)
  })
})
