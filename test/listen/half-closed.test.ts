import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { probeWhileContested } from '../../src/listen/http1/exchange.ts'
import { systemClock } from '../../src/system/clock.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An exchange of a half-closed client, which records its calls. */
function halfClosed() {
  const onEnd = vi.fn<Exchange['onEnd']>()
  return { answered: false, inform: vi.fn(), onEnd }
}

it('C20 a half-closed client is probed only while other requests wait for its place', () => {
  const exchange = halfClosed()
  let contested = false
  probeWhileContested(systemClock, exchange, () => contested)
  vi.advanceTimersByTime(60_000)
  expect(exchange.inform).not.toHaveBeenCalled()
  contested = true
  vi.advanceTimersByTime(1_000)
  expect(exchange.inform.mock.calls).toEqual(Array(4).fill([102, []]))
  contested = false
  vi.advanceTimersByTime(60_000)
  expect(exchange.inform).toHaveBeenCalledTimes(4)
})

it.each(['has its response', 'has ended'])('C20 the probes stop once the exchange %s', (how) => {
  const exchange = halfClosed()
  probeWhileContested(systemClock, exchange, () => true)
  vi.advanceTimersByTime(500)
  expect(exchange.inform).toHaveBeenCalledTimes(2)
  if (how === 'has its response') exchange.answered = true
  else exchange.onEnd.mock.calls[0]?.[0]()
  vi.advanceTimersByTime(500)
  expect(exchange.inform).toHaveBeenCalledTimes(2)
  expect(vi.getTimerCount()).toBe(0)
})

it('any number of probes adds a single listener to the exchange', () => {
  const exchange = halfClosed()
  probeWhileContested(systemClock, exchange, () => true)
  vi.advanceTimersByTime(60_000)
  expect(exchange.onEnd).toHaveBeenCalledTimes(1)
})

it('C20 a client whose response has begun is not probed: writing the response detects its absence', () => {
  const exchange = halfClosed()
  probeWhileContested(systemClock, Object.assign(exchange, { answered: true }), () => true)
  expect(vi.getTimerCount()).toBe(0)
})
