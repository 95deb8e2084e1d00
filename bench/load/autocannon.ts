import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Options } from 'autocannon'
import { outputOf } from '../child.ts'
import { packageVersion } from '../machine.ts'
import { type Generator, rightSize, timeoutFor } from './generator.ts'

/** Argument of `autocannon-program.ts`: the options of autocannon, and the size of the request bodies. */
export interface AutocannonPlan extends Options {
  readonly upload?: number | undefined
}

/** Output of `autocannon-program.ts`. */
export interface AutocannonReport {
  readonly requests: number
  readonly seconds: number
  readonly bytes: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly statuses: Readonly<Record<string, number>>
  /** Errors including timeouts, and unexpected bodies. */
  readonly failed: number
}

/** Largest body that fits into the arguments of a process (bytes). Of larger bodies only the length is checked. */
const MAX_BODY_ARGUMENT = 64 * 1024

/** autocannon in a separate process, which can be pinned. It checks the status and body of every response. */
export const autocannonGenerator: Generator = {
  name: 'autocannon',
  version: () => packageVersion('autocannon'),
  async run(load) {
    const { url, headers, connections, until, upload, expected, core, idlePriority = false } = load
    const program = fileURLToPath(new URL('autocannon-program.ts', import.meta.url))
    const checksBody = expected.body !== '' && expected.body.length <= MAX_BODY_ARGUMENT
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
      idlePriority,
      timeout: timeoutFor(load),
    })
    const report = JSON.parse(output) as AutocannonReport // `autocannon-program.ts` prints it
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
