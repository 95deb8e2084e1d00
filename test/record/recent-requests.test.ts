import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import type { Refusal } from '../../src/http/refusal.ts'
import { createRecentRequests, type Wanted } from '../../src/record/recent-requests.ts'
import { exchangeRecord } from '../support/admitted.ts'
import { stillClock } from '../support/clock.ts'
import { requestHead } from '../support/exchange.ts'
import { collectGarbage } from '../support/processes.ts'

const STATUS: Readonly<Record<string, number>> = {
  upstream: 500,
  overloaded: 500,
  'rate-limited': 429,
  unauthorized: 401,
}

/** A request whose strings are all cut out of one text, as the parser of heads cuts them. */
function recorded(id: string, start: number, refusal?: Refusal, text = ''): Exchange {
  const head = requestHead({ target: text.slice(0, 400) || '/path', method: text.slice(400, 440) || 'GET' })
  return exchangeRecord({
    head,
    refusal,
    start,
    duration: 1,
    requestId: id,
    kind: refusal === undefined ? 'forward' : 'refused',
    status: STATUS[refusal?.kind ?? ''] ?? 200,
    client: text.slice(500, 564) || '192.0.2.1',
  })
}

/** When a request has ended. */
const WALL = 1_600_000_000_000

const LIMITED: Refusal = { kind: 'rate-limited', retryAfter: 1 }
const FAILED: Refusal = { kind: 'upstream', failure: 'connection_refused' }
const REFUSED: Refusal = { kind: 'unauthorized', cause: 'missing' }

it('H161 a flood of 429 and one of 401 leave the other requests, and each kind keeps its latest', () => {
  const clock = stillClock()
  const requests = createRecentRequests()
  const add = (id: string, refusal?: Refusal): void => {
    requests.add(recorded(id, clock.monotonic(), refusal), clock.wall())
    clock.advance(20)
  }
  for (let i = 0; i < 401; i += 1) add(`f${i}`, FAILED)
  for (let i = 0; i < 801; i += 1) add(`a${i}`)
  for (let i = 0; i < 401; i += 1) add(`u${i}`, REFUSED)
  for (let i = 0; i < 5000; i += 1) add(`l${i}`, LIMITED)
  expect(requests.remembered().map(({ what, requests }) => [what, requests])).toEqual([
    ['answered', 800],
    ['failed', 400],
    ['rate-limited', 400],
    ['refused', 400],
  ])
  const found = (id: string): number => requests.explain(id).length
  const ids = ['f0', 'f1', 'f400', 'a0', 'a1', 'a800', 'u0', 'u1', 'u400', 'l4599', 'l4600', 'l4999', 'l', '']
  expect(ids.map(found)).toEqual([0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0])
  const rows = requests.recent()
  expect([0, 24, 25, 49, 50, 74, 75, 99].map((i) => rows[i]?.id)).toEqual([
    'l4999',
    'l4975',
    'u400',
    'u376',
    'a800',
    'a776',
    'f400',
    'f376',
  ])
  expect(rows).toHaveLength(100)
})

it('H161 what fails, whether the sidecar says so or the device, is in the list behind a flood of other kinds', () => {
  const clock = stillClock()
  const requests = createRecentRequests()
  const add = (id: string, refusal?: Refusal, outcome: Partial<Exchange> = {}): void => {
    requests.add(Object.assign(recorded(id, clock.monotonic(), refusal), outcome), clock.wall())
    clock.advance(10)
  }
  add('own', undefined, { status: 500 })
  add('refused', FAILED)
  add('busy', { kind: 'overloaded', retryAfter: 1 })
  add('broken', undefined, { status: 200, failure: 'http_response_incomplete' })
  for (let i = 0; i < 600; i += 1) for (const refusal of [undefined, LIMITED, REFUSED]) add(`n${i}`, refusal)
  const ids = (wanted?: Wanted): readonly string[] =>
    requests.recent(wanted).flatMap(({ id }) => (id.startsWith('n') ? [] : [id]))
  expect(ids()).toEqual(['broken', 'busy', 'refused', 'own'])
  expect(ids({ status: '5xx' })).toEqual(['busy', 'refused', 'own'])
  expect(ids({ status: '500' })).toEqual(['busy', 'refused', 'own'])
  for (const reason of [
    'upstream',
    'connection_refused',
    'upstream: connection_refused',
    'connection-refused',
  ])
    expect(ids({ reason })).toEqual(['refused'])
  expect(ids({ reason: 'upstream', status: '429' })).toEqual([])
  expect(requests.recent({ reason: 'rate_limited' })).toHaveLength(100)
})

it('H161 H162 requests with heads of 16 KiB cost no memory but that for their words, which are cut', async () => {
  const requests = createRecentRequests()
  const used = (): number => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const id = (i: number): string => `${i}`.padStart(128, 'i')
  const add = (i: number): void => {
    const now = i * 10
    const path = `/${'p'.repeat(300)}`
    const text = Buffer.from(`${path}?secret${'x'.repeat(16_384)}${i}`).toString('latin1')
    for (const refusal of [undefined, FAILED, LIMITED, REFUSED])
      requests.add(recorded(id(i), now, refusal, text), now)
  }
  for (let i = 0; i < 100; i += 1) add(i)
  const before = used()
  for (let i = 100; i < 1100; i += 1) add(i)
  // The memory of a buffer is given back some time after its object.
  await expect.poll(() => used() - before).toBeLessThan(1 << 20)
  const [explanation] = requests.explain(id(1099))
  expect(explanation?.request.path).toMatch(/^\/p{60,255}$/)
  expect(JSON.stringify(explanation)).not.toContain('secret')
})

it('H161 of a flood so many requests are remembered in a second that the last five seconds are never lost', () => {
  const requests = createRecentRequests()
  const last = new Map<string, number>()
  for (let now = 0; now < 20_000; now += 1) requests.add(recorded(`l${now}`, now, LIMITED), now)
  // The clock is set back, too.
  for (let now = 0; now < 20_000; now += 1) requests.add(recorded(`a${now}`, now), now)
  for (const { what, requests: count } of requests.remembered()) last.set(what, count)
  expect([...last]).toEqual([
    ['answered', 800],
    ['failed', 0],
    ['rate-limited', 400],
    ['refused', 0],
  ])
  const found = (id: string): number => requests.explain(id).length
  expect(['l14999', 'l15000', 'l15079', 'l15080', 'l19000', 'a15000', 'a15159', 'a15160'].map(found)).toEqual(
    [0, 1, 1, 0, 1, 1, 1, 0],
  )
})

it('H160 times are whole milliseconds, durations microseconds', () => {
  const requests = createRecentRequests()
  requests.add(Object.assign(recorded('id', 0), { duration: 0.495_660_000_4 }), WALL)
  const { time, duration } = requests.explain('id')[0]?.request ?? { time: 0.5, duration: 0 }
  expect([Number.isInteger(time), duration]).toEqual([true, 0.496])
})

it('H162 control characters of a request are shown as ?', () => {
  const requests = createRecentRequests()
  requests.add(recorded('id', 0, undefined, '/a\nb\x1b[31m\u010a'.padEnd(400, '/')), WALL)
  expect(requests.explain('id')[0]?.request.path).toMatch(/^\/a\?b\?\[31m\?\/+$/)
})
