import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { PAGE_PASSWORD, pageCookie, pagePasswordFile } from '../support/passwords.ts'
import { startSidecar } from '../support/sidecar.ts'

it('H152 a sidecar serves its page after a login, tells it what happens, and ends its stream when it stops', async () => {
  const sidecar = await startSidecar({ config: { admin: { password_file: pagePasswordFile() } } })
  const grant = await sidecar.token()
  expect((await fetch(`${sidecar.adminUrl}/`)).status).toBe(401)
  const Cookie = await pageCookie(sidecar.adminUrl)
  expect((await fetch(`${sidecar.adminUrl}/`, { headers: { Cookie } })).status).toBe(200)

  const [response] = (await once(
    get(`${sidecar.adminUrl}/page/events`, { headers: { Cookie } }),
    'response',
  )) as [IncomingMessage]
  let received = ''
  response.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk
  })
  await expect.poll(() => received).toMatch(/event: start\ndata: .*"condition":\{.*"ready":true/)
  await sidecar.clock.advance(2_000)
  await expect.poll(() => received).toMatch(/event: grants\ndata: \{"changed":\[\{"id"/)
  await expect.poll(() => received).toContain('event: point')
  const revoked = await fetch(`${sidecar.adminUrl}/page/revoke`, {
    method: 'POST',
    headers: { Cookie, Origin: sidecar.adminUrl, 'Content-Type': 'application/json' },
    body: '{"all":true}',
  })
  expect(await revoked.json()).toEqual({ revoked: 1 })
  expect((await sidecar.request({ token: grant })).status).toBe(401)
  await sidecar.clock.advance(2_000)
  await expect.poll(() => received).toMatch(/event: timeline\ndata: .*live page: tokens revoked/)

  const ended = new Promise((resolve) => response.once('close', resolve).once('error', () => {}))
  await Promise.all([ended, sidecar.stop(5_000)])
  expect(`${received}${sidecar.logLines().join('')}`).not.toContain(PAGE_PASSWORD)
})

it('H152 an unusable admin.password_file is named by the start, by check, and by the log', async () => {
  const site = await prepareSite()
  site.configure({ admin: { address: '0.0.0.0:0' } })
  expect((await site.postern('check')).stdout).toMatch(
    /^ok {6}live page: off: .*admin\.password_file is not set$/m,
  )

  const file = join(site.directory, 'page-password')
  site.configure({ admin: { password_file: file } })
  const failed = await site.postern('check')
  expect([failed.code, failed.stdout]).toEqual([
    2,
    expect.stringMatching(/^FAILED {2}admin\.password_file: .*page-password: there is no such file$/m),
  ])
  await expect(startSidecar({ config: { admin: { password_file: file } } })).rejects.toThrow(
    `admin.password_file: ${file}: there is no such file; postern hash-password > ${file} writes a usable one`,
  )
  writeFileSync(file, 'secret\n', { mode: 0o644 })
  const open = await site.postern('check')
  expect(open.stdout).toMatch(/^ok {6}admin\.password_file: readable$/m)
  expect(open.stdout).toMatch(/^WARNING admin\.password_file: .*others can read it$/m)
})
