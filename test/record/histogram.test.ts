import { expect, it } from 'vitest'
import { createHistogram } from '../../src/record/tally.ts'

it('a bucket of a histogram counts the values up to its bound, in each series', () => {
  const histogram = createHistogram('wait_seconds', 'How long.')
  const api = histogram.series({ endpoint: 'api' })
  histogram.series({ endpoint: 'oauth' })
  for (const seconds of [0, 0.001, 0.0011, 30, 31]) api.observe(seconds)
  const lines = histogram.text().split('\n')
  expect(lines.slice(0, 2)).toEqual(['# HELP wait_seconds How long.', '# TYPE wait_seconds histogram'])
  expect(lines).toContain('wait_seconds_bucket{le="0.001",endpoint="api"} 2')
  expect(lines).toContain('wait_seconds_bucket{le="0.0025",endpoint="api"} 3')
  expect(lines).toContain('wait_seconds_bucket{le="10",endpoint="api"} 3')
  expect(lines).toContain('wait_seconds_bucket{le="30",endpoint="api"} 4')
  expect(lines).toContain('wait_seconds_bucket{le="+Inf",endpoint="api"} 5')
  expect(lines).toContain('wait_seconds_sum{endpoint="api"} 61.0021')
  expect(lines).toContain('wait_seconds_count{endpoint="api"} 5')
  expect(lines).toContain('wait_seconds_count{endpoint="oauth"} 0')
})

it('a histogram without labels has only the bounds as labels', () => {
  const histogram = createHistogram('wait_seconds', 'How long.')
  histogram.series().observe(0.3)
  expect(histogram.text()).toContain('wait_seconds_bucket{le="0.5"} 1\n')
  expect(histogram.text()).toContain('wait_seconds_sum 0.3\nwait_seconds_count 1\n')
})
