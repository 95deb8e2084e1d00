import { expect, it } from 'vitest'
import { runCheck } from '../commands/run-check.ts'
import { load, MINIMAL } from './sources.ts'

const fileWith = (path: string): string => `${MINIMAL}oauth: {revocation_path: "${path}"}\n`

it.each(['/oauth/revoke', '/oauth', '/oauth/login/x', '/oauth/logouts', '/revoke/'])(
  'H205 oauth.revocation_path may be any other path: %s',
  (path) => expect(load({ file: fileWith(path) }).oauth.revocationPath).toBe(path),
)

it('H205 postern check refuses it, and serves nothing', async () => {
  const { code, stderr } = await runCheck('http://127.0.0.1:1', ['oauth.revocation_path=/oauth/login'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('oauth.revocation_path: must be another path')])
})
