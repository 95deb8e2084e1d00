import { availableParallelism, loadavg } from 'node:os'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { runProgram } from './end.ts'
import { proofFindings, proveLimits } from './limits/proof.ts'
import { formatFindings } from './table.ts'

/**
 * `npm run bench:limits`: floods the real sidecar and holds every response against the document's limits. Exit code
 * 0 when all of it holds, 1 otherwise. `--set key=value` changes the sidecar but not what is expected of it, so
 * `--set limits.api.requests=61` has to fail.
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

/** Several times what it takes where nothing else runs (ms). */
const LONGEST = 180_000

await runProgram(main, LONGEST)
