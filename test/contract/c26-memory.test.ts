import { expect, it } from 'vitest'
import { type Device, startDevice, startHoldingDevice } from '../support/device.ts'
import { CODE, FRAME, headers, requestFields, SETTING, settings } from '../support/http2-frames.ts'
import { type RawSession, rawSession } from '../support/http2-session.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** Responses wait in the sidecar: the client lets no byte of a body be sent. */
const CLOSED_WINDOW = settings([SETTING.headerTableSize, 0], [SETTING.initialWindowSize, 0])

const streams = (count: number): number[] => Array.from({ length: count }, (_, at) => 2 * at + 1)

const GREEDY = '127.0.0.7'

/** How many streams it opens. */
const OPENED = 99

const BIG = Array.from({ length: 4 }, (_, i) => [`x-${i}`, 'z'.repeat(3_500)]).flat()
const FORM = ['content-type', 'application/x-www-form-urlencoded']
const TO_TOKENS = { ':method': 'POST', ':path': '/oauth/token' }

/** A client that holds more than its share: it opens streams until one is refused, and reads no answer. */
async function greedySession(sidecar: TestSidecar): Promise<RawSession> {
  const session = await rawSession(sidecar.url, { opening: [CLOSED_WINDOW], from: GREEDY })
  await session.waitFor(({ type }) => type === FRAME.settings)
  session.send(...streams(OPENED).map((id) => headers(id, requestFields(BIG))))
  return session
}

/** The same with forms that it never ends: they stay, while an answer that nobody reads is given up after a second. */
async function lastingSession(sidecar: TestSidecar): Promise<RawSession> {
  const session = await rawSession(sidecar.url, { from: GREEDY })
  await session.waitFor(({ type }) => type === FRAME.settings)
  session.send(
    ...streams(OPENED).map((id) => headers(id, requestFields([...BIG, ...FORM], TO_TOKENS), false)),
  )
  await expect.poll(() => refused(session)).toBeGreaterThan(0)
  return session
}

/** Waits until each stream of the greedy client has its answer or its refusal. */
async function settled({ frames }: RawSession): Promise<void> {
  const answered = (): Set<number> => new Set(frames.map(({ stream }) => stream).filter((id) => id > 0))
  await expect.poll(() => answered().size).toBe(OPENED)
}

const refused = ({ frames }: RawSession): number =>
  frames.filter(
    ({ type, payload }) => type === FRAME.resetStream && payload.readUInt32BE(0) === CODE.refusedStream,
  ).length

const start = (memory: string, device?: Device) =>
  startSidecar({
    transport: 'h2',
    ...(device && { device }),
    config: { listen: { memory } },
    bounds: { listen: { maxResets: 1_000 } },
  })

it('H249 C13 C26 a stream above the share is refused unread, counts in no window, and another client is served', async () => {
  const sidecar = await start('2MiB')
  const token = await sidecar.token()
  const before = await sidecar.metric('postern_requests_total')
  const session = await greedySession(sidecar)
  await settled(session)
  expect(refused(session)).toBeGreaterThan(20)
  const figures = await sidecar.figures()
  const held = figures('postern_memory_bytes')
  expect(held).toBeLessThanOrEqual(2 * 1024 ** 2)
  expect(figures('postern_memory_limit_bytes')).toBe(2 * 1024 ** 2)
  expect(figures('postern_shed_total', { what: 'stream' })).toBe(refused(session))
  expect(figures('postern_requests_total') - before).toBeLessThanOrEqual(OPENED - refused(session))
  expect((await sidecar.request({ token, from: '127.0.0.8' })).status).toBe(200)
  expect(sidecar.logLines().filter((line) => line.includes('"memory: clients hold much'))).not.toEqual([])
})

it('H245 own answers that nobody reads are given up after a second, and the account empties', async () => {
  const sidecar = await start('2MiB')
  const session = await greedySession(sidecar)
  await settled(session)
  const givenUp = (): Promise<number> => sidecar.metric('postern_shed_total', { what: 'answer' })
  // The session is looked at every 500 ms.
  await sidecar.clock.advance(1_499)
  expect(await givenUp()).toBe(0)
  await sidecar.clock.advance(1)
  expect(await givenUp()).toBeGreaterThan(5)
  await expect
    .poll(() => sidecar.metric('postern_memory_bytes', { of: 'requests' }))
    .toBeLessThan(1.3 * 1024 ** 2)
  session.raw.socket.destroy()
  await expect.poll(() => sidecar.metric('postern_memory_bytes')).toBe(0)
})

it('H249 a connection above the share closes before TLS', async () => {
  const sidecar = await start('2MiB')
  await lastingSession(sidecar)
  // The heads that it sent are read in several turns.
  await expect
    .poll(() => rawSession(sidecar.url, { from: GREEDY }).then(String, () => 'closed'))
    .toBe('closed')
  expect(await sidecar.metric('postern_connections_refused_total', { reason: 'memory' })).toBeGreaterThan(0)
})

