import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { expect, it, onTestFinished, vi } from 'vitest'
import { clientSecretIn, recordsOfOneByte } from '../../bench/load/tls-records.ts'
import { nextTurn, turnOfLoop } from '../../src/system/clock.ts'
import { Sluice } from '../../src/system/sluice.ts'
import { TurnBudget } from '../../src/system/turn-budget.ts'
import { closeLater } from '../support/cleanup.ts'
import { FRAME, frame, headers, requestFields } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { socketPair } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** The most bytes of a stranger that TLS gets in a turn: twice its budget at first, and a piece. */
const MOST = 20 * 1024

/** Sizes by the turn of the event loop in which they came. */
class Turns {
  readonly #sizes = new Map<number, number>()

  add(size: number): void {
    this.#sizes.set(turnOfLoop(), (this.#sizes.get(turnOfLoop()) ?? 0) + size)
  }

  get most(): number {
    return Math.max(0, ...this.#sizes.values())
  }

  get all(): number {
    return [...this.#sizes.values()].reduce((sum, size) => sum + size, 0)
  }
}

async function opened(turns = new TurnBudget()) {
  const { from, to } = await socketPair()
  let held = 0
  const sluice = new Sluice(to, turns, {
    isKnown: () => false,
    onHeld(change) {
      held += change
    },
  })
  sluice.on('error', () => {})
  return { from, to, sluice, held: () => held }
}

it('C26 what a stranger sends is let through whole and in order, a little in each turn of the event loop', async () => {
  const { from, sluice, held } = await opened()
  const sent = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251))
  const turns = new Turns()
  const pieces: Buffer[] = []
  sluice.on('data', (piece: Buffer) => {
    turns.add(piece.length)
    pieces.push(piece)
  })
  from.end(sent)
  await once(sluice, 'end')
  expect(Buffer.concat(pieces).equals(sent)).toBe(true)
  expect(turns.most).toBeLessThanOrEqual(MOST)
  expect(held()).toBe(0)
})

it('C26 what waits is counted, and given back when the connection closes', async () => {
  const { from, to, sluice, held } = await opened()
  sluice.on('data', () => {})
  from.write(Buffer.alloc(64 * 1024))
  await once(to, 'data')
  expect(held()).toBeGreaterThan(0)
  expect(to.isPaused()).toBe(true)
  sluice.destroy()
  expect(held()).toBe(0)
  await once(to, 'close')
})

it('a stream that reads nothing stops the connection, and goes on from there', async () => {
  const { from, to, sluice } = await opened()
  from.end(Buffer.alloc(10_000_000))
  await once(sluice, 'readable')
  // Then neither the connection nor the sluice reads on by itself.
  const isFull = (): boolean => to.isPaused() && sluice.readableLength >= sluice.readableHighWaterMark
  await expect.poll(isFull).toBe(true)
  const read = to.bytesRead
  await nextTurn()
  expect(to.bytesRead - read).toBeLessThanOrEqual(64 * 1024)
  expect(sluice.readableLength).toBeLessThanOrEqual(4 * 64 * 1024)
  let got = 0
  for await (const piece of sluice) got += (piece as Buffer).length
  expect(got).toBe(10_000_000)
})

it('what is written arrives, and an end and a reset reach the other side', async () => {
  const first = await opened()
  first.sluice.cork()
  for (const text of ['a', 'b', 'c']) first.sluice.write(text)
  first.sluice.uncork()
  first.sluice.end('d')
  const received: Buffer[] = []
  first.from.on('data', (piece: Buffer) => received.push(piece))
  await once(first.from, 'end')
  expect(Buffer.concat(received).toString()).toBe('abcd')

  const second = await opened()
  const failed = once(second.sluice, 'error')
  second.sluice.resume()
  second.from.resetAndDestroy()
  await failed.catch((error: unknown) => expect(error).toMatchObject({ code: 'ECONNRESET' }))
  await expect.poll(() => second.sluice.destroyed).toBe(true)
})

/** The pieces of one byte that streams and sockets of this process get, by turn of the event loop. */
function countSingleBytes(): Turns {
  const turns = new Turns()
  const { push } = Readable.prototype
  Readable.prototype.push = function (chunk, encoding) {
    if (Buffer.isBuffer(chunk) && chunk.length === 1) turns.add(1)
    return push.call(this, chunk, encoding)
  }
  onTestFinished(() => {
    Readable.prototype.push = push
  })
  return turns
}

/** What an upload of one byte in each frame, or record, sends at once. */
const COUNT = 6_000

async function sendFrames({ url }: TestSidecar): Promise<void> {
  const session = await rawSession(url)
  session.send(
    headers(1, requestFields([], { ':method': 'POST' }), false),
    Buffer.alloc(COUNT * 10, frame(FRAME.data, 0, 1, Buffer.from('x'))),
  )
  await session.status(1)
}

async function sendRecords({ url }: TestSidecar): Promise<void> {
  const { hostname, port } = new URL(url)
  const wire = connect(Number(port), hostname)
  const socket = connectTls({
    ...{ socket: wire, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] },
    ...{ ciphers: 'TLS_AES_128_GCM_SHA256', minVersion: 'TLSv1.3' },
  })
  closeLater(() => void wire.destroy())
  socket.on('error', () => {})
  let secret: Buffer | undefined
  socket.on('keylog', (line: Buffer) => {
    secret ??= clientSecretIn(line)
  })
  await once(socket, 'secureConnect')
  // Its end of the handshake goes before it.
  await new Promise((resolve) => socket.write('GET /', resolve))
  const rest = Buffer.from(`${'a'.repeat(COUNT)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  wire.write(recordsOfOneByte(secret ?? Buffer.alloc(32), rest, 1))
  const [response] = (await once(socket, 'data')) as [Buffer]
  expect(response.toString()).toContain('HTTP/1.1 401')
}

it.each([
  ['HTTP/2 frames', 'h2', sendFrames, 10],
  ['TLS records', 'tls', sendRecords, 23],
] as const)(
  'C26 of %s of one byte that a stranger sends on twenty connections, a turn of the event loop reads a part',
  async (_, transport, send, size) => {
    const sidecar = await startSidecar({ transport })
    const counted = countSingleBytes()
    await Promise.all(Array.from({ length: 20 }, () => send(sidecar)))
    expect(counted.all).toBeGreaterThan(COUNT)
    expect(counted.most).toBeLessThanOrEqual(MOST / size)
  },
)

it('C26 a client with a grant is read without turns', async () => {
  const sidecar = await startSidecar({ transport: 'tls' })
  const sluiced = vi.spyOn(Sluice.prototype, 'push')
  onTestFinished(() => sluiced.mockRestore())
  const ask = async (token: string): Promise<number> => {
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    sluiced.mockClear()
    expect((await sidecar.request({ token })).status).toBe(200)
    // Those of the admin listener are of another class.
    return sluiced.mock.contexts.filter((each) => Object(each).constructor === Sluice).length
  }
  const token = await sidecar.token()
  expect(await ask(token)).toBeGreaterThan(0)
  expect(await ask(token)).toBe(0)
})
