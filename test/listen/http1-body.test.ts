import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { BrokenBodyError, StalledBodyError } from '../../src/http/refusal.ts'
import { RequestBody } from '../../src/listen/request-body.ts'
import { systemClock } from '../../src/system/clock.ts'
import { startHttp1Server } from '../support/http1-server.ts'
import { rawConnection } from '../support/raw.ts'

const UPLOAD = 'POST / HTTP/1.1\r\nHost: x\r\n'
const CHUNKED = `${UPLOAD}Transfer-Encoding: chunked\r\n\r\n`

/** Reads until the end or the error. */
async function read(body: AsyncIterable<Buffer>): Promise<{ text: string; error: unknown }> {
  let text = ''
  try {
    for await (const piece of body) text += piece.toString('latin1')
    return { text, error: undefined }
  } catch (error) {
    return { text, error }
  }
}

/** A server that reads the body of its only exchange, and what it reads. */
async function startReading(stallTimeout: number) {
  const result = Promise.withResolvers<Awaited<ReturnType<typeof read>>>()
  const outcome = Promise.withResolvers<Exchange>()
  const url = await startHttp1Server((exchange: Exchange) => {
    exchange.onEnd(() => outcome.resolve(exchange))
    void read(exchange.body(stallTimeout)).then((all) => {
      result.resolve(all)
      exchange.reply({ status: 200, fields: [], body: 'read' })
    })
  })
  return { url, result: result.promise, outcome: outcome.promise }
}

it('C9 a slow body is read for as long as each pause is shorter than the deadline', async () => {
  const { url, result, outcome } = await startReading(1000)
  const raw = await rawConnection(url)
  raw.write(CHUNKED)
  for (let i = 0; i < 6; i += 1) {
    await pause(250)
    raw.write('1\r\nx\r\n')
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
    const { url, result } = await startReading(500)
    const raw = await rawConnection(url)
    raw.write(`${CHUNKED}1\r\nx\r\n${trickle === 'a' ? '1;' : ''}`)
    const start = performance.now()
    const drip = setInterval(() => raw.write(trickle), 60)
    const { text, error } = await result
    clearInterval(drip)
    expect(text).toBe('x')
    expect(error).toBeInstanceOf(StalledBodyError)
    expect(performance.now() - start).toBeGreaterThan(400)
    // The rest of the body is never read as a request.
    expect(await raw.closed).toContain('\r\nConnection: close\r\n')
  },
)

it('C21 backpressure stops a client that sends faster than its body is read, and lets it continue', async () => {
  const exchange = Promise.withResolvers<Exchange>()
  const url = await startHttp1Server(exchange.resolve)
  const raw = await rawConnection(url)
  const size = 32 * 1024 * 1024
  raw.write(`${UPLOAD}Content-Length: ${size}\r\n\r\n`)
  raw.write(Buffer.alloc(size, 'x'))
  const body = (await exchange.promise).body(5000)
  // The buffers of the kernel and of the sidecar hold a part of the body.
  await expect
    .poll(async () => {
      const before = raw.socket.bytesWritten - raw.socket.writableLength
      await pause(50)
      return raw.socket.bytesWritten - raw.socket.writableLength === before
    })
    .toBe(true)
  expect(raw.socket.writableLength).toBeGreaterThan(0)
  expect((await read(body)).text).toHaveLength(size)
})

it('C12 a small unread body is drained, and the next request on the connection is served', async () => {
  const targets: string[] = []
  const url = await startHttp1Server((exchange) => {
    targets.push(exchange.head.target)
    exchange.reply({ status: 401, fields: [], body: 'no' })
  })
  const raw = await rawConnection(url)
  raw.write(`${UPLOAD}Content-Length: 10\r\n\r\n01234`)
  await raw.waitFor('no')
  raw.write('56789GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  expect((await raw.closed).match(/HTTP\/1\.1 401/g)).toHaveLength(2)
  expect(targets).toEqual(['/', '/next'])
})

it('C12 a client whose small body takes too long to drain still gets its response', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const url = await startHttp1Server((exchange) => {
      exchange.reply({ status: 401, fields: [], body: 'no' })
    })
    const raw = await rawConnection(url)
    raw.socket.allowHalfOpen = true
    raw.write(`${UPLOAD}Content-Length: 10\r\n\r\n01234`)
    await raw.waitFor('no')
    const ended = once(raw.socket, 'end')
    vi.advanceTimersByTime(5_000)
    await ended
    raw.write('5678')
    raw.end('9')
    await raw.closed
    expect(raw.error).toBeUndefined()
  } finally {
    vi.useRealTimers()
  }
})

it('C23 100 Continue is sent once, when the body is read and has not arrived', async () => {
  const { url } = await startReading(5000)
  const raw = await rawConnection(url)
  raw.write(`${UPLOAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`)
  expect(await raw.waitFor('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  raw.forget()
  raw.write('ok')
  expect(await raw.waitFor('read')).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
})

it('C24 a broken body yields no more bytes, and its reader gets the error', async () => {
  const body = new RequestBody(systemClock, () => {}, 1024)
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
