import { expect, it } from 'vitest'
import { parseMetrics } from '../../bench/metrics.ts'

const TEXT = `# HELP postern_connections Open client connections.
# TYPE postern_connections gauge
postern_connections{protocol="http/1.1"} 3
postern_connections{protocol="h2"} 4
postern_connections_refused_total{reason="max_connections"} 5
postern_connections_refused_total{reason="max_connections_per_client"} 6
postern_tokens_issued_total 1e+3
process_open_fds 20
`

it('the bench sums the series of a metric, or those of one reason', () => {
  const metrics = parseMetrics(TEXT)
  expect(metrics.sum('connections')).toBe(7)
  expect(metrics.sum('connections_refused_total')).toBe(11)
  expect(metrics.sum('connections_refused_total', 'max_connections')).toBe(5)
  expect(metrics.sum('tokens_issued_total')).toBe(1000)
  expect(metrics.sum('no_such_thing')).toBe(0)
})
