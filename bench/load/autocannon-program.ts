import process from 'node:process'
import autocannon from 'autocannon'
import { summarizeLatencies } from '../measure.ts'
import type { AutocannonPlan, AutocannonReport } from './autocannon.ts'

/**
 * `node autocannon-program.ts PLAN`: runs autocannon with these options and prints one line of JSON. The percentiles are not
 * rounded; autocannon rounds its own to milliseconds, and a response may take less than one.
 */
const latencies: number[] = []
const { upload, ...plan } = JSON.parse(process.argv[2] ?? '{}') as AutocannonPlan
const options = upload === undefined ? plan : { ...plan, method: 'POST' as const, body: 'x'.repeat(upload) }
const running = autocannon(options, (error: Error | null, result: autocannon.Result) => {
  if (error !== null) throw error
  const { p50, p90, p99 } = summarizeLatencies(latencies)
  const statuses = Object.entries(result.statusCodeStats ?? {}).map(([code, { count }]) => [code, count ?? 0])
  const report: AutocannonReport = {
    requests: result.requests.total,
    seconds: result.duration,
    bytes: result.throughput.total,
    p50,
    p90,
    p99,
    statuses: Object.fromEntries(statuses),
    failed: result.errors + result.mismatches,
  }
  process.stdout.write(`${JSON.stringify(report)}\n`)
})
running.on('response', (_client, _status, _bytes, responseTime) => {
  latencies.push(responseTime)
})
