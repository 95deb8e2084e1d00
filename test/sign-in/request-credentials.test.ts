import { describe, expect, it } from 'vitest'
import { withCredentials } from '../../src/forward/request-fields.ts'
import { mergeCookies } from '../../src/http/browsers.ts'

describe('The cookies of client and session', () => {
  it('are merged, with the session first', () => {
    expect(mergeCookies(['lang=en; theme=dark'], 'SID=1')).toBe('SID=1; lang=en; theme=dark')
    expect(mergeCookies(['a=1', 'b=2'], 'SID=1; X=2')).toBe('SID=1; X=2; a=1; b=2')
    expect(mergeCookies([], 'SID=1')).toBe('SID=1')
    expect(mergeCookies([' ; '], 'SID=1')).toBe('SID=1')
  })

  it.each([
    ['SID=evil'],
    ['a=1; SID=evil'],
    ['a=1;SID =evil'],
    ['SID'],
    ['SID=evil; SID=worse'],
    ['\xa0SID\x0b=evil'],
  ])('never contain a session of the client: %s', (client) => {
    expect(mergeCookies([client], 'SID=1')).not.toMatch(/SID ?=?(?:evil|worse)|SID$/)
    expect(mergeCookies([client], 'SID=1')).toMatch(/^SID=1/)
  })

  it.each(['session.id', 'session id', 'session[id', 'session_id'])(
    'never contain a session of the client under a name that PHP takes for it: %s',
    (name) => expect(mergeCookies([`a.b=1; ${name}=evil`], 'session_id=1')).toBe('session_id=1; a.b=1'),
  )

  it('have case-sensitive names and unchanged values', () => {
    expect(mergeCookies(['sid=2; a="x, y"=z'], 'SID=1')).toBe('SID=1; sid=2; a="x, y"=z')
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
