import { beforeAll, describe, expect, it } from 'vitest'
import { DOCUMENTED_LIMITS, type VerifyOptions } from '../../src/verify/options.ts'
import { OUTSIDE } from '../../src/verify/promises.ts'
import type { Report, Verdict } from '../../src/verify/verdict.ts'
import { PATIENCE } from '../support/patience.ts'
import { idsOf, inTurn, runOptions, runVerify, WITHOUT_FLOODS } from './a-run.ts'
import { type DocumentedServerOptions, startDocumentedServer } from './documented-server.ts'
import type { Fault } from './fault.ts'
import { FAULTS } from './faults.ts'

type Run = 'quick' | NonNullable<Fault['run']>

/** Seconds. A quick run never waits for a window; a whole run on a busy machine needs some time within each. */
const WINDOW: Readonly<Record<Run, number>> = { quick: 60, windows: 5, complete: 5 }

/** What ends a run that hangs (ms). A second run begins when all first ones have ended. */
const LONGEST = 30 * PATIENCE

/** How many times as long the windows of a second run are. */
const LONGER = 4

const CHANGES: Readonly<Record<Run, Partial<VerifyOptions>>> = {
  quick: { quick: true },
  windows: { only: WITHOUT_FLOODS },
  complete: {},
}

/** Every departure, so that a failure says what was found. */
const described = (verdicts: readonly Verdict[]): string =>
  verdicts
    .flatMap(({ id, departures }) => departures.map(({ sent, came }) => `${id}: ${sent}: ${came}`))
    .join('\n')

/** What came, as the report says it. */
const came = ({ departures }: Verdict): string => departures.map(({ came }) => came).join('\n')

/** Whether each promise that the fault breaks is found broken, for the reason that the fault gives. */
function isFound({ breaks }: Fault, { promises }: Report): boolean {
  return Object.entries(breaks).every(([id, reason]) =>
    promises.some(
      (verdict) => verdict.id === id && verdict.result === 'broken' && reason.test(came(verdict)),
    ),
  )
}

/** A server, and the run that judges it. */
interface Case {
  readonly server: Omit<DocumentedServerOptions, 'limits'>
  readonly run: Run
}

/** The same, and what a run finds that a busy machine has not misled. */
interface JudgedCase extends Case {
  readonly isRight: (report: Report) => boolean
}

function isGood(report: Report): boolean {
  return described(report.promises) === '' && idsOf(report, 'not testable').every((id) => id === 'C8')
}

/** On a busy machine a flood may be longer than its window, or get no response, which breaks what the fault does not. */
function isFault(fault: Fault, report: Report): boolean {
  const expected: readonly string[] = [...Object.keys(fault.breaks), ...(fault.alsoBreaks ?? [])]
  return idsOf(report, 'broken').every((id) => expected.includes(id)) && isFound(fault, report)
}

/** A rotating server makes a run 12 s longer (C6), and floods contain no refresh. */
const GOOD: Readonly<Record<string, Case>> = {
  'over cleartext': { server: {}, run: 'complete' },
  'over TLS': { server: { tls: true }, run: 'complete' },
  'over TLS, with rotation': { server: { tls: true, rotate: true }, run: 'windows' },
  'with rotation and a grace': { server: { rotate: true, grace: 10_000 }, run: 'windows' },
  'with windows on the clock, and revocation': {
    server: { onTheClock: true, revocationPath: '/oauth/revoke' },
    run: 'complete',
  },
}

const cases = new Map<string, JudgedCase>([
  ...Object.entries(GOOD).map(([name, each]): [string, JudgedCase] => [name, { ...each, isRight: isGood }]),
  ...FAULTS.map((fault): [string, JudgedCase] => [
    fault.name,
    {
      server: { ...fault.server, faults: [fault] },
      run: fault.run ?? 'quick',
      isRight: (report) => isFault(fault, report),
    },
  ]),
])

const { api, oauth } = DOCUMENTED_LIMITS

