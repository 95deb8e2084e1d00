import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'
import { packageVersion } from '../peers/package-version.ts'
import { type Generator, patienceFor } from './generator.ts'

/** What `autocannon-program.ts` prints. */
export interface AutocannonReport {
  readonly requests: number
  readonly seconds: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly statuses: Readonly<Record<string, number>>
  /** Errors, timeouts included, and bodies that were not the expected one. */
  readonly failed: number
}

/** autocannon in a process of its own, so that it can be pinned. It reads every answer's status and body. */
export const autocannonGenerator: Generator = {
  name: 'autocannon',
  version: () => packageVersion('autocannon'),
  async run(load) {
    const { url, headers, connections, until, method = 'GET', body, expected, core, humble = false } = load
    const program = fileURLToPath(new URL('autocannon-program.ts', import.meta.url))
    const plan = {
      url,
      headers,
      connections,
      method,
      ...(body === undefined ? {} : { body }),
      ...('seconds' in until ? { duration: until.seconds } : { amount: until.requests }),
      // An answer of ours is as right as the expected one when it is refused in time: only one body can be checked.
      ...(expected.body === '' ? {} : { expectBody: expected.body }),
    }
    const output = await outputOf(process.execPath, [program, JSON.stringify(plan)], {
      core,
      humble,
      longest: patienceFor(load),
    })
    const report = JSON.parse(output) as AutocannonReport // of our own program
    const statuses = new Map(Object.entries(report.statuses).map(([code, count]) => [Number(code), count]))
    return {
      requests: report.requests,
      requestsPerSecond: report.requests / report.seconds,
      p50: report.p50,
      p90: report.p90,
      p99: report.p99,
      statuses,
      failed: report.requests - (statuses.get(expected.status) ?? 0) + report.failed,
    }
  },
}
