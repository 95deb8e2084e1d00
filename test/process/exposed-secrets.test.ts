import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { prepareSite, replaceFile, type Serving } from './serve.ts'

const OPEN = 'a file with a secret is open to other users'

const warnings = ({ logged }: Serving): unknown[] => logged(OPEN).map(({ key, reason }) => [key, reason])

it('the log at start and `check` warn of each file with a secret that other users can read or write', async () => {
  const { certFile, keyFile } = await makeCertificate()
  const site = await prepareSite({ transport: 'tls' })
  const file = (name: string, mode: number): string => {
    const path = join(site.directory, name)
    writeFileSync(path, 'secret\n')
    chmodSync(path, mode)
    return path
  }
  const service = (mode: number, name: string) => ({
    url: site.device.url,
    headers: { 'X-Key': { file: file(`${name}-key`, mode) } },
    auth: { kind: 'basic', user: 'admin', password: { file: file(`${name}-password`, mode) } },
  })
  chmodSync(keyFile, 0o644)
  chmodSync(site.passwordFile, 0o666)
  site.configure({
    listen: { tls: { cert: certFile, key: keyFile } },
    upstream: {
      ...service(0o640, 'usual'),
      routes: { '/a/': service(0o660, 'group'), '/b/': service(0o602, 'others') },
    },
  })
  const expected = [
    ['password.file', 'others can read it, others can write it, its group can write it'],
    ['listen.tls.key', 'others can read it'],
    ['upstream.routes./a/.headers.X-Key.file', 'its group can write it'],
    ['upstream.routes./a/.auth.password.file', 'its group can write it'],
    ['upstream.routes./b/.headers.X-Key.file', 'others can write it'],
    ['upstream.routes./b/.auth.password.file', 'others can write it'],
  ]
  const sidecar = await site.serveHere()
  expect(warnings(sidecar)).toEqual(expected)
  expect(sidecar.logged(OPEN)[0]).toMatchObject({
    level: 40,
    file: site.passwordFile,
    remedy: `chmod 0640 ${site.passwordFile}`,
  })

  const { stdout } = await site.postern('check')
  expect(
    [...stdout.matchAll(/^WARNING (\S+): \S+: ((?:others|its group).*)$/gm)].map(([, ...found]) => found),
  ).toEqual(expected)
  expect(`${stdout}${sidecar.lines.join('\n')}`).not.toMatch(/secret\b(?! is open)/)
})

it('a file whose mode is opened later causes one warning, at its next change or at a reload', async () => {
  const site = await prepareSite()
  const key = join(site.directory, 'key')
  writeFileSync(key, 'one\n', { mode: 0o600 })
  site.configure({ upstream: { headers: { 'X-Key': { file: key } } } })
  const sidecar = await site.serveHere()
  expect(warnings(sidecar)).toEqual([])

  chmodSync(site.passwordFile, 0o644)
  writeFileSync(site.passwordFile, 'another\n')
  await sidecar.waitForLog(OPEN, (line) => line.key === 'password.file')

  chmodSync(key, 0o666)
  site.configure({ limits: { api: { requests: 7 } } })
  await sidecar.waitForLog(OPEN, (line) => line.key === 'upstream.headers.X-Key.file')
  site.configure({ limits: { api: { requests: 8 } } })
  await expect.poll(() => sidecar.logged('configuration reloaded').length).toBe(2)
  expect(warnings(sidecar)).toHaveLength(2)

  replaceFile(site.passwordFile, 'a third\n') // 0600
  await expect.poll(() => sidecar.logged('the password has changed').length).toBe(2)
  await sidecar.stop()
  expect(warnings(sidecar)).toHaveLength(2)
})
