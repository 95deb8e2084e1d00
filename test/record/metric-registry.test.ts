import { join } from 'node:path'
import { Gauge, Registry } from 'prom-client'
import { expect, it, vi } from 'vitest'
import { createMetricRegistry } from '../../src/record/metric-registry.ts'
import { readTree } from '../support/source-tree.ts'

it('a bucket of a histogram counts the values up to its bound, in each series', async () => {
  const registry = createMetricRegistry()
  const histogram = registry.histogram('wait_seconds', 'How long.', ['endpoint'])
  const api = histogram('api')
  histogram('oauth')
  for (const seconds of [0, 0.001, 0.0011, 30, 31]) api.observe(seconds)
  const lines = (await registry.text()).split('\n')
  expect(lines.slice(0, 2)).toEqual([
    '# HELP postern_wait_seconds How long.',
    '# TYPE postern_wait_seconds histogram',
  ])
  expect(lines).toContain('postern_wait_seconds_bucket{le="0.001",endpoint="api"} 2')
  expect(lines).toContain('postern_wait_seconds_bucket{le="0.0025",endpoint="api"} 3')
  expect(lines).toContain('postern_wait_seconds_bucket{le="10",endpoint="api"} 3')
  expect(lines).toContain('postern_wait_seconds_bucket{le="30",endpoint="api"} 4')
  expect(lines).toContain('postern_wait_seconds_bucket{le="+Inf",endpoint="api"} 5')
  expect(lines).toContain('postern_wait_seconds_sum{endpoint="api"} 61.0021')
  expect(lines).toContain('postern_wait_seconds_count{endpoint="api"} 5')
  expect(lines).toContain('postern_wait_seconds_count{endpoint="oauth"} 0')
})

it('the bounds of the buckets go from a cached response of a LAN device to the response deadline', async () => {
  const registry = createMetricRegistry()
  registry.histogram('wait_seconds', 'How long.')()
  expect([...(await registry.text()).matchAll(/le="([^"]+)"/g)].map(([, bound]) => bound).join(' ')).toBe(
    '0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 +Inf',
  )
})

it('a histogram without labels has only the bounds as labels', async () => {
  const registry = createMetricRegistry()
  registry.histogram('wait_seconds', 'How long.')().observe(0.3)
  expect(await registry.text()).toContain('postern_wait_seconds_bucket{le="0.5"} 1\n')
  expect(await registry.text()).toContain('postern_wait_seconds_sum 0.3\npostern_wait_seconds_count 1\n')
})

it('a scrape does not reset the counters, and the value of a label is quoted', async () => {
  const registry = createMetricRegistry()
  registry.counter('tries_total', 'Tries.', ['route', 'result'])('/a"b\\', 'good').add(2)
  for (const _time of ['first', 'second'])
    expect(await registry.text()).toContain('postern_tries_total{route="/a\\"b\\\\",result="good"} 2\n')
})

it('a name that is taken or malformed is refused when the family is made', () => {
  const registry = createMetricRegistry()
  registry.counter('tries_total', 'Tries.')
  expect(() => registry.gauge('tries_total', 'Tries.')).toThrow('already been registered')
  expect(() => registry.gauge('tries-now', 'Tries.')).toThrow('Invalid metric name')
  expect(() => registry.histogram('tries_seconds', 'Tries.', ['end-point'])).toThrow('Invalid label name')
  expect(() => registry.histogram('tries_seconds', 'Tries.', ['le'])).toThrow('reserved label')
})

it('prom-client writes the text, also of a metric that another registry holds', async () => {
  const written = vi.spyOn(Registry.prototype, 'getMetricsAsString' as 'metrics')
  const shared = new Registry()
  new Gauge({ name: 'process_things', help: 'Things.', registers: [shared] }).set(3)
  const registry = createMetricRegistry(shared)
  registry.gauge('missing', 'No value.')().value = Number.NaN
  registry.histogram('wait_seconds', 'How long.')
  expect(await registry.text()).toBe(
    '# HELP process_things Things.\n# TYPE process_things gauge\nprocess_things 3\n\n' +
      '# HELP postern_missing No value.\n# TYPE postern_missing gauge\n\n' +
      '# HELP postern_wait_seconds How long.\n# TYPE postern_wait_seconds histogram\n',
  )
  expect(written).toHaveBeenCalledTimes(3)
  written.mockRestore()
})

it('no exposition text is written in src/', () => {
  const source = readTree(join(import.meta.dirname, '../..'), 'src')
  const writing = [...source].filter(([, text]) => /# ?(?:HELP|TYPE)\b|_bucket\{|\{le=/.test(text))
  expect(writing.map(([path]) => path)).toEqual([])
})
