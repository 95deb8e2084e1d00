import { constants, type ServerHttp2Session } from 'node:http2'
import { expect, it } from 'vitest'
import type { RequestHead } from '../../src/http/exchange.ts'
import type { ListenLimits, Overuse } from '../../src/listen/connection-caps.ts'
import { Misuse } from '../../src/listen/http2/misuse.ts'
import { Overhead } from '../../src/listen/http2/overhead.ts'

/** The head of a frame. */
const FRAME = 9

function openOne() {
  const socket = { bytesRead: 0, bytesWritten: 0 }
  const waiting = { bytes: 0 }
  const overhead = new Overhead(socket, () => waiting.bytes)
  return {
    socket,
    waiting,
    overhead,
    receive(count: number, size: number): void {
      socket.bytesRead += count * (FRAME + size)
    },
    /** DATA frames that are read at once. */
    upload(count: number, size: number): void {
      socket.bytesRead += count * (FRAME + size)
      overhead.addBody(count * size)
    },
  }
}

it('C26 DATA frames of one byte exceed the bound, whether they are read, wait, or belong to a stream that has closed', () => {
  const read = openOne()
  read.upload(33_000, 1)
  expect(read.overhead.share).toBeGreaterThan(1)
  const unread = openOne()
  unread.receive(33_000, 1)
  unread.waiting.bytes = 33_000
  expect(unread.overhead.share).toBeGreaterThan(1)
  const closed = openOne()
  closed.overhead.addRefused()
  closed.receive(40_000, 1)
  expect(closed.overhead.share).toBeGreaterThan(1)
})

it('C26 window updates of one byte exceed the bound, and those of a client that reads small frames do not', () => {
  const { socket, overhead, receive } = openOne()
  receive(100_000, 4)
  socket.bytesWritten = 50_000 * 1024
  expect(overhead.share).toBeLessThan(0)
  receive(400_000, 4)
  expect(overhead.share).toBeGreaterThan(1)
})

it.each<readonly [string, (one: ReturnType<typeof openOne>) => void]>([
  ['5,000 messages of 20 bytes a second', ({ upload }) => upload(50_000, 20)],
  ['200 writes of one byte a second', ({ upload }) => upload(2_000, 1)],
  ['a large upload', ({ upload }) => upload(10_000, 16_384)],
  [
    'uploads that are refused, and have sent all that their window allows',
    ({ receive, overhead }) => {
      for (let i = 0; i < 100; i += 1) {
        receive(4, 16_384)
        overhead.addRefused()
      }
    },
  ],
  [
    '100 requests a second with 100 fields each',
    ({ receive, overhead }) => {
      const fields = Array<string>(200).fill('a')
      // Proof of the cast: as below.
      const head = { target: '/', fields, survey: { size: 200 } } as unknown as RequestHead
      for (let i = 0; i < 1_000; i += 1) {
        // A byte for the representation of each field, and one for the length of each name and value.
        receive(1, 500)
        overhead.addHead(head)
      }
    },
  ],
  [
    '100 requests a second with large heads',
    ({ receive, overhead }) => {
      // Proof of the cast: it is all that is read of a head.
      const head = { target: '/', fields: [], survey: { size: 8_000 } } as unknown as RequestHead
      for (let i = 0; i < 1_000; i += 1) {
        receive(1, 8_050)
        overhead.addHead(head)
      }
    },
  ],
])('C26 %s stay within the bound', (_, act) => {
  const one = openOne()
  act(one)
  expect(one.overhead.share).toBeLessThan(0.3)
})

it('C26 frames of one byte exceed the bound also between uploads that are refused', () => {
  const { overhead, receive } = openOne()
  for (let i = 0; i < 100; i += 1) {
    overhead.addRefused()
    receive(10_000, 1)
  }
  expect(overhead.share).toBeGreaterThan(1)
})

it('C26 each span counts by itself, and what waited for it counts once', () => {
  const { waiting, overhead, receive, upload } = openOne()
  upload(10_000, 16_384)
  receive(60_000, 1)
  waiting.bytes = 60_000
  overhead.newSpan()
  expect(overhead.share).toBe(0)
  overhead.addBody(60_000)
  waiting.bytes = 0
  receive(40_000, 1)
  expect(overhead.share).toBeGreaterThan(1)
})

it('C26 a session beyond the bound is ended with ENHANCE_YOUR_CALM, and one short of it counts in proportion', () => {
  const { overhead, receive } = openOne()
  const ended: (number | undefined)[] = []
  const reasons: Overuse[] = []
  const misuse = new Misuse(
    // Proof of the casts: no more of them is used.
    {
      destroyed: false,
      destroy: (_error: Error, code: number) => ended.push(code),
    } as unknown as ServerHttp2Session,
    {
      limits: { maxResets: 200, maxControlFrames: 200 } as ListenLimits,
      overhead,
      onOveruse: (reason) => reasons.push(reason),
      now: 0,
    },
  )
  receive(13_108, 1)
  misuse.check(500)
  expect(misuse.usedShare(0)).toBeCloseTo(0.5, 3)
  expect(reasons).toEqual([])
  receive(13_108, 1)
  misuse.check(1_000)
  misuse.check(1_500)
  expect(misuse.usedShare(0)).toBe(1)
  expect([ended, reasons]).toEqual([[constants.NGHTTP2_ENHANCE_YOUR_CALM], ['tiny_frames']])
})
