import { expect, it } from 'vitest'
import { createMetricRegistry } from '../../src/record/metric-registry.ts'

it('a bucket of a histogram counts the values up to its bound, in each series', () => {
  const registry = createMetricRegistry()
  const histogram = registry.histogram('wait_seconds', 'How long.', ['endpoint'])
  const api = histogram('api')
  histogram('oauth')
  for (const seconds of [0, 0.001, 0.0011, 30, 31]) api.observe(seconds)
  const lines = registry.text().split('\n')
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

it('a histogram without labels has only the bounds as labels', () => {
  const registry = createMetricRegistry()
  registry.histogram('wait_seconds', 'How long.')().observe(0.3)
  expect(registry.text()).toContain('postern_wait_seconds_bucket{le="0.5"} 1\n')
  expect(registry.text()).toContain('postern_wait_seconds_sum 0.3\npostern_wait_seconds_count 1\n')
})

it('a scrape does not reset the counters, and the value of a label is quoted', () => {
  const registry = createMetricRegistry()
  registry.counter('tries_total', 'Tries.', ['route', 'result'])('/a"b\\', 'good').add(2)
  for (const _time of ['first', 'second'])
    expect(registry.text()).toContain('postern_tries_total{route="/a\\"b\\\\",result="good"} 2\n')
})
