import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { startSidecar } from '../support/sidecar.ts'

it('C8 a restored backup with a token that was revoked since is a warning in the log and an alarm', async () => {
  const dir = join(temporaryDirectory(), 'state')
  const backup = join(temporaryDirectory(), 'backup')
  const config = { state_dir: dir, tokens: { store: 'file' }, oauth: { revocation_path: '/oauth/revoke' } }
  const first = await startSidecar({ config })
  const token = await first.token()
  await first.stop()
  cpSync(dir, backup, { recursive: true })

  const second = await startSidecar({ config })
  expect(second.logLines().filter((line) => line.includes('it is a copy'))).toEqual([])
  await second.request({
    path: '/oauth/revoke',
    fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    body: `token=${token}`,
  })
  expect((await second.request({ token })).status).toBe(401)
  await second.stop()

  rmSync(dir, { recursive: true })
  cpSync(backup, dir, { recursive: true })
  const third = await startSidecar({ config })
  expect((await third.request({ token })).status).toBe(200)
  const lines = third.logLines().filter((line) => line.includes('it is a copy'))
  expect(lines).toEqual([expect.stringContaining('postern revoke --all')])
  expect(third.overview.condition().alarms).toMatchObject([{ name: 'TokenFileCopied', level: 'warning' }])
})
