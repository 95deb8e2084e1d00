import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { SomeBounds } from '../../src/compose/bounds.ts'
import { loadConfig } from '../../src/config/load.ts'
import { DEVICE_BOUNDS, uploadBuffering } from '../../src/forward/service-settings.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { expectError, expectUnharmed } from '../support/expectations.ts'
import { headOf } from '../support/http1-reader.ts'
import type { Exchange } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, rowsOver, type Transport } from '../support/transports.ts'
import { waitForQueued } from '../support/waiting.ts'

interface World {
  readonly device: Device
  readonly sidecar: TestSidecar
  readonly token: string
  readonly fields: readonly string[]
}

/** @param upstream added to `buffer_uploads` */
async function start(
  transport: Transport,
  upstream: YamlPart = {},
  config: YamlPart = {},
  bounds: SomeBounds = {},
): Promise<World> {
  const device = await startDevice()
  const sidecar = await startSidecar({
    transport,
    device,
    bounds,
    config: { ...config, upstream: { buffer_uploads: '100KiB', ...upstream } },
  })
  const token = await sidecar.token()
  return { device, sidecar, token, fields: ['Authorization', `Bearer ${token}`] }
}

/** The method, framing fields and body size of the last request at the device. */
function received({ device }: World): readonly unknown[] {
  const request = device.requests.at(-1)
  const framing = ['Content-Length', 'Transfer-Encoding', 'Expect', 'Trailer'].map((name) =>
    request?.header(name),
  )
  return [request?.method, ...framing, request?.body?.length]
}

/** The first bytes of an upload. */
const PIECE = 'the first piece'

/** Begins an upload of unknown length and pauses. 100 Continue shows that the sidecar collects it. */
async function begin({ sidecar, fields }: World, piece = PIECE): Promise<Exchange> {
  const connection = await sidecar.connect()
  const expecting = [...fields, 'Expect', '100-continue']
  const exchange = connection.start({ method: 'POST', fields: expecting, open: true })
  exchange.response.catch(() => {})
  exchange.write(piece)
  return exchange
}

const SIZE = 100 * 1024

