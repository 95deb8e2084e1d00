import type { Account } from '../../src/verify/ledger.ts'
import type { Findings, Table } from '../figure.ts'
import { say } from '../run-program.ts'
import { type Report, runScenario, type Scenario } from './scenario.ts'
import { reopening, scenarios } from './scenarios.ts'

/** Floods the real sidecar over both transports. `sets` change its configuration, but not the expectation. */
export async function proveLimits(sets: readonly string[]): Promise<readonly Report[]> {
  const run = async (scenario: Scenario): Promise<Report> => {
    const report = await runScenario(scenario, sets)
    say(`  ${verdict(report)}  ${report.title}`)
    return report
  }
  const transports = [false, true]
  const floods = await Promise.all(
    transports.map(async (tls) => {
      const reports: Report[] = []
      for (const scenario of scenarios(tls)) reports.push(await run(scenario))
      return reports
    }),
  )
  const reopened = await Promise.all(transports.map((tls) => run(reopening(tls))))
  return [...floods.flat(), ...reopened]
}

function verdict({ faults }: Report): 'pass' | 'FAIL' {
  return faults.length === 0 ? 'pass' : 'FAIL'
}

export function proofFindings(reports: readonly Report[]): Pick<Findings, 'tables' | 'notes' | 'faults'> {
  const held = reports.filter(({ faults }) => faults.length === 0).length
  return {
    tables: [proofTable(reports)],
    notes: [`${held} of ${reports.length} floods passed, every response checked`],
    faults: reports.flatMap(({ title, faults }) => faults.map((fault) => `${title}: ${fault}`)),
  }
}

function proofTable(reports: readonly Report[]): Table {
  return {
    caption: 'Responses to each flood',
    head: ['', 'flood', 'limit', 'passed per window', '429', 'other', 'device saw'],
    rows: reports.flatMap((report) =>
      [...report.accounts].map(([endpoint, account], i) => [
        verdict(report),
        i === 0 ? report.title : '',
        endpoint,
        ...figures(account),
        i === 0 ? String(report.deviceSaw) : '',
      ]),
    ),
  }
}

function figures({ passed, refused, other }: Account): string[] {
  return [passed.join(' + '), String(refused), String(other)]
}
