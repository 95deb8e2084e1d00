import { expect, it, vi } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import { probeWhileContested } from '../../src/listen/http1/http1-exchange.ts'
import { stillClock } from '../support/clock.ts'

/** An exchange of a half-closed client, which records its calls. */
function halfClosed() {
  const onEnd = vi.fn<Exchange['onEnd']>()
  return { answered: false, inform: vi.fn(), onEnd }
}

it('C20 a half-closed client is probed only while other requests wait for its place', async () => {
  const exchange = halfClosed()
  const clock = stillClock()
  let contested = false
  probeWhileContested(clock, exchange, () => contested)
  await clock.advance(60_000)
  expect(exchange.inform).not.toHaveBeenCalled()
  contested = true
  await clock.advance(1_000)
  expect(exchange.inform.mock.calls).toEqual(Array(4).fill([102, []]))
  contested = false
  await clock.advance(60_000)
  expect(exchange.inform).toHaveBeenCalledTimes(4)
})

it.each(['has its response', 'has ended'])('C20 the probes stop once the exchange %s', async (how) => {
  const exchange = halfClosed()
  const clock = stillClock()
  probeWhileContested(clock, exchange, () => true)
  await clock.advance(500)
  expect(exchange.inform).toHaveBeenCalledTimes(2)
  if (how === 'has its response') exchange.answered = true
  else exchange.onEnd.mock.calls[0]?.[0]()
  await clock.advance(500)
  expect(exchange.inform).toHaveBeenCalledTimes(2)
  expect(clock.pending).toBe(0)
})

it('any number of probes adds a single listener to the exchange', async () => {
  const exchange = halfClosed()
  const clock = stillClock()
  probeWhileContested(clock, exchange, () => true)
  await clock.advance(60_000)
  expect(exchange.onEnd).toHaveBeenCalledTimes(1)
})

it('C20 a client whose response has begun is not probed: writing the response detects its absence', async () => {
  const exchange = halfClosed()
  const clock = stillClock()
  probeWhileContested(clock, Object.assign(exchange, { answered: true }), () => true)
  expect(clock.pending).toBe(0)
})
