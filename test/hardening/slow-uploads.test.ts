import { expect, it } from 'vitest'
import { accessLines } from '../support/access-lines.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { expectError } from '../support/errors.ts'
import { startHoldingDevice, waitForQueued } from '../support/holding-device.ts'
import type { Connection, Exchange } from '../support/message.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeTransports, type Transport } from '../support/transports.ts'

const ATTACKER = '127.0.0.2'
/** Half of it is the time in which an upload is judged, so a test takes less than with the default. */
const QUEUE = { timeout: '2s' }
const LONG = ['Content-Length', '1000000']

interface World {
  readonly device: Device
  readonly sidecar: TestSidecar
  readonly shown: readonly string[]
  /** Begins an upload of the attacker, on a connection of its own or on the given one. */
  upload(options?: {
    readonly fields?: readonly string[]
    readonly path?: string
    readonly on?: Connection
    readonly from?: string
  }): Promise<Exchange>
}

async function start(
  transport: Transport,
  upstream: YamlPart,
  device?: Device,
  config?: YamlPart,
): Promise<World> {
  const used = device ?? (await startDevice())
  const sidecar = await startSidecar({
    transport,
    device: used,
    config: { ...config, upstream: { max_in_flight: 1, queue: QUEUE, ...upstream } },
  })
  const shown = ['Authorization', `Bearer ${await sidecar.token()}`]
  return {
    device: used,
    sidecar,
    shown,
    async upload({ fields = [...shown, ...LONG], path = '/upload', on, from = ATTACKER } = {}) {
      const connection = on ?? (await sidecar.connect({ from }))
      const exchange = connection.start({ method: 'POST', path, fields, open: true, timeout: 60_000 })
      exchange.response.catch(() => {})
      return exchange
    },
  }
}

/** Sends a byte now and then until the exchange has a response. */
function drip(exchange: Exchange, piece = 'x', every = 100): void {
  exchange.write(piece)
  const timer = setInterval(() => exchange.write(piece), every)
  const stop = (): void => clearInterval(timer)
  exchange.response.then(stop, stop)
}

describeTransports('H99 Slow uploads', (transport) => {
  it.each([
    ['contract', 400],
    ['http', 408],
  ])(
    'H99 an upload that drips loses its only place to a waiting request: %s gives %i',
    async (codes, status) => {
      const { device, sidecar, upload, shown } = await start(transport, {}, undefined, {
        status_codes: codes,
      })
      const slow = await upload()
      drip(slow)
      await device.waitForRequests(1)
      const good = await sidecar.connect()
      expect((await good.send({ fields: shown })).status).toBe(200)
      expectError(await slow.response, status, 'invalid_request')
      await device.waitForOpenConnections(1)
      await expect.poll(() => accessLines(sidecar).map(({ refusal }) => refusal)).toContain('request-timeout')
    },
  )

  it('H99 uploads of one client that drip in every place let every other client through', async () => {
    const { device, sidecar, upload, shown } = await start(transport, { max_in_flight: 8 })
    const on = transport === 'h2' ? { on: await sidecar.connect({ from: ATTACKER }) } : {}
    for (let i = 0; i < 20; i += 1) drip(await upload(on))
    await device.waitForRequests(8)
    const good = await sidecar.connect()
    for (let i = 0; i < 5; i += 1) expect((await good.send({ fields: shown })).status).toBe(200)
  })

  it('H99 uploads of many clients that drip at the device and in the queue let every other client through', async () => {
    const { device, sidecar, upload, shown } = await start(transport, {})
    for (let i = 10; i < 30; i += 1) drip(await upload({ from: `127.0.0.${i}` }))
    await device.waitForRequests(1)
    await waitForQueued(sidecar, 19)
    const good = await sidecar.connect()
    expect((await good.send({ fields: shown })).status).toBe(200)
    // Those that were found slow in the queue did not reach the device.
    expect(device.requests.length).toBeLessThan(10)
  })

  it('H99 an upload without a token to a public path that drips loses its place', async () => {
    const { device, sidecar, upload, shown } = await start(transport, {}, undefined, {
      public_paths: ['/open'],
    })
    drip(await upload({ path: '/open', fields: LONG }))
    await device.waitForRequests(1)
    const good = await sidecar.connect()
    expect((await good.send({ fields: shown })).status).toBe(200)
  })
})
