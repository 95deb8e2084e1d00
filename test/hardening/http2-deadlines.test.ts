import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectUnharmed } from '../support/aftermath.ts'
import { readBody, startDevice } from '../support/device.ts'
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
import { livedTime } from '../support/lived-time.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

const SHORT = {
  config: { listen: { idle_timeout: '300ms', header_timeout: '250ms' } },
  bounds: { listen: { bodyTimeout: 250 } },
}
const post = (token: string, path = '/upload'): string[] =>
  requestFields(['authorization', `Bearer ${token}`], { ':method': 'POST', ':path': path })

const head = requestFields([], { ':method': 'HEAD' })
/** GOAWAY without a payload, which is a connection error (RFC 9113 §6.8). */
const BROKEN = frame(FRAME.goaway, 0, 0)

describe('H42 A connection without a complete request is closed at its deadline:', () => {
  const openings: readonly (readonly [name: string, opening: readonly Buffer[]])[] = [
    ['the preface alone', []],
    ['half of the SETTINGS', [settings([SETTING.initialWindowSize, 1]).subarray(0, 10)]],
    ['the preface and SETTINGS', [settings()]],
    ['half of a header block', [settings(), frame(FRAME.headers, 0, 1, hpack(requestFields()))]],
    ['half of a frame', [settings(), headers(1, requestFields()).subarray(0, 20)]],
    ['a request, and then GOAWAY', [settings(), headers(1, requestFields()), goaway(0)]],
    ['GOAWAY', [settings(), goaway(0)]],
    // Node reports no error of nghttp2 in a session that waits for its streams to end.
    ['a request, GOAWAY, and a broken frame', [settings(), headers(1, requestFields()), goaway(0), BROKEN]],
    ['GOAWAY behind a HEAD request, and a broken frame', [settings(), headers(1, head), goaway(0), BROKEN]],
    [
      'GOAWAY behind an upload, and a broken frame',
      [settings(), headers(1, post(''), false), goaway(0), BROKEN],
    ],
    [
      'GOAWAY within a header block',
      [settings(), headers(1, requestFields()), goaway(0), frame(FRAME.headers, 0, 3), BROKEN],
    ],
    ['GOAWAY with an error', [settings(), goaway(0, CODE.protocolError)]],
    ['a window of 0', [settings([SETTING.initialWindowSize, 0]), headers(1, requestFields())]],
    ['a token request without its body', [settings(), headers(1, post('', '/oauth/token'), false)]],
  ]
  let sidecar: TestSidecar
  const ends = new Map<string, Promise<unknown>>()
  beforeAll(async () => {
    sidecar = await startSidecar({ transport: 'h2', ...SHORT })
    for (const [name, opening] of openings) {
      const { raw } = await rawSession(sidecar.url, { opening })
      // The client keeps its side open after the sidecar has ended its own.
      raw.socket.allowHalfOpen = true
      ends.set(name, once(raw.socket, 'end'))
    }
  })

  it.each(openings.map(([name]) => name))('H42 %s', async (name) => {
    await ends.get(name)
  })

  it('H42 the sidecar closes these connections although no client closes its side', async () => {
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    await expectUnharmed(sidecar, await sidecar.token())
  })

  it('H42 a TLS handshake that stops', async () => {
    const sidecar = await startSidecar({
      transport: 'h2',
      bounds: { listen: { handshakeTimeout: 2_000 } },
    })
    const raw = await rawConnection(sidecar.url.replace('https:', 'http:'))
    raw.write(Buffer.from('16030100f8010000f40303', 'hex'))
    await raw.closed
    await expectUnharmed(sidecar, await sidecar.token())
  })

  it.each([
    ['WINDOW_UPDATE', windowUpdate(0, 1)],
    ['PRIORITY', frame(FRAME.priority, 0, 1, Buffer.alloc(5))],
    ['one frame of an unknown type, byte by byte', frame(0xbb, 0, 0, Buffer.alloc(4096))],
  ])('H42 a connection on which only %s arrives is closed at idle_timeout', async (_name, bytes) => {
    const sidecar = await startSidecar({ transport: 'h2', ...SHORT })
    const session = await rawSession(sidecar.url)
    let sent = 0
    const drip = setInterval(() => {
      if (bytes.length < 100) session.send(bytes)
      else session.send(bytes.subarray(sent, ++sent))
    }, 20)
    session.raw.socket.once('close', () => clearInterval(drip))
    await session.closed
  })

  it('H42 a connection in use stays open beyond idle_timeout', async () => {
    const sidecar = await startSidecar({ transport: 'h2', config: { listen: { idle_timeout: '600ms' } } })
    const token = await sidecar.token()
    const session = await rawSession(sidecar.url)
    for (let id = 1; id < 14; id += 2) {
      session.send(headers(id, requestFields(['authorization', `Bearer ${token}`])))
      expect(await session.status(id)).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    session.raw.end()
  })
})

describe('H42 A connection is closed when a header block is not finished within the deadline of a head:', () => {
  const begun = frame(FRAME.headers, 0, 3, hpack(requestFields()))
  const long = headers(3, requestFields(['x', 'y'.repeat(9000)]))
  const beginnings: readonly (readonly [name: string, send: (session: RawSession) => void])[] = [
    ['without END_HEADERS', (session) => session.send(begun)],
    ['cut within its frame', (session) => session.send(begun.subarray(0, 20))],
    [
      'with a CONTINUATION that is not the last',
      (session) => session.send(begun, frame(FRAME.continuation, 0, 3, hpack(['x', 'y']))),
    ],
    [
      'byte by byte',
      (session) => {
        let sent = 10
        session.send(long.subarray(0, sent))
        const drip = setInterval(() => session.send(long.subarray(sent, ++sent)), 50)
        session.raw.socket.once('close', () => clearInterval(drip))
      },
    ],
  ]
  let sidecar: TestSidecar
  let token: string
  let finish = (): void => {}
  const ends = new Map<string, Promise<unknown>>()

  /** A connection that has served a request, so that no deadline for its first request applies. */
  async function served(): Promise<RawSession> {
    const session = await rawSession(sidecar.url)
    session.send(headers(1, requestFields(['authorization', `Bearer ${token}`])))
    expect(await session.status(1)).toBe(200)
    return session
  }

  beforeAll(async () => {
    const device = await startDevice((request, response) => {
      if (request.url !== '/slow') return response.end('ok')
      response.write('first')
      finish = () => response.end('last')
    })
    const config = { listen: { header_timeout: '250ms' } }
    sidecar = await startSidecar({ transport: 'h2', device, config })
    token = await sidecar.token()
    for (const [name, send] of beginnings) {
      const session = await served()
      send(session)
      ends.set(name, session.closed)
    }
  })

  it.each(beginnings.map(([name]) => name))('H42 a header block %s', async (name) => {
    await ends.get(name)
  })

  it('H42 another stream on that connection ends whole before the close', async () => {
    const session = await served()
    session.send(headers(5, requestFields(['authorization', `Bearer ${token}`], { ':path': '/slow' })))
    expect(await session.status(5)).toBe(200)
    session.send(frame(FRAME.headers, 0, 7, hpack(requestFields())))
    await session.waitFor(({ type }) => type === FRAME.goaway)
    finish()
    expect(await session.outcome(5)).toBe('end')
    await session.closed
    await expectUnharmed(sidecar, token)
  })

  it('H42 an idle connection, and one with a malformed request, stay open beyond the deadline of a head', async () => {
    const idle = await served()
    const refused = await served()
    refused.send(headers(3, requestFields(['X-Upper', 'case'])))
    await refused.outcome(3)
    refused.send(ping())
    await refused.waitFor(({ type }) => type === FRAME.ping)
    const late = await served()
    late.send(begun)
    await late.closed
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
    const device = await startDevice()
    const sidecar = await startSidecar({ transport: 'h2', device, ...SHORT })
    const token = await sidecar.token()
    return { sidecar, session: await rawSession(sidecar.url), token }
  }

  it('H43 an upload that stops is 400 although the connection is busy', async () => {
    const { sidecar, session, token } = await uploading()
    session.send(headers(1, post(token), false), frame(FRAME.data, 0, 1, Buffer.from('slow')))
    const busy = setInterval(() => session.send(ping()), 50)
    expect(await session.status(1)).toBe(400)
    clearInterval(busy)
    session.raw.end()
    await expectUnharmed(sidecar, token)
  })

  it('H43 a token body that stops is 400 although the connection is busy', async () => {
    const { sidecar, session, token } = await uploading()
    const form = [...post(token, '/oauth/token'), 'content-type', 'application/x-www-form-urlencoded']
    session.send(headers(1, form, false), frame(FRAME.data, 0, 1, Buffer.from('grant_type=')))
    const busy = setInterval(() => session.send(ping()), 50)
    expect(await session.status(1)).toBe(400)
    clearInterval(busy)
    session.raw.end()
    await expectUnharmed(sidecar, token)
  })

  it.each([1000, 60_000])(
    'H43 a response of %i bytes that the client never reads is reset although the connection is busy',
    async (size) => {
      const device = await startDevice((_request, response) => response.end('x'.repeat(size)))
      const sidecar = await startSidecar({ transport: 'h2', device, ...SHORT })
      const token = await sidecar.token()
      const session = await rawSession(sidecar.url, {
        opening: [settings([SETTING.initialWindowSize, 0])],
      })
      session.send(headers(1, requestFields(['authorization', `Bearer ${token}`])))
      const busy = setInterval(() => session.send(ping()), 50)
      expect(await session.outcome(1)).toBe(2) // INTERNAL_ERROR
      clearInterval(busy)
      session.raw.end()
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    },
  )

  it('H43 the connection of a client that stops reading within a download is closed', async () => {
    const device = await startDevice(largeOrSmall)
    const sidecar = await startSidecar({ transport: 'h2', device, ...SHORT })
    const token = await sidecar.token()
    await unreadDownload(sidecar, token)
    await expectUnharmed(sidecar, token)
  })

  it('H43 C25 a client that reads nothing loses its place at the device when another request waits for one', async () => {
    const device = await startDevice(largeOrSmall)
    const upstream = { max_in_flight: 1, queue: { timeout: '8s' } }
    const sidecar = await startSidecar({ transport: 'h2', device, config: { upstream } })
    const token = await sidecar.token()
    await unreadDownload(sidecar, token)
    expect((await sidecar.request({ token })).status).toBe(200)
  })

  it('H43 a response that pauses longer than idle_timeout arrives whole when the client has read all of it', async () => {
    const device = await startDevice(async (request, response) => {
      await readBody(request)
      response.write('first')
      setTimeout(() => response.end('last'), 900)
    })
    const sidecar = await startSidecar({ transport: 'h2', device, ...SHORT })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect(response.text).toBe('firstlast')
  })

  it('H43 a response before the end of the upload leaves no stream open', async () => {
    const device = await startDevice((_request, response) => response.end('enough'))
    const sidecar = await startSidecar({ transport: 'h2', device })
    const token = await sidecar.token()
    const session = await rawSession(sidecar.url)
    const data = frame(FRAME.data, 0, 1, Buffer.alloc(10_000))
    session.send(headers(1, [...post(token), 'content-length', '100000'], false), data, data, data)
    expect(await session.status(1)).toBe(200)
    session.send(headers(3, [...post(token, '/oauth/token'), 'content-type', 'text/plain'], false))
    session.send(frame(FRAME.data, 0, 3, Buffer.alloc(10_000)), frame(FRAME.data, 0, 3, Buffer.alloc(100)))
    expect(await session.status(3)).toBe(400)
    await expect.poll(() => sidecar.metric('postern_requests_total')).toBe(3)
    await sidecar.stop(60_000)
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
    const now = livedTime()
    await sidecar.stop(60_000)
    expect(now()).toBeLessThan(6000)
  })

  it('although a TLS handshake ends only after the stop has begun', async () => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const { connect } = await import('node:tls')
    const { createConnection } = await import('node:net')
    const { hostname, port } = new URL(sidecar.url)
    const bare = createConnection(Number(port), hostname)
    await once(bare, 'connect')
    await expect.poll(async () => bare.readyState).toBe('open')
    const stopped = sidecar.stop(60_000)
    const now = livedTime()
    const socket = connect({ socket: bare, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
    socket.on('error', () => {})
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')])
    await stopped
    expect(now()).toBeLessThan(4000)
  })
})
