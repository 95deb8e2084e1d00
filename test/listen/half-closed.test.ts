import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Exchange, Outcome } from '../../src/http/exchange.ts'
import { probeWhileContested } from '../../src/listen/http1/half-closed.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const OUTCOME: Outcome = { status: 0, end: 'aborted', requestBytes: 0, responseBytes: 0 }

/** An exchange of a half-closed client, with what it was told. */
function halfClosed() {
  const onEnd = vi.fn<Exchange['onEnd']>()
  return { answered: false, inform: vi.fn(), onEnd }
}

it('C20 a half-closed client is probed only while others wait for its place', () => {
  const exchange = halfClosed()
  let contested = false
  probeWhileContested(exchange, () => contested)
  vi.advanceTimersByTime(60_000)
  expect(exchange.inform).not.toHaveBeenCalled()
  contested = true
  vi.advanceTimersByTime(1_000)
  expect(exchange.inform.mock.calls).toEqual(Array(4).fill([102, []]))
  contested = false
  vi.advanceTimersByTime(60_000)
  expect(exchange.inform).toHaveBeenCalledTimes(4)
})

it.each(['is answered', 'has ended'])('C20 and no longer once its exchange %s', (how) => {
  const exchange = halfClosed()
  probeWhileContested(exchange, () => true)
  vi.advanceTimersByTime(500)
  expect(exchange.inform).toHaveBeenCalledTimes(2)
  if (how === 'is answered') exchange.answered = true
  else exchange.onEnd.mock.calls[0]?.[0](OUTCOME)
  vi.advanceTimersByTime(500)
  expect(exchange.inform).toHaveBeenCalledTimes(2)
  expect(vi.getTimerCount()).toBe(0)
})

it('a half-closed client costs one listener on its exchange, however long it is probed', () => {
  const exchange = halfClosed()
  probeWhileContested(exchange, () => true)
  vi.advanceTimersByTime(60_000)
  expect(exchange.onEnd).toHaveBeenCalledTimes(1)
})

it('C20 a client whose answer has begun is not probed, because the answer is written anyway', () => {
  const exchange = halfClosed()
  probeWhileContested(Object.assign(exchange, { answered: true }), () => true)
  expect(vi.getTimerCount()).toBe(0)
})
