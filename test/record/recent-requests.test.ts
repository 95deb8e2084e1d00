import { expect, it } from 'vitest'
import type { Exchange } from '../../src/http/exchange.ts'
import type { Refusal } from '../../src/http/refusal.ts'
import { createRecentRequests } from '../../src/record/recent-requests.ts'
import { stillClock } from '../support/clock.ts'
import { collectGarbage } from '../support/collect-garbage.ts'
import { exchangeRecord } from '../support/exchange-record.ts'
import { requestHead } from '../support/request-head.ts'

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
    client: text.slice(500, 564) || '192.0.2.1',
  })
}

const LIMITED: Refusal = { kind: 'rate-limited', retryAfter: 1 }
const REFUSED: Refusal = { kind: 'unauthorized', cause: 'missing' }

it('H161 a flood of 429 and one of 401 leave the other requests, and each kind keeps its latest', () => {
  const clock = stillClock()
  const requests = createRecentRequests(clock)
  const add = (id: string, refusal?: Refusal): void => {
    requests.add(recorded(id, clock.monotonic(), refusal))
    clock.advance(10)
  }
  for (let i = 0; i < 1001; i += 1) add(`a${i}`)
  for (let i = 0; i < 501; i += 1) add(`u${i}`, REFUSED)
  for (let i = 0; i < 5000; i += 1) add(`l${i}`, LIMITED)
  expect(requests.remembered().map(({ what, requests }) => [what, requests])).toEqual([
    ['answered', 1000],
    ['rate-limited', 500],
    ['refused', 500],
  ])
  const found = (id: string): number => requests.explain(id).length
  expect(['a0', 'a1', 'a1000', 'u0', 'u1', 'u500', 'l4499', 'l4500', 'l4999', 'l', ''].map(found)).toEqual([
    0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0,
  ])
  const rows = requests.recent()
  expect([rows.length, rows[0]?.id, rows[49]?.id, rows[50]?.id, rows[99]?.id]).toEqual([
    100,
    'l4999',
    'l4950',
    'a1000',
    'a951',
  ])
})

it('H161 H162 requests with heads of 16 KiB cost no memory but that for their words, which are cut', async () => {
  const requests = createRecentRequests(stillClock())
  const used = (): number => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const id = (i: number): string => `${i}`.padStart(128, 'i')
  const add = (i: number): void => {
    const path = `/${'p'.repeat(300)}`
    const text = Buffer.from(`${path}?secret${'x'.repeat(16_384)}${i}`).toString('latin1')
    for (const refusal of [undefined, LIMITED, REFUSED]) requests.add(recorded(id(i), i * 10, refusal, text))
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
  const requests = createRecentRequests(stillClock())
  const last = new Map<string, number>()
  for (let i = 0; i < 20_000; i += 1) requests.add(recorded(`l${i}`, i, LIMITED))
  for (let i = 0; i < 20_000; i += 1) requests.add(recorded(`a${i}`, i))
  for (const { what, requests: count } of requests.remembered()) last.set(what, count)
  expect([...last]).toEqual([
    ['answered', 1000],
    ['rate-limited', 500],
    ['refused', 0],
  ])
  const found = (id: string): number => requests.explain(id).length
  expect(['l14999', 'l15000', 'l15099', 'l15100', 'l19000', 'a15000', 'a15199', 'a15200'].map(found)).toEqual(
    [0, 1, 1, 0, 1, 1, 1, 0],
  )
})

it('H160 times are whole milliseconds, durations microseconds', () => {
  const requests = createRecentRequests(stillClock())
  requests.add(Object.assign(recorded('id', 0), { duration: 0.495_660_000_4 }))
  const { time, duration } = requests.explain('id')[0]?.request ?? { time: 0.5, duration: 0 }
  expect([Number.isInteger(time), duration]).toEqual([true, 0.496])
})

it('H162 control characters of a request are shown as ?', () => {
  const requests = createRecentRequests(stillClock())
  requests.add(recorded('id', 0, undefined, '/a\nb\x1b[31m\u010a'.padEnd(400, '/')))
  expect(requests.explain('id')[0]?.request.path).toMatch(/^\/a\?b\?\[31m\?\/+$/)
})
