import { expect, it } from 'vitest'
import { runCheck } from '../commands/run-check.ts'
import { load, MINIMAL, problemsIn } from './sources.ts'

const fileWith = (path: string): string => `${MINIMAL}oauth: {revocation_path: "${path}"}\n`

it.each([
  ['/oauth/token', '/oauth/token'],
  ['/oauth/login', '/oauth/login'],
  ['/oauth/logout', '/oauth/logout'],
  ['/oauth/', '/oauth/token'],
])('H205 oauth.revocation_path must not be or cover a path of Postern itself: %s', (path, own) => {
  expect(problemsIn({ file: fileWith(path) })).toEqual([
    `postern.yaml:3: oauth.revocation_path: must be another path, such as /oauth/revoke: ${own} is an endpoint of Postern itself (given: "${path}")`,
  ])
})

it.each(['/oauth/./login', '/oauth//login', '/x/../oauth/token', 'oauth/revoke', '/', '/oauth/revoke?x'])(
  'H205 oauth.revocation_path must be a plain path: %s',
  (path) => {
    expect(problemsIn({ file: fileWith(path) })).toEqual([
      expect.stringContaining('oauth.revocation_path: must be off, or a path such as /oauth/revoke'),
    ])
  },
)

it.each(['/oauth/revoke', '/oauth', '/oauth/login/x', '/oauth/logouts', '/revoke/'])(
  'H205 oauth.revocation_path may be any other path: %s',
  (path) => expect(load({ file: fileWith(path) }).oauth.revocationPath).toBe(path),
)

it('H205 postern check refuses it, and serves nothing', async () => {
  const { code, stderr } = await runCheck('http://127.0.0.1:1', ['oauth.revocation_path=/oauth/login'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('oauth.revocation_path: must be another path')])
})