/** Starts the server of a case. Returns the options of a run against it. */
async function startServer({ server, run }: Case, longer = 1): Promise<VerifyOptions> {
  const window = longer * WINDOW[run]
  const { url, password } = await startDocumentedServer({
    ...server,
    limits: {
      api: { requests: api.requests, seconds: window },
      oauth: { requests: oauth.requests, seconds: window },
    },
  })
  const limits = { api: { ...api, window }, oauth: { ...oauth, window } }
  const { revocationPath } = server
  return runOptions(url, password, { path: '/', revocationPath, limits, ...CHANGES[run] })
}

describe('postern verify', () => {
  let reports: ReadonlyMap<string, Promise<Report>>
  const report = (name: string): Promise<Report> => reports.get(name) ?? expect.unreachable()

  // The runs mostly wait for windows, so many run at a time; of those with floods, which take the processor, few. All servers
  // start here, because a server that starts while a test runs stops when that test ends.
  beforeAll(async () => {
    const startAll = async (longer: number): Promise<ReadonlyMap<string, VerifyOptions>> => {
      const start = async ([name, each]: [string, Case]) => [name, await startServer(each, longer)] as const
      return new Map(await Promise.all([...cases].map(start)))
    }
    const [short, long] = [await startAll(1), await startAll(LONGER)]
    const runWith = (options: ReadonlyMap<string, VerifyOptions>) => async (name: string) =>
      (await runVerify(options.get(name) ?? expect.unreachable())).report
    /** Undefined if a machine with other work misled the run, or broke it off. */
    const rightOf = async (name: string, report: Promise<Report>): Promise<Report | undefined> => {
      const found = await report.catch(() => undefined)
      return found !== undefined && cases.get(name)?.isRight(found) === true ? found : undefined
    }
    const named = (kind: Run): string[] =>
      [...cases].filter(([, { run }]) => run === kind).map(([name]) => name)
    // The quick ones take the processor, so the others do not begin before they have ended.
    const quick = inTurn(named('quick'), 12, runWith(short))
    await Promise.allSettled(quick.values())
    const first = new Map([
      ...quick,
      ...inTurn(named('complete'), 16, runWith(short)),
      ...inTurn(named('windows'), 20, runWith(short)),
    ])
    const right = [...first].map(([name, report]) => [name, rightOf(name, report)] as const)
    // A busy machine may be too slow to use up a window as a check needs it. Then, when all have ended, once more in longer windows.
    const misled = Promise.all(
      right.map(async ([name, report]) => ((await report) === undefined ? [name] : [])),
    )
    const second = misled.then((names) => inTurn(names.flat(), 8, runWith(long)))
    reports = new Map(
      right.map(([name, report]) => [
        name,
        report.then(async (found) => found ?? (await second).get(name) ?? expect.unreachable()),
      ]),
    )
    for (const each of reports.values()) each.catch(() => {})
  }, LONGEST)

  it.each(Object.keys(GOOD))(
    'H127 finds every promise kept by a server that keeps the documented API, %s',
    { timeout: LONGEST },
    async (name) => {
      const judged = await report(name)
      expect(described(judged.promises)).toBe('')
      expect(idsOf(judged, 'not testable')).toEqual(['C8'])
      const all = GOOD[name]?.run === 'complete' ? [...OUTSIDE.keys()] : WITHOUT_FLOODS
      expect(judged.promises.map(({ id }) => id)).toEqual(all)
    },
  )

  it.each(FAULTS.map((fault) => [fault.name, fault] as const))(
    'H127 finds %s, and nothing else',
    { timeout: LONGEST },
    async (name, fault) => {
      const { promises } = await report(name)
      const found = promises.filter(({ result }) => result === 'broken')
      const decided = found.filter(({ id }) => !fault.alsoBreaks?.includes(id))
      const expected = Object.keys(fault.breaks).sort()
      expect(decided.map(({ id }) => id).sort(), described(found)).toEqual(expected)
      for (const verdict of decided)
        expect(came(verdict), `${fault.sentence}: ${verdict.id}`).toMatch(fault.breaks[verdict.id] ?? /^$/)
    },
  )
})
