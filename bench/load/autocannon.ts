import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Options } from 'autocannon'
import { outputOf } from '../child.ts'
import { packageVersion } from '../peers/package-version.ts'
import { type Generator, patienceFor, rightSize } from './generator.ts'

/** What `autocannon-program.ts` is given: autocannon's options, and the size of the bodies to send. */
export interface AutocannonPlan extends Options {
  readonly upload?: number | undefined
}

/** What it prints. */
export interface AutocannonReport {
  readonly requests: number
  readonly seconds: number
  readonly bytes: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly statuses: Readonly<Record<string, number>>
  /** Errors, timeouts included, and bodies that were not the expected one. */
  readonly failed: number
}

/** The longest body that fits into the arguments of a process (bytes); longer ones are told by their length alone. */
const LONGEST_BODY = 64 * 1024

/** autocannon in a process of its own, so that it can be pinned. It reads every answer's status and body. */
export const autocannonGenerator: Generator = {
  name: 'autocannon',
  version: () => packageVersion('autocannon'),
  async run(load) {
    const { url, headers, connections, until, upload, expected, core, humble = false } = load
    const program = fileURLToPath(new URL('autocannon-program.ts', import.meta.url))
    const checksBody = expected.body !== '' && expected.body.length <= LONGEST_BODY
    const plan = {
      url,
      headers,
      connections,
      upload,
      ...('seconds' in until ? { duration: until.seconds } : { amount: until.requests }),
      ...(checksBody ? { expectBody: expected.body } : {}),
    }
    const output = await outputOf(process.execPath, [program, JSON.stringify(plan)], {
      core,
      humble,
      longest: patienceFor(load),
    })
    const report = JSON.parse(output) as AutocannonReport // of our own program
    const statuses = new Map(Object.entries(report.statuses).map(([code, count]) => [Number(code), count]))
    const wrongSize = expected.body === '' || rightSize(report, expected, connections) ? 0 : report.requests
    return {
      requests: report.requests,
      requestsPerSecond: report.requests / report.seconds,
      p50: report.p50,
      p90: report.p90,
      p99: report.p99,
      statuses,
      failed: Math.max(report.requests - (statuses.get(expected.status) ?? 0), wrongSize) + report.failed,
    }
  },
}
