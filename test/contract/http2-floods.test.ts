import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { expectUnharmed } from '../support/expectations.ts'
import {
  CODE,
  FLAG,
  FRAME,
  frame,
  headers,
  hpack,
  hpackIndexed,
  hpackRemembered,
  ping,
  requestFields,
  resetStream,
  SETTING,
  SETTINGS_ACK,
  settings,
  windowUpdate,
} from '../support/http2-frames.ts'
import { type RawSession, rawSession } from '../support/http2-session.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { passUntilClosed } from '../support/waiting.ts'
import { type AttackKind, startAttack } from './attack.ts'

let sidecar: TestSidecar
let token: string
beforeAll(async () => {
  sidecar = await startSidecar({ transport: 'h2' })
  token = await sidecar.token()
})
// Until then the misuse in one test would count against the next one, which uses the same address.
afterEach(() => sidecar.clock.advance(60_000))

const handled = (): Promise<number> => sidecar.metric('postern_requests_total')
const cut = (reason: string): Promise<number> => sidecar.metric('postern_connections_cut_total', { reason })

/** The first stream numbers of a client: 1, 3, 5 … */
const streams = (count: number): number[] => Array.from({ length: count }, (_, index) => 2 * index + 1)

/** Sends the pieces until all are sent or the connection is closed. */
async function sendAll(session: RawSession, pieces: readonly Buffer[]): Promise<void> {
  for (let at = 0; at < pieces.length && !session.raw.socket.destroyed; at += 50) {
    session.send(...pieces.slice(at, at + 50))
    await nextTurn()
  }
}

/** The same. Resolves when the connection is closed. */
async function sendUntilClosed(session: RawSession, pieces: readonly Buffer[]): Promise<void> {
  await sendAll(session, pieces)
  await session.closed
}

/** Sends so many bytes in such pieces, and has the sidecar judge the session when it has read them. */
async function sendAndJudge(session: RawSession, piece: Buffer, bytes: number): Promise<void> {
  const before = pongs(session)
  await sendAll(session, Array(Math.ceil(bytes / piece.length)).fill(piece))
  session.send(ping())
  await expect.poll(() => pongs(session)).toBe(before + 1)
  await sidecar.clock.advance(500)
}

const pongs = ({ frames }: RawSession): number => frames.filter(({ type }) => type === FRAME.ping).length

const authorization = (): string[] => ['authorization', `Bearer ${token}`]

