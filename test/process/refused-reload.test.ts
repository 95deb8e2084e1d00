import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { StatusAnswer } from '../../src/admin/control-socket.ts'
import { control } from '../../src/commands/control.ts'
import { makeCertificate } from '../support/certificate.ts'
import { prepareSite } from './serve.ts'

const REFUSED = 'configuration not reloaded: the previous one stays in effect'

it('a refused reload is an alarm of status with file and line, until one is applied, and the log says the same', async () => {
  const { certFile, keyFile } = await makeCertificate('box')
  const broken = join(await makeCertificate('other').then(({ certFile }) => certFile), '..', 'broken.pem')
  writeFileSync(broken, 'no certificate\n')
  const site = await prepareSite({ transport: 'tls' })
  site.configure({ listen: { tls: { cert: certFile, key: keyFile } } })
  const sidecar = await site.serveHere()
  const alarms = async (): Promise<readonly string[]> => {
    const found = await control<StatusAnswer>(site.stateDir, { method: 'GET', path: '/status' })
    return found.alarms.flatMap(({ name, what }) => (name === 'PosternReloadFailed' ? [what] : []))
  }
  expect(await alarms()).toEqual([])

  // A file that the configuration names is located like a value of it.
  for (const [change, problem] of [
    [{ listen: { tls: { cert: broken, key: keyFile } } }, /postern\.yaml:\d+: listen\.tls: .*broken\.pem/],
    [{ realm: '' }, /postern\.yaml:\d+: realm: /],
  ] as const) {
    const before = sidecar.logged(REFUSED).length
    site.configure(change)
    await sidecar.waitForLog(REFUSED, () => sidecar.logged(REFUSED).length > before)
    const [told = ''] = await alarms()
    expect(told).toMatch(/^A new configuration or certificate was refused, and the former one is in use: /)
    expect(told).toMatch(problem)
    expect(String(sidecar.logged(REFUSED).at(-1)?.problems)).toMatch(problem)
  }

  site.configure({ realm: 'device', listen: { tls: { cert: certFile, key: keyFile } } })
  await sidecar.waitForLog('configuration reloaded')
  expect(await alarms()).toEqual([])
})
