import { describe, expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { expectError, expectUnharmed } from '../support/expectations.ts'
import {
  CODE,
  FRAME,
  frame,
  headers,
  hpack,
  ping,
  requestFields,
  resetStream,
  SETTING,
  settings,
} from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { nextAccepted, passUntilClosed } from '../support/waiting.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

/** Opens a connection and waits until the sidecar counts it. */
async function open(sidecar: TestSidecar, localAddress?: string): Promise<RawPeer> {
  const before = await sidecar.metric('postern_connections')
  const raw = await rawConnection(sidecar.url, localAddress === undefined ? {} : { localAddress })
  await expect.poll(() => sidecar.metric('postern_connections')).toBe(before + 1)
  return raw
}

/** Opens a connection over a cap: the sidecar closes it without a byte, over TLS before the handshake. */
async function expectRefused(sidecar: TestSidecar, localAddress = '127.0.0.1'): Promise<void> {
  const raw = await rawConnection(sidecar.url.replace('https:', 'http:'), { localAddress })
  expect(await raw.closed).toBe('')
}

const refused = (sidecar: TestSidecar, reason: string): Promise<number> =>
  sidecar.metric('postern_connections_refused_total', { reason })

describeTransports(
  'Caps on connections',
  (transport) => {
    it('max_connections closes and counts one connection too many, leaves the admin listener alone, and accepts again after a close', async () => {
      const sidecar = await startSidecar({ transport, config: { listen: { max_connections: 2 } } })
      const first = await open(sidecar)
      await open(sidecar)
      await expectRefused(sidecar)
      expect(await refused(sidecar, 'max_connections')).toBe(1)
      expect((await fetch(`${sidecar.adminUrl}/readyz`)).status).toBe(200)
      first.end()
      await first.closed
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(1)
      await sidecar.grant()
    })

    it('H268 a few clients that fill max_connections with unfinished handshakes and heads refuse nobody else', async () => {
      const each = 5
      const sidecar = await startSidecar({
        transport,
        config: { listen: { max_connections: 4 * each, max_connections_per_client: each } },
      })
      const cleartext = sidecar.url.replace('https:', 'http:')
      const attackers = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5']
      const tls = Buffer.concat([Buffer.from([0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb]), Buffer.alloc(100)])
      const begun = transport === 'tls' ? tls : 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '
      for (const localAddress of attackers)
        for (let i = 0; i < each; i += 1) (await rawConnection(cleartext, { localAddress })).write(begun)
      const token = await sidecar.token()
      expect((await sidecar.request({ path: '/x', token })).status).toBe(200)
      expect(await refused(sidecar, 'max_connections')).toBeGreaterThan(0)
    })

    it('a quarter of max_connections is the cap of one client, whose further connections are closed, and those of no other client', async () => {
      const config = { listen: { max_connections: 8, max_connections_per_client: 2 } }
      const sidecar = await startSidecar({ transport, config })
      const own = [await open(sidecar), await open(sidecar)]
      await expectRefused(sidecar)
      await expectRefused(sidecar)
      expect(await refused(sidecar, 'max_connections_per_client')).toBe(2)
      await open(sidecar, '127.0.0.2')
      for (const raw of own) raw.end()
      await Promise.all(own.map(({ closed }) => closed))
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(1)
      await sidecar.grant()
    })

    it('C26 the cap counts an IPv4 client by its IPv4 address where it connects to listen.address auto', async () => {
      const listen = { address: 'auto:0', max_connections: 8, max_connections_per_client: 2 }
      const sidecar = await startSidecar({ transport, config: { listen } })
      const openTo = (host: string) => open({ ...sidecar, url: sidecar.url.replace('[::]', host) })
      const hosts = ['127.0.0.1', '[::ffff:127.0.0.1]']
      for (const host of hosts) await openTo(host)
      for (const host of hosts) {
        const raw = await rawConnection(`http://${host}:${new URL(sidecar.url).port}`)
        expect(await raw.closed).toBe('')
      }
      expect(await refused(sidecar, 'max_connections_per_client')).toBe(2)
      await openTo('[::1]')
    })

    it('the cap of one client does not apply to a trusted proxy, which carries many clients', async () => {
      const listen = { max_connections: 7, max_connections_per_client: 1, trusted_proxies: ['127.0.0.1'] }
      const sidecar = await startSidecar({ transport, config: { listen } })
      for (let i = 0; i < 4; i += 1) await open(sidecar)
      await open(sidecar, '127.0.0.2')
      await expectRefused(sidecar, '127.0.0.2')
    })
  },
  ['http1', 'tls'],
)

describeTransports(
  'Cap on tunnels',
  (transport) => {
    it('max_tunnels refuses one tunnel too many as overloaded, serves requests, and accepts a tunnel again after a close', async () => {
      const device = await startDevice()
      const webSockets = acceptWebSockets(device)
      const sidecar = await startSidecar({ transport, device, config: { upstream: { max_tunnels: 1 } } })
      const token = await sidecar.token()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const response = await refusedWebSocket(sidecar.url, { token })
      expect(response).toMatchObject({ status: 500, text: expect.stringContaining('"overloaded"') })
      expect(response.fields).toContain('Retry-After')
      expect(webSockets.upgrades).toHaveLength(1)
      expect((await sidecar.request({ token })).status).toBe(200)
      socket.terminate()
      await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
      const again = await openWebSocket(sidecar.url, { token })
      again.socket.terminate()
      await expectUnharmed(sidecar, token)
    })

    it('max_tunnels counts an upgrade until the device refuses it', async () => {
      const device = await startDevice()
      let upgrades = 0
      let response = (): void => {}
      device.server.on('upgrade', (_request, socket) => {
        upgrades += 1
        socket.on('error', () => {})
        response = () => socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
      })
      const sidecar = await startSidecar({ transport, device, config: { upstream: { max_tunnels: 1 } } })
      const token = await sidecar.token()
      const first = refusedWebSocket(sidecar.url, { token })
      await expect.poll(() => upgrades).toBe(1)
      expect(await refusedWebSocket(sidecar.url, { token })).toMatchObject({ status: 500 })
      response()
      expect(await first).toMatchObject({ status: 403 })
      const second = refusedWebSocket(sidecar.url, { token })
      await expect.poll(() => upgrades).toBe(2)
      response()
      expect(await second).toMatchObject({ status: 403 })
    })
  },
  ['http1', 'tls'],
)

describe('the cap of one client still counts an HTTP/2 connection after its close if it was misused:', () => {
  const ATTACKER = '127.0.0.9'
  /** This many misused connections use up the allowance of their client. */
  const ENOUGH = 25
  const config = { listen: { max_connections: 12, max_connections_per_client: 3 } }
  const bounds = { listen: { maxResets: 20 } }
  const get = requestFields()
  const broken = (count: number): Buffer =>
    Buffer.concat(
      Array.from({ length: count }, (_, i) => [headers(2 * i + 1, get), resetStream(2 * i + 1)]).flat(),
    )

  /** Sends an attack on one connection. The sidecar closes it, or the attacker does if `close` is set. */
  async function attack(sidecar: TestSidecar, bytes: Buffer, close: boolean): Promise<void> {
    const accepted = nextAccepted(sidecar.url)
    const session = await rawSession(sidecar.url, { from: ATTACKER })
    const socket = await accepted
    const closed = new Promise((resolve) => socket.once('close', resolve))
    session.send(bytes, ping())
    if (close) {
      await session.waitFor(({ type }) => type === FRAME.ping)
      session.raw.end()
    }
    await session.closed
    await closed
  }

  const malformedFrame = frame(FRAME.ping, 0, 0, Buffer.alloc(7))
  const pings = Buffer.concat(Array<Buffer>(2000).fill(ping()))
  const grown = Buffer.concat([
    frame(FRAME.headers, 0, 1, hpack(get)),
    ...Array<Buffer>(100).fill(frame(FRAME.continuation, 0, 1, hpack(['x', 'y']))),
  ])
  const malformed = Buffer.concat(
    Array.from({ length: 100 }, (_, i) => headers(2 * i + 1, requestFields(['Upper', 'x']))),
  )
  it.each([
    ['H37 rapid reset', broken(100), 'max_resets'],
    ['H37 streams that nghttp2 refuses', malformed, 'max_resets'],
    ['H38 PING flood', pings, 'max_control_frames'],
    ['H38 CONTINUATION flood', grown, 'protocol_error'],
    ['H38 a malformed frame', malformedFrame, 'protocol_error'],
  ])(
    '%s: a client that repeats it is refused before the handshake, for idle_timeout',
    async (_name, bytes, reason) => {
      const sidecar = await startSidecar({ transport: 'h2', clock: stillClock(), config, bounds })
      for (let i = 0; i < ENOUGH; i += 1) await attack(sidecar, bytes, false)
      await expectRefused(sidecar, ATTACKER)
      expect(await refused(sidecar, 'max_connections_per_client')).toBe(1)
      expect(await sidecar.metric('postern_connections_cut_total', { reason })).toBe(ENOUGH)
      await sidecar.grant()
      await sidecar.clock.advance(60_000)
      await sidecar.request({ from: ATTACKER })
    },
  )

  it('H37 a rapid reset that stops before the bound counts in proportion', async () => {
    const sidecar = await startSidecar({ transport: 'h2', clock: stillClock(), config, bounds })
    for (let i = 0; i < 2 * ENOUGH; i += 1) await attack(sidecar, broken(10), true)
    await expectRefused(sidecar, ATTACKER)
    expect(await refused(sidecar, 'max_connections_per_client')).toBe(1)
    expect(await sidecar.metric('postern_connections_cut_total')).toBe(0)
  })

  it('H37 a connection that its client closes with requests in flight counts', async () => {
    const device = await startDevice(() => {})
    const sidecar = await startSidecar({ transport: 'h2', clock: stillClock(), device, config, bounds })
    const authorization = requestFields(['authorization', `Bearer ${await sidecar.token()}`])
    const asked = Buffer.concat(Array.from({ length: 20 }, (_, i) => headers(2 * i + 1, authorization)))
    for (let i = 0; i < ENOUGH; i += 1) await attack(sidecar, asked, true)
    await expectRefused(sidecar, ATTACKER)
    expect(await refused(sidecar, 'max_connections_per_client')).toBe(1)
  })

  it('H37 the connections of ordinary clients and trusted proxies, and those with two resets, do not count', async () => {
    const trusting = { listen: { ...config.listen, trusted_proxies: ['127.0.0.8'] } }
    const sidecar = await startSidecar({ transport: 'h2', clock: stillClock(), config: trusting, bounds })
    for (let i = 0; i < ENOUGH + 5; i += 1) {
      expect((await sidecar.request({ from: ATTACKER })).status).toBe(401)
      await attack(sidecar, broken(2), true)
      const proxy = await rawSession(sidecar.url, { from: '127.0.0.8' })
      proxy.send(broken(100))
      await proxy.closed
    }
    expect(await refused(sidecar, 'max_connections_per_client')).toBe(0)
    expect(await sidecar.metric('postern_connections_cut_total', { reason: 'max_resets' })).toBe(ENOUGH + 5)
  })
})

describe('max_queued_bytes', () => {
  const PIECE = 60_000
  const largeDevice = (): ReturnType<typeof startDevice> =>
    startDevice((_request, response) => response.end(Buffer.alloc(PIECE)))
  const cut = (sidecar: TestSidecar): Promise<number> =>
    sidecar.metric('postern_connections_cut_total', { reason: 'max_queued_bytes' })

  it('in HTTP/2 resets the responses past the cap on a connection with a window of 0, and keeps those below it', async () => {
    const device = await largeDevice()
    const bounds = { listen: { maxQueuedBytes: 300 * 1024 } }
    const sidecar = await startSidecar({ transport: 'h2', device, bounds })
    const token = await sidecar.token()
    const session = await rawSession(sidecar.url, { opening: [settings([SETTING.initialWindowSize, 0])] })
    const get = requestFields(['authorization', `Bearer ${token}`])
    for (let id = 1; id < 40; id += 2) session.send(headers(id, get))
    await expect.poll(() => cut(sidecar)).toBe(15)
    session.send(settings([SETTING.initialWindowSize, 1 << 20]), headers(101, get))
    expect(await session.status(101)).toBe(200)
    expect(session.frames.filter(({ type }) => type === FRAME.resetStream)).toHaveLength(15)
    expect(session.farewell).not.toBe(CODE.enhanceYourCalm)
    session.raw.end()
  })

  it('in HTTP/1 stops a client that pipelines and reads nothing, and idle_timeout closes it', async () => {
    const device = await largeDevice()
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    const raw = await rawConnection(sidecar.url)
    raw.socket.pause()
    // The responses are far larger than the kernel buffers of a client that does not read.
    raw.write(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(500))
    const begun = sidecar.clock.monotonic()
    await passUntilClosed(sidecar, 5_000)
    expect(sidecar.clock.monotonic() - begun).toBeGreaterThanOrEqual(60_000)
    expect(device.requests.length).toBeGreaterThan(1)
    expect(device.requests.length).toBeLessThan(500)
    expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
    expect((await sidecar.request({ token })).status).toBe(200)
  })

  it('by default allows the waiting responses of a hundred streams', async () => {
    const device = await largeDevice()
    const sidecar = await startSidecar({ transport: 'h2', device })
    const token = await sidecar.token()
    const session = await rawSession(sidecar.url, { opening: [settings([SETTING.initialWindowSize, 0])] })
    const get = requestFields(['authorization', `Bearer ${token}`])
    for (let id = 1; id < 200; id += 2) session.send(headers(id, get))
    for (let id = 1; id < 200; id += 2) expect(await session.status(id)).toBe(200)
    expect(await cut(sidecar)).toBe(0)
    session.raw.end()
  })
})

describe('The refusal of a tunnel', () => {
  it('is 503 overloaded in http mode, like that of a request', async () => {
    const device = await startDevice()
    acceptWebSockets(device)
    const config = { upstream: { max_tunnels: 1 }, status_codes: 'http' }
    const sidecar = await startSidecar({ device, config })
    const token = await sidecar.token()
    await openWebSocket(sidecar.url, { token })
    const fields = ['Connection', 'Upgrade', 'Upgrade', 'websocket', 'Sec-WebSocket-Version', '13']
    expectError(
      await sidecar.request({ token, fields: [...fields, 'Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='] }),
      503,
      'overloaded',
    )
  })
})