describe('H37 Streams that are opened only to be reset', () => {
  it('H37 rapid reset (CVE-2023-44487) ends the session early, and few of its requests are handled', async () => {
    const before = await handled()
    const session = await rawSession(sidecar.url)
    const attack = streams(3000).map((id) => Buffer.concat([headers(id, requestFields()), resetStream(id)]))
    await sendUntilClosed(session, attack)
    expect(session.farewell).toBe(CODE.enhanceYourCalm)
    expect((await handled()) - before).toBeLessThan(150)
    expect(await cut('max_resets')).toBe(1)
    expect(sidecar.device.connections, 'connections to the device for requests without a token').toBe(0)
    await expectUnharmed(sidecar, token)
  })

  it('H37 rapid reset in one TLS record is counted as max_resets, not as protocol_error', async () => {
    const before = [await cut('max_resets'), await cut('protocol_error')]
    const session = await rawSession(sidecar.url)
    session.send(SETTINGS_ACK, ping())
    await session.waitFor(({ type }) => type === FRAME.ping)
    // The shortest frames possible, so that all of them fit into one TLS record.
    const block = Buffer.concat([...[2, 7, 4].map(hpackIndexed), Buffer.from('\x01\x06device')])
    const get = (id: number): Buffer => frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, id, block)
    session.send(...streams(300).flatMap((id) => [get(id), resetStream(id)]))
    await session.closed
    const after = [await cut('max_resets'), await cut('protocol_error')]
    expect(after.map((count, i) => count - (before[i] ?? 0))).toEqual([1, 0])
  })

  it('H37 rapid reset with a token ends the session early, and few of its requests reach the device', async () => {
    const before = sidecar.device.requests.length
    const session = await rawSession(sidecar.url)
    const attack = streams(3000).map((id) =>
      Buffer.concat([headers(id, requestFields(authorization())), resetStream(id)]),
    )
    await sendUntilClosed(session, attack)
    expect(sidecar.device.requests.length - before).toBeLessThan(150)
    await expectUnharmed(sidecar, token)
  })

  it('H37 requests that are reset in the packet of their HEADERS are not handled, and a request in the same packet is', async () => {
    const [before, seen] = [await handled(), sidecar.device.requests.length]
    const session = await rawSession(sidecar.url)
    const abandoned = streams(50).map((id) =>
      Buffer.concat([headers(id, requestFields(authorization())), resetStream(id)]),
    )
    session.send(...abandoned, headers(101, requestFields(authorization())))
    expect(await session.status(101)).toBe(200)
    expect((await handled()) - before).toBe(1)
    expect(sidecar.device.requests.length - seen).toBe(1)
    session.raw.end()
  })

  it.each([0, 10, 65_535])(
    'H37 resets of responses that wait for a window of %i end the session, and the process survives',
    async (window) => {
      const ids = streams(1000)
      for (const [end, lag] of [true, false].flatMap((end) =>
        [0, 1, 20, 90].map((lag) => [end, lag] as const),
      )) {
        const session = await rawSession(sidecar.url, {
          opening: [settings([SETTING.initialWindowSize, window])],
        })
        const attack = ids.map((id, at) =>
          Buffer.concat([
            headers(id, requestFields(), end),
            ...(at < lag ? [] : [resetStream(id - 2 * lag)]),
          ]),
        )
        await sendUntilClosed(session, attack)
      }
      await expectUnharmed(sidecar, token)
    },
  )

  it('H37 a client that resets a hundred requests keeps its connection', async () => {
    const session = await rawSession(sidecar.url)
    for (const id of streams(100)) session.send(headers(id, requestFields()), resetStream(id))
    session.send(headers(1001, requestFields(authorization())))
    expect(await session.status(1001)).toBe(200)
    session.raw.end()
  })

  it.each([
    ['a window that overflows', (id: number) => windowUpdate(id, 0x7f_ff_ff_ff)],
    ['a window update of 0', (id: number) => windowUpdate(id, 0)],
    ['a second header block', (id: number) => headers(id, requestFields(), false)],
    ['a body longer than its length', (id: number) => frame(FRAME.data, 0, id, Buffer.from('abc'))],
    ['a body behind END_STREAM', (id: number) => frame(FRAME.data, FLAG.endStream, id, Buffer.from('a'))],
  ])(
    'H37 MadeYouReset (CVE-2025-8671) by %s ends the session early, as rapid reset does',
    async (_name, provoke) => {
      const before = await handled()
      const session = await rawSession(sidecar.url)
      const post = requestFields([...authorization(), 'content-length', '2'], { ':method': 'POST' })
      const attack = streams(3000).map((id) =>
        Buffer.concat([headers(id, post, false), provoke(id), provoke(id)]),
      )
      await sendUntilClosed(session, attack)
      expect((await handled()) - before).toBeLessThan(150)
      await expectUnharmed(sidecar, token)
    },
  )

  it('H37 streams that nghttp2 refuses itself end the session early', async () => {
    const session = await rawSession(sidecar.url)
    const attack = streams(5000).map((id) => headers(id, requestFields(['Upper-Case', 'x'])))
    await sendUntilClosed(session, attack)
    await expectUnharmed(sidecar, token)
  })

  it('H37 5000 streams on a session that allows a hundred do no harm', async () => {
    const session = await rawSession(sidecar.url)
    await session.waitFor(({ type }) => type === FRAME.settings)
    session.send(SETTINGS_ACK)
    const post = requestFields([], { ':method': 'POST' })
    const attack = streams(5000).map((id) => headers(id, post, false))
    await sendAll(session, attack)
    session.raw.end()
    await expectUnharmed(sidecar, token)
  })
})

