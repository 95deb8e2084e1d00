import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { BrokenBodyError, StalledBodyError } from '../../src/http/refusal.ts'
import { RequestBody } from '../../src/listen/request-body.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { stillClock } from '../support/clock.ts'
import { rawConnection } from '../support/raw.ts'
import { hasRead, nextAccepted } from '../support/waiting.ts'
import { startHttp1Server } from './http1-server.ts'

const UPLOAD = 'POST / HTTP/1.1\r\nHost: x\r\n'
const CHUNKED = `${UPLOAD}Transfer-Encoding: chunked\r\n\r\n`

/** Reads until the end or the error. */
async function read(
  body: AsyncIterable<Buffer>,
  pieces: string[] = [],
): Promise<{ text: string; error: unknown }> {
  let error: unknown
  try {
    for await (const piece of body) pieces.push(piece.toString('latin1'))
  } catch (thrown) {
    error = thrown
  }
  return { text: pieces.join(''), error }
}

/** How long (ms) a body may bring nothing. */
const STALL = 30_000

/** A server that reads the body of its only exchange, and what it reads. */
async function startReading() {
  const clock = stillClock()
  const pieces: string[] = []
  const result = Promise.withResolvers<Awaited<ReturnType<typeof read>>>()
  const outcome = Promise.withResolvers<Exchange>()
  const url = await startHttp1Server(
    (exchange: Exchange) => {
      exchange.onEnd(() => outcome.resolve(exchange))
      void read(exchange.body(STALL), pieces).then((all) => {
        result.resolve(all)
        exchange.respond({ status: 200, fields: [], body: 'read' })
      })
    },
    {},
    clock,
  )
  return { url, clock, pieces, result: result.promise, outcome: outcome.promise }
}

it('C9 a slow body is read for as long as each pause is shorter than the deadline', async () => {
  const { url, clock, pieces, result, outcome } = await startReading()
  const accepted = nextAccepted(url)
  const raw = await rawConnection(url)
  raw.write(CHUNKED)
  await hasRead(await accepted, CHUNKED.length)
  for (let count = 1; count <= 6; count += 1) {
    await clock.advance(STALL - 1)
    raw.write('1\r\nx\r\n')
    await expect.poll(() => pieces, { interval: 1 }).toHaveLength(count)
  }
  raw.write('0\r\n\r\n')
  expect(await result).toEqual({ text: 'xxxxxx', error: undefined })
  await raw.waitFor('read')
  expect(await outcome).toMatchObject({ outcome: 'complete', requestBytes: 6 })
})

it.each([
  ['nothing', ''],
  ['digits of a chunk size', '0'],
  ['a chunk extension', 'a'],
])(
  'C9 a body that brings %s instead of data for longer than the deadline is given up',
  async (_, trickle) => {
    const { url, clock, pieces, result } = await startReading()
    const accepted = nextAccepted(url)
    const raw = await rawConnection(url)
    raw.write(`${CHUNKED}1\r\nx\r\n${trickle === 'a' ? '1;' : ''}`)
    await expect.poll(() => pieces, { interval: 1 }).toEqual(['x'])
    let over = false
    void result.then(() => {
      over = true
    })
    for (let time = 0; time < STALL - 1; time += STALL / 8) {
      raw.write(trickle)
      await hasRead(await accepted, raw.socket.bytesWritten)
      await clock.advance(Math.min(STALL / 8, STALL - 1 - time))
    }
    expect(over).toBe(false)
    await clock.advance(1)
    expect(over).toBe(true)
    const { text, error } = await result
    expect(text).toBe('x')
    expect(error).toBeInstanceOf(StalledBodyError)
    // The rest of the body is never read as a request.
    expect(await raw.closed).toContain('\r\nConnection: close\r\n')
  },
)

it('C21 backpressure stops a client that sends faster than its body is read, and lets it continue', async () => {
  const exchange = Promise.withResolvers<Exchange>()
  const url = await startHttp1Server(exchange.resolve)
  const accepted = nextAccepted(url)
  const raw = await rawConnection(url)
  const socket = await accepted
  const size = 32 * 1024 * 1024
  raw.write(`${UPLOAD}Content-Length: ${size}\r\n\r\n`)
  raw.write(Buffer.alloc(size, 'x'))
  const body = (await exchange.promise).body(5000)
  // The buffers of the kernel and of the sidecar hold a part of the body.
  await expect.poll(() => socket.readableLength >= socket.readableHighWaterMark).toBe(true)
  const taken = socket.bytesRead
  await nextTurn()
  expect(socket.bytesRead).toBe(taken)
  expect(taken).toBeLessThan(size / 8)
  expect(raw.socket.writableLength).toBeGreaterThan(0)
  expect((await read(body)).text).toHaveLength(size)
})

it('C12 a small unread body is drained, and the next request on the connection is served', async () => {
  const targets: string[] = []
  const url = await startHttp1Server((exchange) => {
    targets.push(exchange.head.target)
    exchange.respond({ status: 401, fields: [], body: 'no' })
  })
  const raw = await rawConnection(url)
  raw.write(`${UPLOAD}Content-Length: 10\r\n\r\n01234`)
  await raw.waitFor('no')
  raw.write('56789GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  expect((await raw.closed).match(/HTTP\/1\.1 401/g)).toHaveLength(2)
  expect(targets).toEqual(['/', '/next'])
})

it('C12 a client whose small body takes too long to drain still gets its response', async () => {
  const clock = stillClock()
  const url = await startHttp1Server(
    (exchange) => exchange.respond({ status: 401, fields: [], body: 'no' }),
    {},
    clock,
  )
  const accepted = nextAccepted(url)
  const raw = await rawConnection(url)
  raw.socket.allowHalfOpen = true
  raw.write(`${UPLOAD}Content-Length: 10\r\n\r\n01234`)
  await raw.waitFor('no')
  const ended = once(raw.socket, 'end')
  const socket = await accepted
  await clock.advance(4_999)
  expect(socket.writableEnded).toBe(false)
  await clock.advance(1)
  expect(socket.writableEnded).toBe(true)
  await ended
  raw.write('5678')
  raw.end('9')
  await raw.closed
  expect(raw.error).toBeUndefined()
})

it('C23 100 Continue is sent once, when the body is read and has not arrived', async () => {
  const { url } = await startReading()
  const raw = await rawConnection(url)
  raw.write(`${UPLOAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`)
  expect(await raw.waitFor('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  raw.forget()
  raw.write('ok')
  expect(await raw.waitFor('read')).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
})

it('C24 a broken body yields no more bytes, and its reader gets the error', async () => {
  const body = new RequestBody(stillClock(), () => {}, 1024)
  let calls = 0
  body.onBroken(() => {
    calls += 1
  })
  const pieces = body.within(5000)[Symbol.asyncIterator]()
  body.push(Buffer.from('a'))
  expect((await pieces.next()).value?.toString()).toBe('a')
  body.push(Buffer.from('b'))
  body.break()
  body.break()
  await expect(pieces.next()).rejects.toBeInstanceOf(BrokenBodyError)
  expect([calls, body.bytes, body.unread, body.full]).toEqual([1, 1, true, false])
})
