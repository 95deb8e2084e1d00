import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { readBody, startDevice } from '../support/device.ts'
import { expectUnharmed } from '../support/expectations.ts'
import {
  CODE,
  FRAME,
  frame,
  goaway,
  headers,
  hpack,
  ping,
  requestFields,
  SETTING,
  settings,
  windowUpdate,
} from '../support/http2-frames.ts'
import { type RawSession, rawSession } from '../support/http2-session.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { beginStop, passServing, passUntilClosed } from '../support/waiting.ts'

/** So late (ms) the client of a response that it cannot read finds its connection closed. */
const WINDOW_OF_0 = 121_000
const NOTHING = Buffer.alloc(0)
const post = (token: string, path = '/upload'): string[] =>
  requestFields(['authorization', `Bearer ${token}`], { ':method': 'POST', ':path': path })

const head = requestFields([], { ':method': 'HEAD' })
/** GOAWAY without a payload, which is a connection error (RFC 9113 §6.8). */
const BROKEN = frame(FRAME.goaway, 0, 0)

describe('H42 A connection without a complete request is closed at its deadline:', () => {
  /** How long (ms) the client waits for the end: `header_timeout` or `idle_timeout`, behind the first look at the connection, which is after 500 ms. */
  const openings: readonly (readonly [name: string, due: number, opening: readonly Buffer[]])[] = [
    ['the preface alone', 10_500, []],
    ['half of the SETTINGS', 10_500, [settings([SETTING.initialWindowSize, 1]).subarray(0, 10)]],
    ['the preface and SETTINGS', 60_500, [settings()]],
    // The client has a second for the rest of a frame.
    ['half of a header block', 11_500, [settings(), frame(FRAME.headers, 0, 1, hpack(requestFields()))]],
    ['half of a frame', 11_500, [settings(), headers(1, requestFields()).subarray(0, 20)]],
    ['a request, and then GOAWAY', 0, [settings(), headers(1, requestFields()), goaway(0)]],
    ['GOAWAY', 0, [settings(), goaway(0)]],
    // Node reports no error of nghttp2 in a session that waits for its streams to end.
    [
      'a request, GOAWAY, and a broken frame',
      60_500,
      [settings(), headers(1, requestFields()), goaway(0), BROKEN],
    ],
    [
      'GOAWAY behind a HEAD request, and a broken frame',
      60_500,
      [settings(), headers(1, head), goaway(0), BROKEN],
    ],
    [
      'GOAWAY behind an upload, and a broken frame',
      60_500,
      [settings(), headers(1, post(''), false), goaway(0), BROKEN],
    ],
    [
      'GOAWAY within a header block',
      60_500,
      [settings(), headers(1, requestFields()), goaway(0), frame(FRAME.headers, 0, 3), BROKEN],
    ],
    ['GOAWAY with an error', 0, [settings(), goaway(0, CODE.protocolError)]],
    // After 60.5 s its response is reset, and from then on it is idle.
    ['a window of 0', WINDOW_OF_0, [settings([SETTING.initialWindowSize, 0]), headers(1, requestFields())]],
    ['a token request without its body', 60_500, [settings(), headers(1, post('', '/oauth/token'), false)]],
  ]

  it.each(openings)('H42 %s', async (_name, due, opening) => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const { raw } = await rawSession(sidecar.url, { opening })
    // The client keeps its side open after the sidecar has ended its own.
    raw.socket.allowHalfOpen = true
    const end = once(raw.socket, 'end')
    // Meanwhile the sidecar reads the opening.
    await sidecar.metrics()
    if (due > 0) {
      await sidecar.clock.advance(due - 1)
      expect(await sidecar.metric('postern_connections')).toBe(1)
      expect(raw.socket.readableEnded).toBe(false)
      await sidecar.clock.advance(1)
    }
    await end
    // The sidecar closes the connection although the client does not close its side.
    await sidecar.clock.advance(1_500)
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    await expectUnharmed(sidecar, await sidecar.token())
  })

  it('H42 a TLS handshake that stops', async () => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const raw = await rawConnection(sidecar.url.replace('https:', 'http:'))
    raw.write(Buffer.from('16030100f8010000f40303', 'hex'))
    // Meanwhile the sidecar accepts it.
    await sidecar.metrics()
    const late = (): Promise<number> =>
      sidecar.metric('postern_handshakes_failed_total', { reason: 'handshake_timeout' })
    await sidecar.clock.advance(9_999)
    expect(await late()).toBe(0)
    await sidecar.clock.advance(1)
    await raw.closed
    expect(await late()).toBe(1)
    await expectUnharmed(sidecar, await sidecar.token())
  })

  it.each([
    ['WINDOW_UPDATE', windowUpdate(0, 1)],
    ['PRIORITY', frame(FRAME.priority, 0, 1, Buffer.alloc(5))],
    ['one frame of an unknown type, byte by byte', frame(0xbb, 0, 0, Buffer.alloc(4096))],
  ])('H42 a connection on which only %s arrives is closed at idle_timeout', async (_name, bytes) => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const session = await rawSession(sidecar.url)
    const piece = (sent: number): Buffer => (bytes.length < 100 ? bytes : bytes.subarray(sent, sent + 1))
    // Looked at every 500 ms: it was last in use before the first look.
    for (let sent = 0; sent < 20; sent += 1) {
      session.send(piece(sent))
      await sidecar.metrics()
      await sidecar.clock.advance(3_000)
    }
    session.send(piece(20))
    await sidecar.clock.advance(499)
    expect(await sidecar.metric('postern_connections')).toBe(1)
    expect(session.farewell).toBeUndefined()
    await sidecar.clock.advance(1)
    await session.closed
  })

  it('H42 a connection in use stays open beyond idle_timeout', async () => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const token = await sidecar.token()
    const session = await rawSession(sidecar.url)
    for (let id = 1; id < 8; id += 2) {
      session.send(headers(id, requestFields(['authorization', `Bearer ${token}`])))
      expect(await session.status(id)).toBe(200)
      await sidecar.clock.advance(59_999)
    }
    session.raw.end()
  })
})

