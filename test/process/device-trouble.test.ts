import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { prepareSite } from './serve.ts'

const MESSAGE = 'cannot connect to the device: a fault in its TLS or in upstream.url'

it('H109 after three failures the log explains why the certificate of the device is refused, once', async () => {
  const device = await startDevice(undefined, { tls: await makeCertificate() })
  const site = await prepareSite({ device })
  const sidecar = await site.serveHere()
  const { access_token: token } = await sidecar.grant()
  for (let i = 0; i < 3; i += 1) expect(await sidecar.use(token)).toBe(500)
  expect(await sidecar.waitForLog(MESSAGE)).toMatchObject({
    level: 50,
    reason: expect.stringContaining('is self-signed; its SHA-256 fingerprint is '),
    remedy: expect.stringContaining('then write under upstream: tls: {pin: sha256/'),
  })
  expect(await sidecar.use(token)).toBe(500)
  await sidecar.stop()
  expect(sidecar.logged(MESSAGE)).toHaveLength(1)
})

it('H109 the log explains that the device speaks TLS where the configuration says http', async () => {
  const device = await startDevice(undefined, { tls: await makeCertificate() })
  const site = await prepareSite({ device: { url: device.url.replace('https:', 'http:') } })
  const sidecar = await site.serveHere()
  const { access_token: token } = await sidecar.grant()
  for (let i = 0; i < 3; i += 1) expect(await sidecar.use(token)).toBe(500)
  expect(await sidecar.waitForLog(MESSAGE)).toMatchObject({ remedy: `set upstream.url to ${device.url}` })
})

it('a device that has answered over cleartext is never sent the first bytes of TLS', async () => {
  const device = await startDevice()
  const site = await prepareSite({ device })
  const sidecar = await site.serveHere()
  const { access_token: token } = await sidecar.grant()
  expect(await sidecar.use(token)).toBe(200)
  device.handle((_, response) => void response.destroy())
  for (let i = 0; i < 3; i += 1) expect(await sidecar.use(token)).toBe(500)
  await sidecar.stop()
  const clientHello = Buffer.from([0x16, 0x03, 0x01])
  expect(device.bytes.includes(clientHello)).toBe(false)
  expect(sidecar.logged(MESSAGE)).toEqual([])
})

it.each([
  [
    'broke the device',
    { wall: { places: 6 } },
    'The device went away when more than 6 requests at once came to it',
    'more than 6 broke the device, and may come again after postern retry',
  ],
  [
    'found no room at it',
    { guess: { places: 6, wait: 3_600_000 } },
    'The device has no room for more than 6 requests at once',
    'learned; no room for more than 6; one more is tried in ',
  ],
])(
  'H267 after a restart, alarms and status name how many requests %s, not how many are sent at first',
  async (_what, ceiling, alarm, line) => {
    const site = await prepareSite()
    const until = Date.now() + 86_400_000
    const timed = Object.entries(ceiling).map(([part, value]) => [part, { ...value, until }])
    mkdirSync(site.stateDir, { recursive: true })
    const kept = { device: `${site.device.url} 1-64`, ...Object.fromEntries(timed) }
    writeFileSync(join(site.stateDir, 'ceilings.json'), JSON.stringify({ '': kept }))
    await site.serveHere()
    const { stdout } = await site.postern('status')
    const told = stdout.replaceAll(/\s+/g, ' ')
    expect(told).toContain(alarm)
    expect(told).toContain('0 of 2 places in use')
    expect(told).toContain(line)
  },
)

it('a diagnosis that the device does not answer ends when Postern stops', async () => {
  const device = createServer()
  closeLater(() => void device.close())
  const hello = new Promise<Socket>((resolve) => {
    device.on('connection', (socket) => {
      socket.on('error', () => {})
      socket.on('data', ([first]) => (first === 0x16 ? resolve(socket) : socket.destroy()))
    })
  })
  await once(device.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(device.address() as AddressInfo).port}`
  const sidecar = await startSidecar({ config: { upstream: { url } } })
  const token = await sidecar.token()
  for (let i = 0; i < 3; i += 1) expect((await sidecar.request({ token })).status).toBe(500)
  const closed = once(await hello, 'close')
  await sidecar.stop()
  await closed
})
