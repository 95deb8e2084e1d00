import { expect, it } from 'vitest'
import type { Load } from '../../bench/load/generator.ts'
import { readReport } from '../../bench/load/h2load.ts'

const LOAD: Load = {
  url: 'https://127.0.0.1:1',
  headers: {},
  connections: 2,
  until: { seconds: 1 },
  expected: { status: 200, body: 'x'.repeat(10), headBytes: 100 },
  core: undefined,
}

function failed(codes: string, data: number, outcome = '0 errored, 0 timeout'): number {
  const text = `finished in 1.00s, 2000.50 req/s, 1.28MB/s
requests: 2000 total, 2010 started, 2000 done, 2000 succeeded, 0 failed, ${outcome}
status codes: ${codes}
traffic: 1.28MB (1340000) total, 10.01KB (10250) headers (space savings 95.51%), 19.5KB (${data}) data
`
  expect(readReport(text, LOAD)).toMatchObject({ requests: 2_000, requestsPerSecond: 2_000.5 })
  return readReport(text, LOAD).failed
}

it('the report of h2load has no failure if statuses and bodies are right', () => {
  expect(failed('2000 2xx, 0 3xx, 0 4xx, 0 5xx', 20_000)).toBe(0)
})

it('the report of h2load may lack the bodies of the last responses', () => {
  expect(failed('2010 2xx, 0 3xx, 0 4xx, 0 5xx', 20_000)).toBe(0)
})

it('the report of h2load counts other statuses, errors and timeouts as failures', () => {
  expect(failed('1990 2xx, 1 3xx, 4 4xx, 5 5xx', 19_900)).toBe(10)
  expect(failed('2000 2xx, 0 3xx, 0 4xx, 0 5xx', 20_000, '3 errored, 4 timeout')).toBe(7)
})

it('the report of h2load counts every response as a failure if bodies are too short or too long', () => {
  expect(failed('2000 2xx, 0 3xx, 0 4xx, 0 5xx', 18_000)).toBe(2_000)
  expect(failed('2000 2xx, 0 3xx, 0 4xx, 0 5xx', 20_001)).toBe(2_000)
})