describe('H42 A connection is closed when a header block is not finished within the deadline of a head:', () => {
  const begun = frame(FRAME.headers, 0, 3, hpack(requestFields()))
  const long = headers(3, requestFields(['x', 'y'.repeat(9000)]))
  const beginnings: readonly (readonly [name: string, first: Buffer, rest: Buffer])[] = [
    ['without END_HEADERS', begun, NOTHING],
    ['cut within its frame', begun.subarray(0, 20), NOTHING],
    [
      'with a CONTINUATION that is not the last',
      Buffer.concat([begun, frame(FRAME.continuation, 0, 3, hpack(['x', 'y']))]),
      NOTHING,
    ],
    ['byte by byte', long.subarray(0, 10), long.subarray(10)],
  ]

  /** A connection that has served a request, so that no deadline for its first request applies. */
  async function served(sidecar: TestSidecar, token: string): Promise<RawSession> {
    const session = await rawSession(sidecar.url)
    session.send(headers(1, requestFields(['authorization', `Bearer ${token}`])))
    expect(await session.status(1)).toBe(200)
    return session
  }

  /** Lets time pass, so much that a header block is late that was begun before: seen 500 ms after it has begun at the latest, and 10 s later. */
  const reachDeadline = (sidecar: TestSidecar): Promise<void> => sidecar.clock.advance(10_500)

  it.each(beginnings)('H42 a header block %s', async (_name, first, rest) => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const session = await served(sidecar, await sidecar.token())
    session.send(first)
    // Meanwhile the sidecar reads it.
    await sidecar.metrics()
    for (let sent = 0; sent < 10; sent += 1) {
      await sidecar.clock.advance(1_000)
      session.send(rest.subarray(sent, sent + 1))
      await sidecar.metrics()
    }
    await sidecar.clock.advance(499)
    expect(await sidecar.metric('postern_connections')).toBe(1)
    expect(session.farewell).toBeUndefined()
    await sidecar.clock.advance(1)
    await session.waitFor(({ type }) => type === FRAME.goaway)
    await passUntilClosed(sidecar)
    await session.closed
  })

  it('H42 another stream on that connection ends whole before the close', async () => {
    let finish = (): void => {}
    const device = await startDevice((request, response) => {
      if (request.url !== '/slow') return response.end('ok')
      response.write('first')
      finish = () => response.end('last')
    })
    const sidecar = await startSidecar({ transport: 'h2', device })
    const token = await sidecar.token()
    const session = await served(sidecar, token)
    session.send(headers(5, requestFields(['authorization', `Bearer ${token}`], { ':path': '/slow' })))
    expect(await session.status(5)).toBe(200)
    session.send(frame(FRAME.headers, 0, 7, hpack(requestFields())))
    await sidecar.metrics()
    await reachDeadline(sidecar)
    await session.waitFor(({ type }) => type === FRAME.goaway)
    finish()
    expect(await session.outcome(5)).toBe('end')
    await passUntilClosed(sidecar)
    await session.closed
    await expectUnharmed(sidecar, token)
  })

  it('H42 an idle connection, and one with a malformed request, stay open beyond the deadline of a head', async () => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const token = await sidecar.token()
    const idle = await served(sidecar, token)
    const refused = await served(sidecar, token)
    refused.send(headers(3, requestFields(['X-Upper', 'case'])))
    await refused.outcome(3)
    refused.send(ping())
    await refused.waitFor(({ type }) => type === FRAME.ping)
    const late = await served(sidecar, token)
    late.send(begun)
    await sidecar.metrics()
    await reachDeadline(sidecar)
    await late.waitFor(({ type }) => type === FRAME.goaway)
    for (const session of [idle, refused]) {
      session.send(headers(9, requestFields(['authorization', `Bearer ${token}`])))
      expect(await session.status(9)).toBe(200)
      session.raw.end()
    }
  })
})