describe('H38 Floods of frames that cost work and carry no request', () => {
  const forStream = requestFields([], { ':method': 'POST' })
  const floods: readonly (readonly [name: string, opening: () => Buffer, piece: Buffer])[] = [
    ['CVE-2019-9512 PING', () => Buffer.alloc(0), ping()],
    ['CVE-2019-9515 SETTINGS', () => Buffer.alloc(0), settings()],
    ['SETTINGS with values', () => Buffer.alloc(0), settings([SETTING.headerTableSize, 4096])],
    ['SETTINGS ACK', () => Buffer.alloc(0), SETTINGS_ACK],
    ['PING ACK', () => Buffer.alloc(0), frame(FRAME.ping, FLAG.ack, 0, Buffer.alloc(8))],
    ['CVE-2019-9513 PRIORITY', () => Buffer.alloc(0), frame(FRAME.priority, 0, 1, Buffer.alloc(5))],
    ['frames of an unknown type', () => Buffer.alloc(0), frame(0xbb, 0, 0)],
    ['RST_STREAM of one stream', () => headers(1, forStream, false), resetStream(1)],
    [
      'CVE-2019-9518 empty DATA',
      () => headers(1, requestFields(authorization(), { ':method': 'POST' }), false),
      frame(FRAME.data, 0, 1),
    ],
    [
      'CVE-2024-27983 CONTINUATION',
      () => frame(FRAME.headers, 0, 1, hpack(requestFields())),
      frame(FRAME.continuation, 0, 1, hpack(['x', 'y'])),
    ],
    [
      'empty CONTINUATION',
      () => frame(FRAME.headers, 0, 1, hpack(requestFields())),
      frame(FRAME.continuation, 0, 1),
    ],
  ]

  it.each(floods)('H38 %s: the connection is closed', async (_name, opening, piece) => {
    const session = await rawSession(sidecar.url)
    session.send(opening())
    await sendUntilClosed(session, Array(20_000).fill(piece))
    await expectUnharmed(sidecar, token)
  })

  it('H38 no socket is left of floods whose clients never close their side', async () => {
    const wires = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
    const kinds: readonly AttackKind[] = ['PING', 'SETTINGS', 'CONTINUATION']
    const targets = await Promise.all(
      kinds.map(async (kind) => ({ kind, attacked: await startSidecar({ transport: 'h2' }) })),
    )
    for (const { attacked } of targets) await attacked.metrics()
    const before = wires()
    for (const { kind, attacked } of targets) {
      const plan = { connections: 2, rate: 100, addresses: 'one', network: 1, token: '', path: '/' } as const
      const port = Number(new URL(attacked.url).port)
      const attack = await startAttack({ kind, port, ...plan }, temporaryDirectory())
      onTestFinished(async () => void (await attack.stop()))
      await expect
        .poll(() => attacked.metric('postern_connections_cut_total'), { message: kind })
        .toBeGreaterThan(6)
      await attack.stop()
      await expect.poll(() => attacked.metric('postern_connections'), { message: kind }).toBe(0)
    }
    await expect.poll(wires).toBeLessThanOrEqual(before)
  })

  it('H38 a hundred PING frames and a SETTINGS frame are answered', async () => {
    const session = await rawSession(sidecar.url)
    session.send(...Array<Buffer>(100).fill(ping()), settings([SETTING.initialWindowSize, 1 << 20]))
    await expect.poll(() => pongs(session)).toBe(100)
    session.send(headers(1, requestFields(authorization())))
    expect(await session.status(1)).toBe(200)
    session.raw.end()
  })

  it('H38 a PING flood whose answers the client does not read is cut off at constant memory', async () => {
    const session = await rawSession(sidecar.url)
    session.raw.socket.pause()
    const before = process.memoryUsage().rss
    await sendAll(session, Array(20_000).fill(ping()))
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    expect((process.memoryUsage().rss - before) / (1 << 20)).toBeLessThan(50)
  })

  const one = frame(FRAME.data, 0, 1, Buffer.from('x'))
  it.each<readonly [string, () => readonly string[], number | undefined, Buffer]>([
    ['DATA frames of one byte of an upload that is read', authorization, undefined, one],
    ['DATA frames of one byte of a stream that has closed', () => [], 401, one],
    ['window updates of one byte', authorization, undefined, windowUpdate(1, 1)],
  ])('C26 %s end their session early', async (_name, fields, status, piece) => {
    const before = await cut('tiny_frames')
    const session = await rawSession(sidecar.url)
    session.send(headers(1, requestFields(fields(), { ':method': 'POST' }), false))
    if (status !== undefined) expect(await session.status(1)).toBe(status)
    // Judged every 500 ms, and 256 KiB are allowed.
    await sendAndJudge(session, piece, 200_000)
    expect((await cut('tiny_frames')) - before).toBe(0)
    await sendAndJudge(session, piece, 200_000)
    expect((await cut('tiny_frames')) - before).toBe(1)
    await passUntil(sidecar.clock, session.closed)
    expect(session.farewell).toBe(CODE.enhanceYourCalm)
    await expectUnharmed(sidecar, token)
  })

  it('C26 an upload of 3,000 messages of 20 bytes, and one of 5,000 writes of one byte, arrive whole', async () => {
    const session = await rawSession(sidecar.url)
    const before = sidecar.device.requests.length
    const post = requestFields(authorization(), { ':method': 'POST' })
    for (const [id, count, size] of [
      [1, 3_000, 20],
      [3, 5_000, 1],
    ] as const) {
      session.send(headers(id, post, false))
      await sendAll(session, Array(count).fill(frame(FRAME.data, 0, id, Buffer.alloc(size, 'x'))))
      session.send(frame(FRAME.data, FLAG.endStream, id))
      expect(await session.status(id)).toBe(200)
    }
    const sizes = sidecar.device.requests.slice(before).map(({ body }) => body?.length)
    expect(sizes).toEqual([60_000, 5_000])
    expect(session.farewell).toBeUndefined()
    session.raw.end()
  })

  it('C26 a hundred requests with heads of 8,000 bytes are served, and are no overhead', async () => {
    const session = await rawSession(sidecar.url)
    const fields = requestFields([...authorization(), 'x-large', 'x'.repeat(8_000)])
    for (const id of streams(100)) {
      session.send(headers(id, fields))
      expect(await session.status(id)).toBe(200)
    }
    await sendAndJudge(session, windowUpdate(0, 1), 1)
    expect(session.farewell).toBeUndefined()
    session.raw.end()
  })

  it('H38 20,000 window updates of one byte (CVE-2019-9511) cost less than 50 µs each', async () => {
    const session = await rawSession(sidecar.url)
    const begun = process.cpuUsage()
    session.send(
      ...Array<Buffer>(20_000).fill(windowUpdate(0, 1)),
      headers(1, requestFields(authorization())),
    )
    expect(await session.status(1)).toBe(200)
    const { user, system } = process.cpuUsage(begun)
    expect((user + system) / 20_000, 'µs a frame, sending included').toBeLessThan(50)
    session.raw.end()
  })
})

