import { expect, it } from 'vitest'
import { createRequestCount } from '../../src/verify/request-count.ts'

/** Counts for clients with 2 requests in flight, of 3 kinds. `at` moves the time to a millisecond. */
function counting() {
  let now = 0
  const count = createRequestCount(2, 3, () => now)
  return { count, at: (time: number) => (now = time) }
}

it('a response answers the oldest request on its connection', () => {
  const { count, at } = counting()
  const client = count.client()
  client.sent()
  at(10)
  client.sent()
  at(15)
  expect(client.answered(false)).toEqual({ request: 0, time: 15 })
  client.sent()
  expect(client.answered(false)).toEqual({ request: 1, time: 5 })
  expect(count.totals(2)).toEqual({
    sent: 3,
    responses: 2,
    inFlight: 1,
    longestWait: 0,
    discarded: 0,
    lost: 0,
  })
})

it('requests of an earlier connection are lost, and do not answer for later ones', () => {
  const { count, at } = counting()
  const client = count.client()
  for (let i = 0; i < 4; i++) {
    at(i * 10)
    client.sent()
  }
  expect(count.lostInARow()).toBe(2)
  expect(client.answered(false)).toEqual({ request: 2, time: 10 })
  expect(count.lostInARow()).toBe(0)
  expect(count.totals(2)).toMatchObject({ sent: 4, responses: 1, inFlight: 1, lost: 2 })
})

it('requests behind the announced end of a connection are discarded', () => {
  const { count } = counting()
  const client = count.client()
  client.sent()
  client.sent()
  client.answered(true)
  for (let i = 0; i < 3; i++) client.sent()
  expect(count.totals(2)).toMatchObject({ sent: 5, responses: 1, inFlight: 2, discarded: 2, lost: 0 })
  client.answered(false)
  for (let i = 0; i < 3; i++) client.sent()
  expect(count.totals(2)).toMatchObject({ sent: 8, responses: 2, inFlight: 2, discarded: 2, lost: 2 })
})

it('a late response to a request that was given up is a response', () => {
  const { count } = counting()
  const client = count.client()
  for (let i = 0; i < 3; i++) client.sent()
  for (let i = 0; i < 2; i++) client.answered(false)
  expect(client.answered(false)).toBeUndefined()
  expect(count.totals(2)).toMatchObject({ sent: 3, responses: 3, inFlight: 0, lost: 0 })
})

it('more requests without a response than a client leaves in flight are lost', () => {
  const { count, at } = counting()
  const client = count.client()
  client.sent()
  at(30)
  client.sent()
  at(40)
  expect(count.totals(1)).toMatchObject({ sent: 2, inFlight: 1, longestWait: 10, lost: 1 })
})