/** Larger than the kernel buffers of a client that reads nothing. */
const LARGE = Buffer.alloc(16 * 1024 * 1024)

const largeOrSmall = (request: IncomingMessage, response: ServerResponse): unknown =>
  response.end(request.url === '/large' ? LARGE : 'ok')

/** Starts a download with the largest windows, and stops reading the socket when it has begun. */
async function unreadDownload(sidecar: TestSidecar, token: string): Promise<void> {
  const opening = [settings([SETTING.initialWindowSize, 0x7f_ff_ff_ff]), windowUpdate(0, 0x7f_00_00_00)]
  const session = await rawSession(sidecar.url, { opening })
  session.send(headers(1, requestFields(['authorization', `Bearer ${token}`], { ':path': '/large' })))
  expect(await session.status(1)).toBe(200)
  session.raw.socket.pause()
}

describe('H43 A stream has its own deadlines:', () => {
  async function uploading(): Promise<{
    sidecar: TestSidecar
    session: RawSession
    token: string
  }> {
    const sidecar = await startSidecar({ transport: 'h2' })
    const token = await sidecar.token()
    return { sidecar, session: await rawSession(sidecar.url), token }
  }

  /** Lets time pass, with a PING each two seconds, whose answer shows that all before it is read. */
  async function passBusy({ clock }: TestSidecar, session: RawSession, ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 2_000) {
      const before = session.frames.length
      session.send(ping())
      await session.waitFor((got) => got.type === FRAME.ping && session.frames.indexOf(got) >= before)
      await clock.advance(Math.min(left, 2_000))
    }
  }

  /** The stream that stops gets no response until the deadline of a body, and then 400. */
  async function expectLateBody(sidecar: TestSidecar, session: RawSession): Promise<void> {
    await passBusy(sidecar, session, 9_999)
    expect(await sidecar.metric('postern_refusals_total')).toBe(0)
    await sidecar.clock.advance(1)
    expect(await session.status(1)).toBe(400)
    session.raw.end()
  }

  it('H43 an upload that stops is 400 although the connection is busy', async () => {
    const { sidecar, session, token } = await uploading()
    session.send(headers(1, post(token), false), frame(FRAME.data, 0, 1, Buffer.from('slow')))
    await expectLateBody(sidecar, session)
    await expectUnharmed(sidecar, token)
  })

  it('H43 a token body that stops is 400 although the connection is busy', async () => {
    const { sidecar, session, token } = await uploading()
    const form = [...post(token, '/oauth/token'), 'content-type', 'application/x-www-form-urlencoded']
    session.send(headers(1, form, false), frame(FRAME.data, 0, 1, Buffer.from('grant_type=')))
    await expectLateBody(sidecar, session)
    await expectUnharmed(sidecar, token)
  })

  it.each<readonly [what: string, answer: (response: ServerResponse) => unknown]>([
    ['a response of 1000 bytes', (response) => response.end('x'.repeat(1000))],
    ['a response of 60,000 bytes', (response) => response.end('x'.repeat(60_000))],
    // The device may send more later.
    ['the first byte of a response', (response) => response.write('x')],
  ])('H43 %s that the client never reads is reset although the connection is busy', async (_what, answer) => {
    const device = await startDevice((_request, response) => answer(response))
    // Shorter than the pause that the device may make.
    const config = { listen: { idle_timeout: '10s' } }
    const sidecar = await startSidecar({ transport: 'h2', device, config })
    const token = await sidecar.token()
    const session = await rawSession(sidecar.url, {
      opening: [settings([SETTING.initialWindowSize, 0])],
    })
    session.send(headers(1, requestFields(['authorization', `Bearer ${token}`])))
    expect(await session.status(1)).toBe(200)
    await passBusy(sidecar, session, 10_499)
    expect(session.frames.some(({ type }) => type === FRAME.resetStream)).toBe(false)
    await sidecar.clock.advance(1)
    expect(await session.outcome(1)).toBe(2) // INTERNAL_ERROR
    session.raw.end()
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
  })

  it('H43 the connection of a client that stops reading within a download is closed', async () => {
    const device = await startDevice(largeOrSmall)
    const sidecar = await startSidecar({ transport: 'h2', device })
    const token = await sidecar.token()
    await unreadDownload(sidecar, token)
    await sidecar.clock.advance(60_000)
    expect(await sidecar.metric('postern_connections')).toBe(1)
    await passUntilClosed(sidecar)
    await expectUnharmed(sidecar, token)
  })

  it('H43 C25 a client that reads nothing loses its place at the device when another request waits for one', async () => {
    const device = await startDevice(largeOrSmall)
    const sidecar = await startSidecar({
      transport: 'h2',
      device,
      config: { upstream: { max_in_flight: 1 } },
    })
    const token = await sidecar.token()
    await unreadDownload(sidecar, token)
    expect((await passServing(sidecar, sidecar.request({ token }))).status).toBe(200)
  })

  it('H43 a response that pauses longer than idle_timeout arrives whole when the client has read all of it', async () => {
    const proceed = Promise.withResolvers<void>()
    const device = await startDevice(async (request, response) => {
      await readBody(request)
      response.write('first')
      await proceed.promise
      response.end('last')
    })
    const config = { listen: { idle_timeout: '10s' } }
    const sidecar = await startSidecar({ transport: 'h2', device, config })
    const connection = await sidecar.connect()
    const exchange = connection.start({ fields: ['Authorization', `Bearer ${await sidecar.token()}`] })
    await exchange.waitFor('first')
    await sidecar.clock.advance(30_000)
    proceed.resolve()
    expect((await exchange.response).text).toBe('firstlast')
    connection.close()
  })

  it('H43 a response before the end of the upload leaves no stream open', async () => {
    const device = await startDevice((_request, response) => response.end('enough'))
    const sidecar = await startSidecar({ transport: 'h2', device })
    const token = await sidecar.token()
    const session = await rawSession(sidecar.url)
    const data = frame(FRAME.data, 0, 1, Buffer.alloc(10_000))
    session.send(headers(1, [...post(token), 'content-length', '100000'], false), data, data, data)
    // Such a response is held until the rest of its upload has failed to come for a second.
    expect(await passServing(sidecar, session.status(1))).toBe(200)
    session.send(headers(3, [...post(token, '/oauth/token'), 'content-type', 'text/plain'], false))
    session.send(frame(FRAME.data, 0, 3, Buffer.alloc(10_000)), frame(FRAME.data, 0, 3, Buffer.alloc(100)))
    expect(await session.status(3)).toBe(400)
    await expect.poll(() => sidecar.metric('postern_requests_total')).toBe(3)
    const { stopped } = await beginStop(sidecar, 60_000)
    await sidecar.clock.advance(6_000)
    await stopped
    await session.closed
  })
})