describe('Header blocks that grow', () => {
  it('H39 an HPACK bomb, 4000 bytes referenced 10,000 times, is refused at constant memory', async () => {
    const session = await rawSession(sidecar.url)
    const bomb = [...Array<Buffer>(10_000).fill(hpackIndexed(62))]
    const block = Buffer.concat([hpack(requestFields()), hpackRemembered('x', 'a'.repeat(4000)), ...bomb])
    const before = process.memoryUsage().rss
    for (const id of streams(50)) session.send(frame(FRAME.headers, 5, id, block))
    expect(await session.outcome(1)).not.toBe('end')
    expect((process.memoryUsage().rss - before) / (1 << 20)).toBeLessThan(50)
    session.raw.end()
    await expectUnharmed(sidecar, token)
  })

  it('CVE-2019-9516 8000 fields without a name are dropped at constant memory', async () => {
    const session = await rawSession(sidecar.url)
    const before = process.memoryUsage().rss
    const nameless = Array<string>(8000).fill('')
    for (const id of streams(15)) session.send(headers(id, requestFields(nameless)))
    for (const id of streams(15)) expect(await session.status(id)).toBe(401)
    session.send(headers(101, requestFields([...authorization(), ...nameless])))
    expect(await session.status(101)).toBe(200)
    expect(sidecar.device.requests.at(-1)?.fields).not.toContain('')
    expect((process.memoryUsage().rss - before) / (1 << 20)).toBeLessThan(50)
    session.raw.end()
    await expectUnharmed(sidecar, token)
  })

  it.each([
    ['as soon as it is sent', nextTurn],
    ['once it is read', (session: RawSession) => session.waitFor(({ type }) => type === FRAME.goaway)],
  ])(
    'C20 the process survives a header block of invalid HPACK and a reset %s (CVE-2025-59465)',
    async (_name, moment) => {
      const invalidBlock = frame(FRAME.headers, FLAG.endHeaders, 1, Buffer.alloc(16_384, 0xff))
      for (let turn = 0; turn < 20; turn += 1) {
        const opening = [settings(), headers(3, requestFields()), invalidBlock]
        const session = await rawSession(sidecar.url, { opening })
        await moment(session)
        session.raw.reset()
      }
      await passUntilClosed(sidecar)
      await expectUnharmed(sidecar, token)
    },
  )
})
