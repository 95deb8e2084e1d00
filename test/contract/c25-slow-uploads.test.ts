import { expect, it } from 'vitest'
import type { SomeBounds } from '../../src/compose/bounds.ts'
import { type Device, readBody, startDevice, startHoldingDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import type { Connection, Exchange } from '../support/message.ts'
import { accessLines } from '../support/records.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, rowsOver, type Transport } from '../support/transports.ts'
import { passServing, waitForQueued } from '../support/waiting.ts'

const ATTACKER = '127.0.0.2'
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
  bounds: SomeBounds = {},
): Promise<World> {
  const used = device ?? (await startDevice())
  const sidecar = await startSidecar({
    transport,
    device: used,
    bounds,
    config: { ...config, upstream: { max_in_flight: 1, ...upstream } },
  })
  const shown = ['Authorization', `Bearer ${await sidecar.token()}`]
  return {
    device: used,
    sidecar,
    shown,
    async upload({ fields = [...shown, ...LONG], path = '/upload', on, from = ATTACKER } = {}) {
      const connection = on ?? (await sidecar.connect({ from }))
      const exchange = connection.start({ method: 'POST', path, fields, open: true })
      exchange.response.catch(() => {})
      return exchange
    },
  }
}

/** Sends a byte now and then, until the exchange has a response. */
function drip({ clock }: TestSidecar, exchange: Exchange): void {
  exchange.write('x')
  const timer = clock.every(100, () => exchange.write('x'))
  exchange.response.then(timer.cancel, timer.cancel)
}