describe('A stop of the sidecar ends at once when no request runs', () => {
  const clients: readonly (readonly [name: string, open: (sidecar: TestSidecar) => Promise<unknown>])[] = [
    ['keeps its side open', (sidecar) => rawSession(sidecar.url)],
    ['has sent GOAWAY and stays', (sidecar) => rawSession(sidecar.url, { opening: [settings(), goaway(0)] })],
    ['has sent the preface alone', (sidecar) => rawSession(sidecar.url, { opening: [] })],
    [
      'never reads',
      async (sidecar) => {
        const session = await rawSession(sidecar.url)
        session.raw.socket.pause()
        session.send(...Array<Buffer>(500).fill(ping()))
      },
    ],
    [
      'has broken the protocol and stays',
      async (sidecar) => (await rawSession(sidecar.url)).send(frame(FRAME.data, 0, 0)),
    ],
    [
      'has stopped in its handshake',
      async (sidecar) => {
        const raw = await rawConnection(sidecar.url.replace('https:', 'http:'))
        raw.write(Buffer.from('16030100f8010000f40303', 'hex'))
      },
    ],
    [
      'has an upload refused half-way',
      async (sidecar) => {
        const session = await rawSession(sidecar.url)
        session.send(headers(1, post('none'), false), frame(FRAME.data, 0, 1, Buffer.alloc(9000)))
        await session.status(1)
      },
    ],
  ]

  it.each(clients)('while a client %s', async (_name, open) => {
    const sidecar = await startSidecar({ transport: 'h2' })
    await open(sidecar)
    await expect.poll(() => sidecar.logLines().length).toBeGreaterThan(0)
    const { stopped } = await beginStop(sidecar, 60_000)
    await sidecar.clock.advance(6_000)
    await stopped
  })

  it('although a TLS handshake ends only after the stop has begun', async () => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const { connect } = await import('node:tls')
    const { createConnection } = await import('node:net')
    const { hostname, port } = new URL(sidecar.url)
    const bare = createConnection(Number(port), hostname)
    await once(bare, 'connect')
    await expect.poll(async () => bare.readyState).toBe('open')
    const { stopped } = await beginStop(sidecar, 60_000)
    const socket = connect({ socket: bare, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
    socket.on('error', () => {})
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')])
    await sidecar.clock.advance(4_000)
    await stopped
  })
})