describeProtocols('upstream.buffer_uploads', (transport) => {
  describe.each(['strict', 'tolerant'])('with parser: %s', (parser) => {
    it('C21 an upload of unknown length reaches the device with a Content-Length, byte for byte', async () => {
      const world = await start(transport, { parser })
      const pieces = Array.from({ length: 80 }, (_, i) => Buffer.alloc(1000, i))
      const response = await world.sidecar.request({ token: world.token, method: 'PUT', body: pieces })
      expect([response.status, response.text]).toEqual([200, 'from the device'])
      expect(received(world)).toEqual(['PUT', '80000', undefined, undefined, undefined, 80_000])
      expect(world.device.requests[0]?.body).toEqual(Buffer.concat(pieces))
    })

    it.each(rowsOver(transport, ['POST', 'GET', 'DELETE']))(
      'an empty upload reaches the device with Content-Length: 0: %s',
      async (method) => {
        const world = await start(transport, { parser })
        const connection = await world.sidecar.connect()
        const exchange = connection.start({ method, fields: world.fields, open: true })
        exchange.end()
        expect((await exchange.response).status).toBe(200)
        expect(received(world)).toEqual([method, '0', undefined, undefined, undefined, 0])
      },
    )
  })

  it('an upload of exactly the limit passes, and one byte more is refused before any byte reaches the device', async () => {
    for (const [codes, status] of [
      ['contract', 400],
      ['http', 413],
    ] as const) {
      const world = await start(transport, {}, { status_codes: codes })
      const { device, sidecar, token } = world
      const body = [Buffer.alloc(SIZE - 1, 'x'), Buffer.from('y')]
      expect((await sidecar.request({ token, body })).status).toBe(200)
      expect(received(world)).toEqual(['POST', String(SIZE), undefined, undefined, undefined, SIZE])
      const before = device.byteCount
      const refused = await sidecar.request({ token, body: [...body, Buffer.from('z')] })
      expectError(refused, status, 'invalid_request')
      expect(device.byteCount).toBe(before)
      await expectUnharmed(sidecar, token)
    }
  })

  it('an upload without end is refused as soon as it exceeds the limit', async () => {
    const world = await start(transport)
    const exchange = await begin(world, 'x'.repeat(SIZE))
    exchange.write('y')
    expect((await exchange.head).status).toBe(400)
    expect(world.device.byteCount).toBe(0)
  })

  it('an upload with a Content-Length is streamed, even above the limit', async () => {
    const world = await start(transport, { buffer_uploads: '1KiB' })
    const connection = await world.sidecar.connect()
    const fields = [...world.fields, 'Content-Length', '5000']
    const exchange = connection.start({ method: 'POST', fields, open: true })
    exchange.write('x'.repeat(2000))
    await world.device.waitForRequests(1)
    exchange.write('x'.repeat(3000))
    exchange.end()
    expect((await exchange.response).status).toBe(200)
    expect(received(world)).toEqual(['POST', '5000', undefined, undefined, undefined, 5000])
  })

  it('H176 auto, the default, sends up to 1 MiB with a length, and all of a longer one in chunks, in order', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ transport, device })
    const world = { device, sidecar, token: await sidecar.token(), fields: [] }
    const { token } = world
    const warnings = (): number =>
      sidecar.logLines().filter((line) => line.includes('"key":"upstream.buffer_uploads"')).length
    const most = 1024 ** 2
    const pieces = Array.from({ length: 16 }, (_, i) => Buffer.alloc(most / 16, i))
    expect((await sidecar.request({ token, body: pieces })).status).toBe(200)
    expect(received(world)).toEqual(['POST', String(most), undefined, undefined, undefined, most])
    expect(warnings()).toBe(0)
    for (const longer of [
      [...pieces, Buffer.from('!')],
      [...pieces, ...pieces, ...pieces],
    ]) {
      const sent = passUntil(sidecar.clock, sidecar.request({ token, body: longer }))
      expect((await sent).status).toBe(200)
      const whole = Buffer.concat(longer)
      expect(received(world)).toEqual(['POST', undefined, 'chunked', undefined, undefined, whole.length])
      expect(device.requests.at(-1)?.body?.equals(whole)).toBe(true)
      expect(warnings()).toBe(1)
    }
    await sidecar.clock.leap(3_600_000)
    const again = await sidecar.token()
    await passUntil(sidecar.clock, sidecar.request({ token: again, body: [...pieces, ...pieces] }))
    expect(warnings()).toBe(2)
  })

  it('C25 a slow upload holds no place at the device while it is collected', async () => {
    const world = await start(transport, { max_in_flight: 1 })
    const slow = await begin(world)
    await slow.waitForInformational(100)
    expect((await world.sidecar.request({ token: world.token })).status).toBe(200)
    expect(await world.sidecar.metric('postern_upstream_in_flight')).toBe(0)
    slow.end('and the last')
    expect((await slow.response).status).toBe(200)
    expect(received(world)).toEqual(['POST', '27', undefined, undefined, undefined, 27])
  })

  it('C25 at most max_in_flight uploads are collected at once; the next one waits, and is refused at the queue timeout', async () => {
    const atOnce = { max_in_flight: 2 }
    const bounds = { device: { minUploadRate: 0 } }
    const world = await start(transport, { ...atOnce, queue: { size: 1, timeout: '1h' } }, {}, bounds)
    const queue = { size: 1, timeout: '10s' }
    const patientWithBodies = { ...bounds, listen: { bodyTimeout: 3_600_000 } }
    const impatient = await start(transport, { ...atOnce, queue }, {}, patientWithBodies)
    for (const each of [await begin(impatient), await begin(impatient)]) await each.waitForInformational(100)
    const late = await begin(impatient)
    await waitForQueued(impatient.sidecar, 1)
    await impatient.sidecar.clock.advance(9_999)
    expect(await impatient.sidecar.metric('postern_upstream_queued')).toBe(1)
    await impatient.sidecar.clock.advance(1)
    const refused = await late.response
    expectError(refused, 500, 'overloaded')
    expect(refused.header('Retry-After')).toBe('1')
    const held = [await begin(world), await begin(world)]
    for (const each of held) await each.waitForInformational(100)
    const next = await begin(world)
    await waitForQueued(world.sidecar, 1)
    held[0]?.end()
    next.end()
    expect((await next.response).status).toBe(200)
    held[1]?.end()
    for (const each of held) expect((await each.response).status).toBe(200)
    expect(world.device.requests).toHaveLength(3)
  })

  it('an upload that stalls is refused before any byte reaches the device', async () => {
    for (const [codes, status] of [
      ['contract', 400],
      ['http', 408],
    ] as const) {
      const world = await start(transport, {}, { status_codes: codes })
      const { clock } = world.sidecar
      const exchange = await begin(world)
      await exchange.waitForInformational(100)
      // The time begins with the last bytes that were read.
      const held = (): Promise<number> => world.sidecar.metric('postern_memory_bytes', { of: 'bodies' })
      await expect.poll(held).toBe(Buffer.byteLength(PIECE))
      await clock.advance(9_999)
      expect(await world.sidecar.metric('postern_requests_total', { endpoint: 'api' })).toBe(0)
      await clock.advance(1)
      expect((await exchange.head).status).toBe(status)
      expect(world.device.byteCount).toBe(0)
    }
  })

  it('C24 a client that leaves during the collection sends nothing to the device and frees its place', async () => {
    const world = await start(transport, { max_in_flight: 1, queue: { size: 0, timeout: '1s' } })
    for (let i = 0; i < 3; i += 1) {
      const exchange = await begin(world)
      await exchange.waitForInformational(100)
      exchange.abort()
      await expect.poll(() => world.sidecar.metric('postern_requests_total', { endpoint: 'api' })).toBe(i + 1)
    }
    expect(world.device.byteCount).toBe(0)
    expect((await world.sidecar.request({ token: world.token, body: ['it ', 'works'] })).status).toBe(200)
  })

  it('C8 an upload whose token is revoked during the collection is refused before any byte reaches the device', async () => {
    const world = await start(transport)
    const exchange = await begin(world)
    await exchange.waitForInformational(100)
    writeFileSync(world.sidecar.passwordFile, 'another password\n')
    const { clock } = world.sidecar
    // The file is looked at when the kernel tells of a change, and at intervals.
    const refused = async (): Promise<number> => {
      await clock.advance(50)
      return world.sidecar.metric('postern_requests_total', { endpoint: 'api' })
    }
    await expect.poll(refused).toBe(1)
    expect((await exchange.head).status).toBe(401)
    expect(world.device.byteCount).toBe(0)
  })

  it('H244 what was collected of an upload is given back with its end, while its connection stays', async () => {
    const { sidecar, fields } = await start(transport)
    const connection = await sidecar.connect()
    const upload = { method: 'POST', fields, body: ['it ', 'is collected'] }
    expect((await connection.send(upload)).status).toBe(200)
    await expect.poll(() => sidecar.metric('postern_memory_bytes', { of: 'bodies' })).toBe(0)
    expect((await connection.send(upload)).status).toBe(200)
  })

  it('each service has its own setting', async () => {
    const other = await startDevice()
    const world = await start(transport, { routes: { '/raw/': { url: other.url, buffer_uploads: 'off' } } })
    const { sidecar, token } = world
    for (const path of ['/', '/raw/'])
      await passUntil(sidecar.clock, sidecar.request({ token, path, body: ['a', 'b'] }))
    expect(world.device.requests[0]?.header('Content-Length')).toBe('2')
    expect(other.requests[0]?.header('Transfer-Encoding')).toBe('chunked')
  })
})

