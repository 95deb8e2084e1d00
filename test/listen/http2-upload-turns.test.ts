import type { ServerHttp2Stream } from 'node:http2'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { bodyOf } from '../../src/listen/http2/upload.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { PER_TURN, TurnBudget } from '../../src/system/turn-budget.ts'
import { stillClock } from '../support/clock.ts'

/** A stream and its body, of a client that had its part of this turn of the event loop. */
function lateUpload() {
  const stream = Object.assign(new Readable({ read() {} }), { aborted: false, rstCode: 0 })
  const turns = new TurnBudget()
  while (turns.take(PER_TURN));
  // Proof of the cast: it is all that the body uses of a stream.
  return { stream, body: bodyOf(stillClock(), stream as unknown as ServerHttp2Stream, turns, () => {}) }
}

it('C26 an upload over HTTP/2 is read when its client has its turn, all frames together', async () => {
  const { stream, body } = lateUpload()
  for (let i = 0; i < 1000; i += 1) stream.push('a')
  const pieces: number[] = []
  const whole = (async () => {
    for await (const piece of body.within(60_000)) pieces.push(piece.length)
  })()
  await new Promise(process.nextTick)
  expect(pieces).toEqual([])
  await nextTurn()
  await nextTurn()
  expect(pieces).toEqual([1000])
  stream.push('b')
  stream.push(null)
  await whole
  expect(pieces).toEqual([1000, 1])
})

it('C26 each frame of an upload over HTTP/2 counts in the turn of its client', async () => {
  const stream = Object.assign(new Readable({ read() {} }), { aborted: false, rstCode: 0 })
  const turns = new TurnBudget()
  // The budget now knows which turn this is.
  for (const work of [PER_TURN, 1]) expect(turns.take(work)).toBe(true)
  let read = 0
  // Proof of the cast: as above.
  const body = bodyOf(stillClock(), stream as unknown as ServerHttp2Stream, turns, (bytes) => {
    read += bytes
  })
  for (let i = 0; i < 1000; i += 1) stream.push('a')
  await body.within(60_000)[Symbol.asyncIterator]().next()
  expect(read).toBe(1000)
  expect(turns.take(1)).toBe(false)
})

it('C26 an upload that is given up before its turn is read to its end, so that Node forgets its stream', async () => {
  const { stream, body } = lateUpload()
  stream.push('abc')
  stream.push(null)
  body.discard()
  await expect.poll(() => stream.readableEnded).toBe(true)
})

it('C26 a stream that is destroyed before its turn does no harm', async () => {
  const { stream, body } = lateUpload()
  stream.push('abc')
  const reading = body.within(60_000)[Symbol.asyncIterator]().next()
  stream.destroy()
  body.break()
  await expect(reading).rejects.toThrow()
  await nextTurn()
})
