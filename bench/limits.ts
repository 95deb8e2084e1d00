import { availableParallelism, loadavg } from 'node:os'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { formatFindings } from './format.ts'
import { proofFindings, proveLimits } from './limits/proof.ts'
import { runProgram } from './run-program.ts'

/**
 * `npm run bench:limits`: floods the real sidecar and checks every response against the documented limits. Exits with 0 if
 * all responses are correct, otherwise with 1. `--set key=value` changes the sidecar but not the expectation:
 * `--set limits.api.requests=61` must fail.
 */
async function main(): Promise<0 | 1> {
  const { values } = parseArgs({ options: { set: { type: 'string', multiple: true, default: [] } } })
  const start = performance.now()
  const findings = proofFindings(await proveLimits(values.set))
  const took = ((performance.now() - start) / 1000).toFixed(0)
  process.stdout.write(
    `${formatFindings(findings)}\n` +
      `${took} s on ${availableParallelism()} cores, load average ${loadavg()[0]?.toFixed(1)}\n`,
  )
  return findings.faults.length === 0 ? 0 : 1
}

/** Many times its duration on an idle machine (ms). */
const TIME_LIMIT = 600_000

await runProgram(main, TIME_LIMIT)
