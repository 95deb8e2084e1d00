import type { LedgerResult } from '../../src/verify/ledger.ts'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import type { Findings, Table } from '../figure.ts'
import { say } from '../run-program.ts'
import { type RequestKind, RIGHT_PASSWORD, WITHOUT_TOKEN, WRONG_PASSWORD, withToken } from './request-kind.ts'
import { type Report, runScenario, type Scenario, type Shape, type Stage } from './scenario.ts'

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

function figures({ passed, refused, other }: LedgerResult): string[] {
  return [passed.join(' + '), String(refused), String(other)]
}

/** Many requests one after the other on each connection. */
const PLAIN: Shape = { connections: 50, until: { requestsEach: 40 } }

/** More connections than the limit. */
const CROWD: Shape = { connections: 400, until: { requestsEach: 5 } }

/** Each connection sends more than the limit plus the responses that autocannon leaves unread (see `flood`). */
const PIPELINED: Shape = { connections: 20, pipelining: 10, until: { requestsEach: 100 } }

/** Seconds; short, so that a flood spans several windows. */
const SHORT_WINDOW = 3

/** Two and a half windows: a flood crosses two boundaries and ends within the third window. */
const ACROSS: Shape = { connections: 30, until: { seconds: 2.5 * SHORT_WINDOW } }

/** Done before a short window closes, even on a busy machine. */
const SMALL: Shape = { connections: 30, until: { requestsEach: 10 } }

/** The floods over one transport. */
function scenarios(tls: boolean): Scenario[] {
  const over = tls ? 'TLS' : 'cleartext'
  const scenario = (title: string, run: Scenario['run']): Scenario => ({
    title: `${over}: ${title}`,
    tls,
    limits: DOCUMENTED_LIMITS,
    windows: { exactly: 1 },
    run,
  })
  const api = async (stage: Stage): Promise<RequestKind> => withToken(await stage.token())
  return [
    scenario('api, valid token', async (stage) => stage.flood([await api(stage)], PLAIN)),
    scenario('api, valid token, 400 connections', async (stage) => stage.flood([await api(stage)], CROWD)),
    scenario('api, valid token, pipelined', async (stage) => stage.flood([await api(stage)], PIPELINED)),
    scenario('api, no token', (stage) => stage.flood([WITHOUT_TOKEN], PLAIN)),
    scenario('api, no token, pipelined', (stage) => stage.flood([WITHOUT_TOKEN], PIPELINED)),
    scenario('/oauth/token, right password', (stage) => stage.flood([RIGHT_PASSWORD], PLAIN)),
    scenario('/oauth/token, wrong password', (stage) => stage.flood([WRONG_PASSWORD], PLAIN)),
    scenario('/oauth/token, both, 400 connections', (stage) =>
      stage.flood([RIGHT_PASSWORD, WRONG_PASSWORD], CROWD),
    ),
    scenario('/oauth/token, both, pipelined', (stage) =>
      stage.flood([RIGHT_PASSWORD, WRONG_PASSWORD], PIPELINED),
    ),
    scenario('everything at once', async (stage) => {
      const withAToken = await api(stage)
      await Promise.all([
        stage.flood([withAToken, WITHOUT_TOKEN], PLAIN),
        stage.flood([WITHOUT_TOKEN, withAToken], PIPELINED),
        stage.flood([RIGHT_PASSWORD, WRONG_PASSWORD], PLAIN),
        stage.flood([WRONG_PASSWORD, RIGHT_PASSWORD], PIPELINED),
      ])
    }),
  ]
}

/** Floods both endpoint types across window boundaries, waits for the Retry-After of the last refusal, and floods again. */
function reopening(tls: boolean): Scenario {
  return {
    title: `${tls ? 'TLS' : 'cleartext'}: windows of ${SHORT_WINDOW} s reopen`,
    tls,
    limits: {
      api: { ...DOCUMENTED_LIMITS.api, window: SHORT_WINDOW },
      oauth: { ...DOCUMENTED_LIMITS.oauth, window: SHORT_WINDOW },
    },
    windows: { atLeast: 4 },
    async run(stage) {
      const flooded = async (kind: RequestKind): Promise<void> => {
        await stage.flood([kind], ACROSS)
        await stage.waitAndAsk(kind)
        await stage.flood([kind], SMALL)
      }
      await Promise.all([flooded(withToken(await stage.token())), flooded(RIGHT_PASSWORD)])
    },
  }
}
