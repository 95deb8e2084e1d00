import autocannon, { type Options } from 'autocannon'
import { runIfMain, runModule } from '../child.ts'
import { packageVersion } from '../machine.ts'
import { summarizeLatencies } from '../measure.ts'
import { type Generator, type LoadResult, rightSize, timeoutFor } from './generator.ts'

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
    const limits = { core, idlePriority, timeout: timeoutFor(load) }
    const report = await runModule<Report>(import.meta.url, plan, limits)
    const { requests, statuses, failed } = report
    const wrongSize = expected.body === '' || rightSize(report, expected, connections) ? 0 : requests
    const wrongStatus = requests - (statuses[expected.status] ?? 0)
    return { ...report, failed: Math.max(wrongStatus, wrongSize) + failed }
  },
}

/** `failed`: errors including timeouts, and unexpected bodies. */
type Report = Required<LoadResult> & { readonly bytes: number }

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
  const statuses = Object.entries(statusCodeStats).map(([code, { count = 0 }]) => [code, count])
  return {
    requests: requests.total,
    requestsPerSecond: requests.total / duration,
    bytes: throughput.total,
    ...{ p50, p90, p99 },
    statuses: Object.fromEntries(statuses),
    failed: errors + mismatches,
  }
}

await runIfMain(import.meta, program)
