import { availableParallelism, loadavg } from 'node:os'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { runProgram } from './end.ts'
import type { Account } from './limits/ledger.ts'
import { type Report, runScenario, type Scenario } from './limits/scenario.ts'
import { reopening, scenarios } from './limits/scenarios.ts'
import { say } from './say.ts'
import { formatTable } from './table.ts'

/**
 * `npm run bench:limits`: floods the real sidecar and holds every response against the document's limits. Exit code
 * 0 when all of it holds, 1 otherwise. `--set key=value` changes the sidecar but not what is expected of it, so
 * `--set limits.api.requests=61` has to fail.
 */
async function main(): Promise<0 | 1> {
  const { values } = parseArgs({ options: { set: { type: 'string', multiple: true, default: [] } } })
  const start = performance.now()
  const reports: Report[] = []
  const run = async (scenario: Scenario): Promise<void> => {
    const report = await runScenario(scenario, values.set)
    reports.push(report)
    say(`${verdict(report)}  ${report.title}`)
  }

  const transports = [false, true]
  await Promise.all(
    transports.map(async (tls) => {
      for (const scenario of scenarios(tls)) await run(scenario)
    }),
  )
  await Promise.all(transports.map((tls) => run(reopening(tls))))

  print(reports, performance.now() - start)
  return reports.every(({ faults }) => faults.length === 0) ? 0 : 1
}

function verdict({ faults }: Report): 'pass' | 'FAIL' {
  return faults.length === 0 ? 'pass' : 'FAIL'
}

function print(reports: readonly Report[], took: number): void {
  const rows = reports.flatMap((report) =>
    [...report.accounts].map(([endpoint, account], i) => [
      verdict(report),
      i === 0 ? report.title : '',
      endpoint,
      ...figures(account),
      i === 0 ? String(report.deviceSaw) : '',
    ]),
  )
  const head = ['', 'flood', 'limit', 'passed per window', '429', 'other', 'device saw']
  process.stdout.write(`\n${formatTable(head, rows)}\n\n`)
  for (const { title, faults } of reports) {
    for (const fault of faults) process.stdout.write(`FAIL  ${title}: ${fault}\n`)
  }
  const failed = reports.filter(({ faults }) => faults.length > 0).length
  process.stdout.write(
    `${reports.length - failed} of ${reports.length} floods as promised, every response checked; ` +
      `${(took / 1000).toFixed(0)} s on ${availableParallelism()} cores, load average ${loadavg()[0]?.toFixed(1)}\n`,
  )
}

function figures({ passed, refused, other }: Account): string[] {
  return [passed.join(' + '), String(refused), String(other)]
}

/** Several times what it takes where nothing else runs (ms). */
const LONGEST = 180_000

await runProgram(main, LONGEST)