describeProtocols('C25 Slow uploads', (transport) => {
  it.each(
    rowsOver(transport, [
      ['contract', 400],
      ['http', 408],
    ]),
  )(
    'C25 H99 an upload that drips loses its only place to a waiting request: %s gives %i',
    async (codes, status) => {
      const { device, sidecar, upload, shown } = await start(transport, {}, undefined, {
        status_codes: codes,
      })
      const slow = await upload()
      drip(sidecar, slow)
      await device.waitForRequests(1)
      const good = await sidecar.connect()
      const served = good.send({ fields: shown })
      await waitForQueued(sidecar, 1)
      // Judged over 2 s, behind the first of eight looks in this time.
      await sidecar.clock.advance(2_249)
      expect(await sidecar.metric('postern_upstream_queued')).toBe(1)
      await sidecar.clock.advance(1)
      expect((await served).status).toBe(200)
      expectError(await slow.response, status, 'invalid_request')
      await device.waitForOpenConnections(1)
      await expect.poll(() => accessLines(sidecar).map(({ refusal }) => refusal)).toContain('request-timeout')
    },
  )

  it('C25 H99 uploads of one client that drip in every place let every other client through', async () => {
    const { device, sidecar, upload, shown } = await start(transport, { max_in_flight: 8 })
    const on = transport === 'h2' ? { on: await sidecar.connect({ from: ATTACKER }) } : {}
    for (let i = 0; i < 20; i += 1) drip(sidecar, await upload(on))
    await device.waitForRequests(8)
    const good = await sidecar.connect()
    for (let i = 0; i < 5; i += 1)
      expect((await passServing(sidecar, good.send({ fields: shown }))).status).toBe(200)
  })

  it('C25 H99 uploads of many clients that drip at the device and in the queue let every other client through', async () => {
    const { device, sidecar, upload, shown } = await start(transport, {})
    for (let i = 10; i < 30; i += 1) drip(sidecar, await upload({ from: `127.0.0.${i}` }))
    await device.waitForRequests(1)
    const good = await sidecar.connect()
    expect((await passServing(sidecar, good.send({ fields: shown }))).status).toBe(200)
  })

  it('C25 H99 an upload that was too slow in the queue passes its place on, and does not reach the device', async () => {
    const { device, held } = await startHoldingDevice()
    const { sidecar, upload, shown } = await start(transport, {}, device)
    const ask = async (): Promise<Exchange> => (await sidecar.connect()).start({ fields: shown })
    const first = await ask()
    await device.waitForRequests(1)
    const slow = await upload()
    drip(sidecar, slow)
    await waitForQueued(sidecar, 1)
    const last = await ask()
    await waitForQueued(sidecar, 2)
    // Longer than the 2 s over which an upload is judged.
    await sidecar.clock.advance(2_100)
    held[0]?.end()
    expectError(await slow.response, 400, 'invalid_request')
    await device.waitForRequests(2)
    held[1]?.end('served')
    expect([(await first.response).status, (await last.response).text]).toEqual([200, 'served'])
    expect(device.requests.map(({ method }) => method)).toEqual(['GET', 'GET'])
  })

  it('C25 H99 an upload without a token to a public path that drips loses its place', async () => {
    const { device, sidecar, upload, shown } = await start(transport, {}, undefined, {
      public_paths: ['/open'],
    })
    drip(sidecar, await upload({ path: '/open', fields: LONG }))
    await device.waitForRequests(1)
    const good = await sidecar.connect()
    expect((await passServing(sidecar, good.send({ fields: shown }))).status).toBe(200)
  })

  it('C25 H99 an upload takes its place when its first bytes have come, not before', async () => {
    const { device, sidecar, upload, shown } = await start(transport, { queue: { size: 0 } })
    const first = await upload({ fields: [...shown, 'Content-Length', '5'] })
    const second = await upload({ fields: [...shown, 'Expect', '100-continue'] })
    // The 100 comes after the admission, and the first upload was admitted before.
    await second.waitForInformational(100)
    expect((await sidecar.request({ fields: shown })).status).toBe(200)
    for (const exchange of [first, second]) {
      exchange.end('hello')
      expect((await exchange.response).status).toBe(200)
    }
    expect(second.informational).toHaveLength(1)
    expect(device.requests.map(({ body }) => body?.toString())).toEqual(['', 'hello', 'hello'])
  })

  it('C25 H99 an upload that never sends a byte is refused by the deadline of a body and reaches no device', async () => {
    const { device, upload, sidecar } = await start(transport, {})
    const silent = await upload()
    // Meanwhile the sidecar reads its head.
    await sidecar.metrics()
    await sidecar.clock.advance(9_999)
    expect(await sidecar.metric('postern_refusals_total')).toBe(0)
    await sidecar.clock.advance(1)
    expectError(await silent.response, 400, 'invalid_request')
    expect(device.byteCount).toBe(0)
  })

  it('C25 H99 an upload may pause and drip while no other request waits', async () => {
    const { device, upload, sidecar, shown } = await start(transport, {})
    const slow = await upload({ fields: [...shown, 'Content-Length', '12'] })
    for (let sent = 0; sent < 12; sent += 1) {
      // Much longer than an upload is judged over, and shorter than it may be silent.
      await sidecar.clock.advance(9_000)
      slow.write('x')
      await sidecar.metrics()
    }
    expect((await passServing(sidecar, slow.response)).status).toBe(200)
    expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
    expect(device.requests[0]?.body).toHaveLength(12)
  })

  it.each(
    rowsOver(transport, [
      ['faster than the bound', 1024, 'x'.repeat(1024)],
      ['that drips, without a bound,', 0, 'x'],
    ]),
  )('C25 H99 an upload %s keeps its place while others wait', async (_, minUploadRate, piece) => {
    const { device, sidecar, upload, shown } = await start(
      transport,
      { buffer_uploads: 'off', queue: { timeout: '5s' } },
      undefined,
      {},
      { device: { minUploadRate } },
    )
    const steady = await upload({ fields: shown })
    steady.write(piece)
    await device.waitForRequests(1)
    const waiting = Promise.all([1, 2].map(() => sidecar.request({ fields: shown })))
    await waitForQueued(sidecar, 2)
    for (let passed = 0; passed < 5_000; passed += 250) {
      steady.write(piece)
      await sidecar.metrics()
      await sidecar.clock.advance(250)
    }
    for (const response of await waiting) expectError(response, 500, 'overloaded')
    steady.end()
    expect((await steady.response).status).toBe(200)
  })

  it('C25 H99 an upload that its device does not read keeps its place while others wait', async () => {
    const reading = Promise.withResolvers<void>()
    const device = await startDevice(async (request, response) => {
      await reading.promise
      response.end(String((await readBody(request)).length))
    })
    const { sidecar, upload, shown } = await start(transport, { queue: { timeout: '5s' } }, device)
    const size = 32 << 20
    const stalled = await upload({ fields: [...shown, 'Content-Length', String(size)] })
    const piece = Buffer.alloc(8 << 20)
    const sent = (async () => {
      for (let at = 0; at < size; at += piece.length) if (!stalled.write(piece)) await stalled.drained()
      stalled.end()
    })()
    await device.waitForRequests(1)
    const waiting = Promise.all([1, 2].map(() => sidecar.request({ fields: shown })))
    for (const response of await passServing(sidecar, waiting)) expectError(response, 500, 'overloaded')
    reading.resolve()
    await sent
    expect((await stalled.response).text).toBe(String(size))
  })

  it('C25 H99 an upload that drips after its response has begun is cut when another request waits', async () => {
    const device = await startDevice((request, response) => {
      if (request.method === 'POST') response.writeHead(200).write('begun')
      else response.end('from the device')
    })
    const { sidecar, upload, shown } = await start(transport, {}, device)
    const slow = await upload()
    drip(sidecar, slow)
    await passServing(sidecar, slow.waitFor('begun'))
    expect((await passServing(sidecar, sidecar.request({ fields: shown }))).status).toBe(200)
    await expect(slow.response).rejects.toThrow()
  })

  it('C25 H99 uploads that drip while they are buffered lose their place to one that waits', async () => {
    const { device, sidecar, upload, shown } = await start(transport, { buffer_uploads: '1MiB' })
    const slow = await upload({ fields: shown })
    drip(sidecar, slow)
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(1)
    const good = await sidecar.connect()
    const body = ['in ', 'pieces']
    for (let i = 0; i < 2; i += 1)
      expect((await passServing(sidecar, good.send({ fields: shown, body }))).status).toBe(200)
    expectError(await slow.response, 400, 'invalid_request')
    expect(device.requests.map((request) => request.header('Content-Length'))).toEqual(['9', '9'])
  })

  it('C25 H99 an upload that sends nothing does not take the probe that finds the device again', async () => {
    const { device, sidecar, shown, upload } = await start(transport, {})
    await device.stop()
    const ask = async (): Promise<string> => {
      const response = await sidecar.request({ fields: shown })
      return response.header('Proxy-Status') ?? String(response.status)
    }
    for (let i = 0; i < 4; i += 1) await ask()
    const failed = await sidecar.metric('postern_upstream_errors_total')
    await sidecar.clock.advance(1_000) // the next request is a probe
    await upload()
    await upload()
    await startDevice(undefined, { port: Number(new URL(device.url).port) })
    expect(await ask()).toBe('200')
    expect(await sidecar.metric('postern_upstream_errors_total')).toBe(failed)
  })
})
