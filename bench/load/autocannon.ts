import autocannon, { type Options } from 'autocannon'
import { runIfMain, runModule } from '../child.ts'
import { packageVersion } from '../machine.ts'
import { summarizeLatencies } from '../measure.ts'
import { type Generator, rightSize, timeoutFor } from './generator.ts'

/** Largest body that fits into the arguments of a process (bytes). Of larger bodies only the length is checked. */
const MAX_BODY_ARGUMENT = 64 * 1024

/** autocannon in a separate process, which can be pinned. It checks the status and body of every response. */
export const autocannonGenerator: Generator = {
  name: 'autocannon',
  version: () => packageVersion('autocannon'),
  async run(load) {
    const { url, headers, connections, until, expected, core, idlePriority = false } = load
    const checksBody = expected.body !== '' && expected.body.length <= MAX_BODY_ARGUMENT
    const plan: Options = {
      url,
      headers,
      connections,
      ...('seconds' in until ? { duration: until.seconds } : { amount: until.requests }),
      ...(checksBody ? { expectBody: expected.body } : {}),
    }
    const report = await runModule<Report>(import.meta.url, plan, {
      core,
      idlePriority,
      timeout: timeoutFor(load),
    })
    const { requests, seconds, bytes, latency, statuses, failed } = report
    const wrongSize =
      expected.body === '' || rightSize({ requests, bytes }, expected, connections) ? 0 : requests
    const wrongStatus = requests - (statuses[expected.status] ?? 0)
    return {
      requests,
      requestsPerSecond: requests / seconds,
      ...latency,
      statuses: new Map(Object.entries(statuses).map(([code, count]) => [Number(code), count])),
      failed: Math.max(wrongStatus, wrongSize) + failed,
    }
  },
}

interface Report {
  readonly requests: number
  readonly seconds: number
  readonly bytes: number
  readonly latency: { readonly p50: number; readonly p90: number; readonly p99: number }
  readonly statuses: Readonly<Record<string, number>>
  /** Errors including timeouts, and unexpected bodies. */
  readonly failed: number
}

/** Runs autocannon. The percentiles are not rounded: its own are in milliseconds, and a response may take less than one. */
async function program(plan: Options): Promise<Report> {
  const latencies: number[] = []
  const { promise, resolve, reject } = Promise.withResolvers<autocannon.Result>()
  const running = autocannon(plan, (error: Error | null, result) =>
    error === null ? resolve(result) : reject(error),
  )
  running.on('response', (_client, _status, _bytes, responseTime) => latencies.push(responseTime))
  const { requests, duration, throughput, statusCodeStats = {}, errors, mismatches } = await promise
  const { p50, p90, p99 } = summarizeLatencies(latencies)
  return {
    requests: requests.total,
    seconds: duration,
    bytes: throughput.total,
    latency: { p50, p90, p99 },
    statuses: Object.fromEntries(
      Object.entries(statusCodeStats).map(([code, { count = 0 }]) => [code, count]),
    ),
    failed: errors + mismatches,
  }
}

await runIfMain(import.meta, program)
