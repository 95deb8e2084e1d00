import { once } from 'node:events'
import type { ServerHttp2Stream } from 'node:http2'
import { PassThrough } from 'node:stream'
import { afterEach, expect, it, vi } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { jsonResponse } from '../../src/http/refusal.ts'
import { bodyOf } from '../../src/listen/http2/upload.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { TurnBudget } from '../../src/system/turn-budget.ts'
import { stillClock } from '../support/clock.ts'
import { rawConnection } from '../support/raw.ts'
import { hasRead, nextAccepted } from '../support/waiting.ts'
import { startStoppableHttp1Server } from './http1-server.ts'

const HEADER_TIMEOUT = 10_000
const STALL_TIMEOUT = 60_000
const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

afterEach(() => {
  vi.restoreAllMocks()
})

/** Clients have used up their turns, until `release` is called. `waiting`: how many wait for a later one. */
function holdTurns(): { readonly waiting: () => number; readonly release: () => void } {
  const waiting: (() => void)[] = []
  const take = vi.spyOn(TurnBudget.prototype, 'take').mockReturnValue(false)
  const wait = vi.spyOn(TurnBudget.prototype, 'wait').mockImplementation((goOn) => void waiting.push(goOn))
  return {
    waiting: () => waiting.length,
    release() {
      take.mockRestore()
      wait.mockRestore()
      for (const goOn of waiting.splice(0)) goOn()
    },
  }
}

/** A server that answers with the body that it got, or that it was broken. */
async function startEcho() {
  const clock = stillClock()
  const limits = { headerTimeout: HEADER_TIMEOUT }
  const server = await startStoppableHttp1Server((exchange) => void echo(exchange as Exchange), limits, clock)
  const accepted = nextAccepted(server.url)
  const client = await rawConnection(server.url)
  return { ...server, clock, client, socket: await accepted }
}

async function echo(exchange: Exchange): Promise<void> {
  const pieces: Buffer[] = []
  try {
    for await (const piece of exchange.body(STALL_TIMEOUT)) pieces.push(piece)
    exchange.respond(jsonResponse(200, { got: Buffer.concat(pieces).toString() }))
  } catch {
    exchange.respond(jsonResponse(400, { got: 'broken' }))
  }
}

it('C20 a request whose client closes its sending side while it waits for its turn is answered', async () => {
  const { client, socket } = await startEcho()
  const turns = holdTurns()
  const ended = once(socket, 'end')
  client.end(REQUEST)
  await ended
  expect(turns.waiting()).toBe(1)
  turns.release()
  expect(await client.closed).toContain('HTTP/1.1 200')
})

it('C20 an upload whose last bytes wait for their turn is whole, although its client closes its sending side', async () => {
  const { client, socket } = await startEcho()
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc')
  await hasRead(socket, client.socket.bytesWritten)
  const turns = holdTurns()
  const ended = once(socket, 'end')
  client.end('def')
  await ended
  expect(turns.waiting()).toBe(1)
  turns.release()
  expect(await client.closed).toContain('{"got":"abcdef"}')
})

it('C26 a head whose rest waits for its turn is not late', async () => {
  const { client, account, clock } = await startEcho()
  client.write(REQUEST.slice(0, 20))
  await expect.poll(() => account.client('127.0.0.1', false).bytes).toBeGreaterThan(0)
  const turns = holdTurns()
  client.write(REQUEST.slice(20))
  await expect.poll(turns.waiting).toBe(1)
  await clock.advance(HEADER_TIMEOUT)
  await nextTurn()
  turns.release()
  expect(await client.waitFor('}')).toContain('HTTP/1.1 200')
})

it('C26 a head that is incomplete is late, although some of it waited for its turn', async () => {
  const { client, clock } = await startEcho()
  const turns = holdTurns()
  client.write(REQUEST.slice(0, 20))
  await expect.poll(turns.waiting).toBe(1)
  await clock.advance(HEADER_TIMEOUT)
  await nextTurn()
  turns.release()
  expect(await client.waitFor('request-timeout')).toContain('HTTP/1.1 400')
})

it('a server that stops serves a request that waits for its turn', async () => {
  const { client, drain, clock } = await startEcho()
  const turns = holdTurns()
  client.write(REQUEST)
  await expect.poll(turns.waiting).toBe(1)
  drain()
  await clock.advance(1_000)
  await nextTurn()
  turns.release()
  expect(await client.closed).toContain('HTTP/1.1 200')
})

it('a bug in reading what waited for its turn is reported, and closes the connection', async () => {
  const bug = new Error('a bug')
  const bugs: unknown[] = []
  const { url } = await startStoppableHttp1Server(() => {}, {}, stillClock(), {
    refusalMessage() {
      throw bug
    },
    onBug: (error) => bugs.push(error),
  })
  const client = await rawConnection(url)
  const turns = holdTurns()
  client.write('no request\r\n\r\n')
  await expect.poll(turns.waiting).toBe(1)
  turns.release()
  expect(await client.closed).toBe('')
  expect(bugs).toEqual([bug])
})

it('C26 an upload whose next bytes wait for their turn has not stalled', async () => {
  const { client, clock } = await startEcho()
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n')
  await client.waitFor('100 Continue')
  const turns = holdTurns()
  client.write('abcdef')
  await expect.poll(turns.waiting).toBe(1)
  await clock.advance(STALL_TIMEOUT)
  await nextTurn()
  turns.release()
  expect(await client.waitFor('}')).toContain('{"got":"abcdef"}')
})

it.each([
  ['has not stalled if its next bytes wait for their turn', 'abc', 'abc'],
  ['has not stalled if a single byte waits for its turn', 'a', 'a'],
  ['has stalled if only a read waits', '', 'stalled'],
])('C26 an upload over HTTP/2 %s', async (_what, arrives, expected) => {
  const source = new PassThrough()
  const stream = Object.assign(source, { aborted: false, rstCode: 0 }) as unknown as ServerHttp2Stream // all that `bodyOf` uses
  const budget = new TurnBudget()
  const turns = holdTurns()
  const clock = stillClock()
  const body = bodyOf(clock, stream, budget, () => {}).within(STALL_TIMEOUT)
  const read = body[Symbol.asyncIterator]()
    .next()
    .then(
      ({ value }) => String(value),
      () => 'stalled',
    )
  source.write(arrives)
  expect(turns.waiting()).toBe(1)
  await clock.advance(STALL_TIMEOUT)
  await nextTurn()
  turns.release()
  expect(await read).toBe(expected)
})

it.each([
  ['is', ''],
  ['and the request behind it are', REQUEST],
])(
  'C20 an upload in many chunks %s read, although the client has closed its sending side',
  async (_, behind) => {
    const { client } = await startEcho()
    // The budget is used up behind each look at the chunks.
    vi.spyOn(TurnBudget.prototype, 'take').mockImplementation((work) => work !== 0)
    const upload = `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(1_000)}0\r\n\r\n`
    client.end(REQUEST + upload + behind)
    const answers = (await client.closed).split('HTTP/1.1 ').slice(1)
    expect(answers.map((answer) => answer.slice(0, 3))).toEqual(
      behind === '' ? ['200', '200'] : ['200', '200', '200'],
    )
    expect(answers[1]).toContain('a'.repeat(1_000))
  },
)
