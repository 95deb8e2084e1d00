import type { Account } from '../../src/verify/ledger.ts'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import type { Endpoint } from '../../src/verify/verdict.ts'
import type { Chart, Findings, Table } from '../figure.ts'
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

export function proofFindings(reports: readonly Report[]): Findings {
  const held = reports.filter(({ faults }) => faults.length === 0).length
  return {
    checks: [],
    charts: [windowChart(reports, 'api'), windowChart(reports, 'oauth')],
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

function windowChart(reports: readonly Report[], endpoint: Endpoint): Chart {
  const { requests } = DOCUMENTED_LIMITS[endpoint]
  return {
    title: `Requests that passed in each window, ${endpoint === 'api' ? 'API' : '/oauth/token'}`,
    unit: `requests, of ${requests}`,
    series: ['passed'],
    rows: reports.flatMap(({ title, accounts }) => {
      const passed = accounts.get(endpoint)?.passed ?? []
      return passed.map((count, i) => ({
        label: passed.length === 1 ? title : `${title}, window ${i + 1}`,
        ours: true,
        values: [count],
      }))
    }),
  }
}