it('H244 everything that a request held is given back, over HTTP/1 and HTTP/2', async () => {
  for (const transport of ['http1', 'tls', 'h2'] as const) {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    await sidecar.request({ token, method: 'POST', path: '/x', body: 'x'.repeat(100_000) })
    await sidecar.request({ path: '/x' })
    await expect.poll(() => sidecar.metric('postern_memory_bytes'), { message: transport }).toBe(0)
  }
})

it('H244 a body that came with its head is given back to the client behind a trusted proxy, while the connection stays', async () => {
  const sidecar = await startSidecar({
    documentedLimits: true,
    config: { enforce: false, listen: { trusted_proxies: ['127.0.0.1'] } },
  })
  const raw = await rawConnection(sidecar.url)
  const body = 'x'.repeat(8_000)
  for (let i = 1; i <= 5; i += 1) {
    const seen = sidecar.device.waitForRequests(i)
    raw.write(
      `POST /a HTTP/1.1\r\nHost: device\r\nX-Forwarded-For: 192.0.2.${i}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await seen
    await expect.poll(() => raw.received.split('from the device').length).toBe(i + 1)
  }
  expect(await sidecar.metric('postern_memory_bytes', { of: 'bodies' })).toBe(0)
})

it('H244 a body and the bytes behind it are held together: none is credited twice', async () => {
  const device = await startDevice(() => {})
  const sidecar = await startSidecar({ device, config: { enforce: false } })
  const raw = await rawConnection(sidecar.url)
  const body = 'x'.repeat(60_000)
  raw.write(`POST /a HTTP/1.1\r\nHost: device\r\nContent-Length: ${body.length}\r\n\r\n${body}G`)
  await device.waitForRequests(1)
  for (let i = 0; i < 5; i += 1) {
    expect(await sidecar.metric('postern_memory_bytes', { of: 'bodies' })).toBeGreaterThanOrEqual(0)
    raw.write('E')
  }
  raw.socket.resetAndDestroy()
  await expect.poll(() => sidecar.metric('postern_memory_bytes')).toBe(0)
})

it('H249 C16 a request over HTTP/1 above the share is answered as overloaded, with the rate-limit fields', async () => {
  const { device, held } = await startHoldingDevice()
  const sidecar = await start('2MiB', device)
  const early = await rawConnection(sidecar.url, { alpn: ['http/1.1'], localAddress: GREEDY })
  // A connection without work would be closed after a second.
  const head = `GET /x HTTP/1.1\r\nHost: device\r\nAuthorization: Bearer ${await sidecar.token()}\r\n\r\n`
  early.write(head)
  await device.waitForRequests(1)
  await lastingSession(sidecar)
  early.write(head)
  held[0]?.end('served')
  await expect.poll(() => early.received).toContain('"overloaded"')
  expect(early.received).toMatch(
    /^HTTP\/1.1 200 .*\r\n\r\nservedHTTP\/1.1 500 .*X-RateLimit-Remaining: \d+\r\n/s,
  )
  expect(device.requests).toHaveLength(1)
})

it('H245 behind a trusted proxy the client that holds much is refused, and another one on the same connection is served', async () => {
  const config = { listen: { memory: '2MiB', trusted_proxies: ['127.0.0.7'] } }
  const bounds = { listen: { maxResets: 1_000 } }
  const sidecar = await startSidecar({ transport: 'h2', config, bounds })
  const token = await sidecar.token()
  const session = await rawSession(sidecar.url, { from: GREEDY })
  await session.waitFor(({ type }) => type === FRAME.settings)
  const from = (address: string) => ['x-forwarded-for', address]
  session.send(
    ...streams(60).map((id) =>
      headers(id, requestFields([...BIG, ...FORM, ...from('192.0.2.1')], TO_TOKENS), false),
    ),
  )
  await expect.poll(() => refused(session)).toBeGreaterThan(10)
  session.send(headers(121, requestFields(['authorization', `Bearer ${token}`, ...from('192.0.2.2')])))
  expect(await session.status(121)).toBe(200)
  session.raw.socket.destroy()
  await expect.poll(() => sidecar.metric('postern_memory_bytes')).toBe(0)
})

it('C26 H245 a request at the device is not shed while its client holds little', async () => {
  const held = Promise.withResolvers<void>()
  const device = await startDevice(async (_, res) => {
    await held.promise
    res.end('late')
  })
  const sidecar = await startSidecar({
    transport: 'h2',
    device,
    config: { listen: { memory: '2MiB' } },
    bounds: { listen: { maxResets: 1_000 } },
  })
  const token = await sidecar.token()
  const response = sidecar.request({ token, from: '127.0.0.8' })
  await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(1)
  const session = await greedySession(sidecar)
  await expect.poll(() => refused(session)).toBeGreaterThan(20)
  await settled(session)
  await sidecar.clock.advance(1_500)
  expect(await sidecar.metric('postern_shed_total', { what: 'answer' })).toBeGreaterThan(0)
  held.resolve()
  expect((await response).status).toBe(200)
})
