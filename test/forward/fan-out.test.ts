import { expect, it } from 'vitest'
import { FanOut } from '../../src/forward/fan-out.ts'
import { requestFields } from '../../src/forward/request-fields.ts'
import type { Reader } from '../../src/forward/share.ts'
import { stillClock } from '../support/clock.ts'
import { admitted, PLAIN } from '../support/forward.ts'
import { requestHead } from '../support/request-head.ts'

const CHUNK = Buffer.alloc(48 * 1024, 'x')

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
  const listener = { ended() {}, onBug() {} }
  return {
    ...{ exchange, listener, key: '', fields: requestFields(exchange, null, PLAIN) },
    ...{ since: 0, again: false, sent: 0, full: false },
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
  const [asker, ...others] = readers as [Reader, ...Reader[]] // each test has one
  const ignore = (): void => {}
  const events = { onAlone: ignore, onShared: ignore, onCut: ignore }
  const rules = { clock: stillClock(), joinedFor: 1, keptFor: 0, live: new Set<FanOut>(), ...events }
  const response = new FanOut(asker, rules)
  for (const reader of others) response.join(reader)
  response.begin({ status: 200, fields: [] })
  return response
}

it.each([1, 2])(
  'H185 the device waits while %i slow clients are all that read a body without a length',
  (count) => {
    const readers = Array.from({ length: count }, () => readerOf(1))
    const response = start(...readers)
    const resumed: number[] = []
    response.onDrain(() => resumed.push(1))
    for (let sent = 0; sent < 20; sent += 1) {
      expect(response.write(CHUNK)).toBe(false)
      for (const reader of readers) reader.drain()
    }
    expect(readers.map(({ exchange }) => exchange.outcome)).toEqual(readers.map(() => undefined))
    expect(resumed.length).toBeGreaterThanOrEqual(19)
    // What is in flight when the device is paused comes, too.
    response.write(CHUNK)
    response.write(CHUNK)
    expect(readers.map(({ exchange }) => exchange.outcome)).toEqual(readers.map(() => undefined))
  },
)

it('H185 a client far behind another one is cut off, and the other one is not', () => {
  const [slow, quick] = [readerOf(1), readerOf(Number.POSITIVE_INFINITY)]
  const response = start(slow, quick)
  for (let sent = 0; sent < 4; sent += 1) expect(response.write(CHUNK)).toBe(true)
  expect([slow.exchange.outcome, quick.exchange.outcome]).toEqual(['cut', undefined])
  expect(quick.got).toBe(4 * CHUNK.length)
})
