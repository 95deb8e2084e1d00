import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reportFailure } from '../../src/commands/command.ts'
import { healthyCommand } from '../../src/commands/healthy.ts'
import { prepareSite } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

async function healthy(address: string, { ready = false } = {}): Promise<[number, string]> {
  const lines: string[] = []
  const out = { write: (text: string) => lines.push(text) }
  const set = ['upstream.url=http://127.0.0.1:9', 'password.file=/dev/null', `admin.address=${address}`]
  const code = await healthyCommand({ set, ready }, { stdout: out, stderr: out, env: {} }).catch(
    (error: unknown) => reportFailure('healthy', error, { stderr: out, env: {} }),
  )
  return [code, lines.join('')]
}

async function admin(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closeLater(() => {
    server.closeAllConnections()
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('H121 healthy succeeds while the sidecar responds, and fails when it is gone', async () => {
  const site = await prepareSite()
  const sidecar = await site.serveHere()
  const address = new URL(sidecar.adminUrl).host
  expect(await healthy(address)).toEqual([0, `ok: /healthz at ${address}\n`])
  expect(await healthy(address, { ready: true })).toEqual([0, `ok: /readyz at ${address}\n`])
  const port = address.split(':')[1]
  expect(await healthy(`0.0.0.0:${port}`)).toEqual([0, `ok: /healthz at 0.0.0.0:${port}\n`])
  await sidecar.stop()
  const [code, line] = await healthy(address)
  expect([code, line]).toEqual([
    1,
    expect.stringMatching(/^postern healthy: \/healthz at \S+: no sidecar is running there\n$/),
  ])
})

test('H121 healthy asks a Unix socket, through the configuration file of the sidecar', async () => {
  const socket = join(temporaryDirectory(), 'admin.sock')
  const site = await prepareSite({ config: { admin: { address: `unix:${socket}` } } })
  await site.serveHere()
  const asked = await site.postern('healthy')
  expect(asked).toMatchObject({ code: 0, stdout: `ok: /healthz at unix:${socket}\n`, stderr: '' })
})

test('H121 healthy says that admin.allow shuts out this machine', async () => {
  const site = await prepareSite({ config: { admin: { address: '127.0.0.1:0', allow: ['192.0.2.1'] } } })
  const { adminUrl: url } = await site.serveHere()
  const address = new URL(String(url)).host
  const { code, stderr } = await site.postern('healthy', '--set', `admin.address=${address}`)
  expect([code, stderr]).toEqual([
    1,
    `postern healthy: /healthz at ${address}: the connection was closed without an answer; admin.allow must admit the address of this machine\n`,
  ])
})

test('H121 a sidecar that is not ready is healthy, and --ready says why it is not ready', async () => {
  const address = await admin((req, res) => {
    res.writeHead(req.url === '/healthz' ? 200 : 503).end('{"ready":false,"reasons":["no password"]}\n')
  })
  expect(await healthy(address)).toEqual([0, `ok: /healthz at ${address}\n`])
  expect(await healthy(address, { ready: true })).toEqual([
    1,
    `postern healthy: /readyz at ${address} responded 503: {"ready":false,"reasons":["no password"]}\n`,
  ])
})

test('H121 a sidecar that accepts and does not respond is not healthy', async () => {
  const address = await admin(() => {})
  expect(await healthy(address)).toEqual([
    1,
    `postern healthy: /healthz at ${address}: no response within 3 s\n`,
  ])
})

test.each([
  ['off', /^postern healthy: admin.address: is off, so .*\n$/],
  ['127.0.0.1:0', /^postern healthy: admin.address: has port 0, .*\n$/],
])('without an address to ask, healthy fails as a configuration does: %s', async (address, line) => {
  expect(await healthy(address)).toEqual([2, expect.stringMatching(line)])
})