describe('upstream.buffer_uploads', () => {
  it('H176 auto holds at most 64 uploads at once, however many places the device has', () => {
    const { upstream } = loadConfig({
      sets: ['upstream.url=http://d', 'password.file=p', 'upstream.max_in_flight=1000'],
    })
    const { queue } =
      uploadBuffering(upstream, DEVICE_BOUNDS, 'upstream', stillClock(), { warn() {} }) ??
      expect.fail('it is off')
    for (let i = 0; i < 64; i += 1) expect(queue.tryEnter()).toBeDefined()
    expect(queue.tryEnter()).toBeUndefined()
  })

  it('off streams every upload', async () => {
    const world = await start('http1', { buffer_uploads: 'off' })
    const { clock } = world.sidecar
    await passUntil(clock, world.sidecar.request({ token: world.token, body: ['a', 'b'] }))
    expect(received(world)).toEqual(['POST', undefined, 'chunked', undefined, undefined, 2])
  })

  it('C23 H13 100 Continue is sent when the request is admitted, and it takes its place with its first bytes', async () => {
    const world = await start('http1', { max_in_flight: 1 })
    const head = (...fields: string[]): string =>
      headOf('POST / HTTP/1.1', 'Host: d', 'Expect: 100-continue', 'Transfer-Encoding: chunked', ...fields)
    const stranger = await rawConnection(world.sidecar.url)
    stranger.write(head())
    expect(await stranger.closed).toMatch(/^HTTP\/1\.1 401 /)

    const first = await begin(world)
    await first.waitForInformational(100)
    const waiting = await rawConnection(world.sidecar.url)
    waiting.write(head(world.fields.join(': ')))
    await waiting.waitFor('HTTP/1.1 100 Continue\r\n\r\n')
    expect(await world.sidecar.metric('postern_upstream_queued')).toBe(0)
    waiting.write('2\r\nhi\r\n0\r\nX-Trailer: lost\r\nContent-Length: 9\r\n\r\n')
    await waitForQueued(world.sidecar, 1)
    first.end()
    await waiting.waitFor('from the device')
    expect(received(world)).toEqual(['POST', '2', undefined, undefined, undefined, 2])
    expect(world.device.bytes.toString()).not.toMatch(/lost|Content-Length: 9/)
  })

  it.each([
    ['sends invalid framing', 'zz\r\n'],
    ['closes its sending side early', ''],
  ])('C20 an upload whose client %s is refused before any byte reaches the device', async (_what, bytes) => {
    const world = await start('http1')
    const raw = await rawConnection(world.sidecar.url)
    raw.write(headOf('POST / HTTP/1.1', 'Host: d', 'Transfer-Encoding: chunked', world.fields.join(': ')))
    raw.write('2\r\nhi\r\n')
    if (bytes === '') raw.end()
    else raw.write(bytes)
    expect(await raw.closed).toMatch(/^HTTP\/1\.1 400 /)
    expect(world.device.byteCount).toBe(0)
  })

  it('an upload that the device challenges is repeated after the sign-in, regardless of its size', async () => {
    const CHALLENGE = { 'WWW-Authenticate': 'Basic realm="device"' }
    let challenges = 0
    const device = await startDevice(async (request, response) => {
      await readBody(request)
      const challenged = request.method === 'PUT' && challenges === 0
      if (challenged) challenges += 1
      if (challenged || request.headers.authorization === undefined) response.writeHead(401, CHALLENGE)
      response.end('from the device')
    })
    const file = join(temporaryDirectory(), 'device-password')
    writeFileSync(file, 'secret\n')
    const auth = { kind: 'basic', user: 'admin', password: { file } }
    const sidecar = await startSidecar({ device, config: { upstream: { auth, buffer_uploads: '1MiB' } } })
    const body = Buffer.alloc(500_000, 'firmware')
    const pieces = [body.subarray(0, 90_000), body.subarray(90_000)]
    const response = await sidecar.request({ token: await sidecar.token(), method: 'PUT', body: pieces })
    expect([response.status, challenges]).toEqual([200, 1])
    const uploads = device.requests.filter(({ method }) => method === 'PUT')
    expect(uploads.map((each) => each.body?.equals(body))).toEqual([true, true])
  })
})
