import { expect, it } from 'vitest'
import { runCheck } from '../commands/run-check.ts'
import { load, MINIMAL } from './sources.ts'

const fileWith = (path: string): string => `${MINIMAL}oauth: {revocation_path: "${path}"}\n`

it.each(['/oauth/revoke', '/oauth', '/oauth/login/x', '/oauth/logouts', '/revoke/'])(
  'H205 oauth.revocation_path may be any other path: %s',
  (path) => expect(load({ file: fileWith(path) }).oauth.revocationPath).toBe(path),
)

it('H205 postern check refuses it, and serves nothing', async () => {
  const checked = runCheck('http://127.0.0.1:1', ['oauth.revocation_path=/oauth/login'])
  await expect(checked).rejects.toThrow(/oauth\.revocation_path: must be another path/)
})
