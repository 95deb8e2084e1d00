import { expect, it } from 'vitest'
import { requestFields } from '../../src/forward/request-fields.ts'
import type { Reader } from '../../src/forward/share.ts'
import { SharedResponse } from '../../src/forward/shared-response.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { requestHead } from '../support/exchange.ts'

const CHUNK = Buffer.alloc(48 * 1024, 'x')
/** A copy is at most 128 KiB. */
const OF_COPY = 2

/** A client whose connection takes so many bytes before it is full. */
function readerOf(takes: number): Reader & { drain(): void; readonly got: number } {
  const exchange = admitted(requestHead())
  const state = { got: 0, takes, drain: () => {} }
  Object.assign(exchange, {
    write(piece: Buffer) {
      state.got += piece.length
      return state.got < state.takes
    },
    onDrain: (listener: () => void) => Object.assign(state, { drain: listener }),
  })
  return {
    ...{ exchange, listener: { ended() {}, onBug() {}, refuses: () => true }, key: '' },
    ...{ fields: requestFields(exchange, null, PLAIN), since: 0, again: false },
    get got() {
      return state.got
    },
    drain() {
      state.takes += CHUNK.length
      state.drain()
    },
  }
}

function start(...readers: Reader[]) {
  return startKept(0, ...readers)
}

/** @param keptFor how long (ms) others may join the whole response */
function startKept(keptFor: number, ...readers: Reader[]) {
  const clock = stillClock()
  const [asker, ...others] = readers as [Reader, ...Reader[]] // each test has one
  const alone: Reader[] = []
  const held = new Set<SharedResponse>()
  const response = new SharedResponse(asker, {
    ...{ clock, streamAfter: 60_000, keptFor, held },
    onAlone: (reader) => alone.push(reader),
    onShared() {},
  })
  held.add(response)
  for (const reader of others) response.join(reader)
  response.begin({ status: 200, fields: [] })
  return { clock, response, alone, held }
}

it('H185 a slow client that asked first holds up the device only when the copy for the others is given up', () => {
  const [slow, other] = [readerOf(1), readerOf(1)]
  const { response, alone, held } = start(slow, other)
  for (let sent = 0; sent < OF_COPY; sent += 1) expect(response.write(CHUNK)).toBe(true)
  expect([slow.got, alone, held.size]).toEqual([CHUNK.length, [], 1])
  expect(response.write(CHUNK)).toBe(false)
  expect([alone, held.size, other.got]).toEqual([[other], 0, 0])
})

it('H185 the client that asked first gets each byte, and the device waits for it and goes on when it has read', () => {
  const slow = readerOf(1)
  const { response } = start(slow)
  let resumed = 0
  response.onDrain(() => {
    resumed += 1
  })
  let sent = 0
  for (; sent <= OF_COPY; sent += 1) response.write(CHUNK)
  for (let drains = 0; drains < 10; drains += 1) slow.drain()
  expect([slow.got, resumed > 0]).toEqual([sent * CHUNK.length, true])
  for (; sent < 20; sent += 1) {
    const taken = response.write(CHUNK)
    expect(slow.got).toBe((sent + 1) * CHUNK.length)
    const before = resumed
    if (!taken) slow.drain()
    expect(resumed).toBe(taken ? before : before + 1)
  }
})

it('H185 a client that reads at full speed never stops the device, however long the response is', () => {
  const quick = readerOf(Number.POSITIVE_INFINITY)
  const { response, held } = start(quick)
  for (let sent = 0; sent < 100; sent += 1) expect(response.write(CHUNK)).toBe(true)
  expect([quick.got, held.size]).toEqual([100 * CHUNK.length, 0])
})

it('H183 a response that is closed before its end is not kept', () => {
  const kept = startKept(60_000, readerOf(1))
  kept.response.end()
  expect([kept.clock.pending, kept.held.size]).toEqual([1, 1])
  kept.response.close()
  expect([kept.clock.pending, kept.held.size]).toEqual([0, 0])
  const closed = startKept(60_000, readerOf(1))
  closed.response.close()
  closed.response.end()
  expect([closed.clock.pending, closed.held.size]).toEqual([0, 0])
})
