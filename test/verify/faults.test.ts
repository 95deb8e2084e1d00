import { beforeAll, describe, expect, it } from 'vitest'
import { OUTSIDE, type OutsideId } from '../../src/promises/promises.ts'
import { systemClock } from '../../src/system/clock.ts'
import type { VerifyOptions } from '../../src/verify/options.ts'
import type { Reporter, Verdict } from '../../src/verify/verdict.ts'
import { verify } from '../../src/verify/verify.ts'
import {
  type DocumentedServer,
  type DocumentedServerOptions,
  startDocumentedServer,
} from './documented-server.ts'
import type { Fault } from './fault.ts'
import { FAULTS } from './faults.ts'

/** Long enough for a burst and a look before its end (s), and short enough for a hundred runs. */
const WINDOW = 3
const REQUESTS = { api: 60, oauth: 30 }

const silent: Reporter = { announce() {}, progress() {}, decided() {}, finished() {} }

/** Without floods: only H125 and C15 have some. */
const WITHOUT_FLOODS = [...OUTSIDE.keys()].filter((id) => id !== 'H125' && id !== 'C15')

type Verdicts = ReadonlyMap<OutsideId, Verdict>

type Run = 'quick' | NonNullable<Fault['run']>

async function verdictsOn(
  { url, password }: DocumentedServer,
  run: Run,
  revocationPath: string | undefined,
): Promise<Verdicts> {
  const options: VerifyOptions = {
    url: new URL(url),
    password,
    path: '/',
    tls: { ca: undefined, insecure: true },
    limits: {
      api: { requests: REQUESTS.api, window: WINDOW },
      oauth: { requests: REQUESTS.oauth, window: WINDOW },
    },
    quick: run === 'quick',
    only: run === 'windows' ? WITHOUT_FLOODS : [],
    flood: { seconds: 1, connections: 8 },
    revocationPath,
  }
  const { promises } = await verify(options, silent, systemClock)
  return new Map(promises.map((verdict) => [verdict.id, verdict]))
}

/** Starts tasks in order, so many at a time. */
function inTurn<Task, Result>(
  tasks: readonly Task[],
  atATime: number,
  start: (task: Task) => Promise<Result>,
): Map<Task, Promise<Result>> {
  const running: Promise<unknown>[] = []
  return new Map(
    tasks.map((task, i) => {
      const before = running[i - atATime] ?? Promise.resolve()
      const result = before.then(() => start(task))
      running.push(result.catch(() => {}))
      return [task, result]
    }),
  )
}

const broken = (verdicts: Verdicts): Verdict[] =>
  [...verdicts.values()].filter(({ result }) => result === 'broken')

/** Every departure, so that a failure says what was found. */
const described = (verdicts: readonly Verdict[]): string =>
  verdicts
    .flatMap(({ id, departures }) => departures.map(({ sent, came }) => `${id}: ${sent}: ${came}`))
    .join('\n')

type Good = Omit<DocumentedServerOptions, 'faults' | 'limits'>

const GOOD: Readonly<Record<string, Good>> = {
  'over cleartext': {},
  'over TLS': { tls: true },
  'over TLS, with rotation': { tls: true, rotate: true },
  'with rotation and a grace': { rotate: true, grace: 10_000 },
  'with windows on the clock, and revocation': { onTheClock: true, revocationPath: '/oauth/revoke' },
}

/** A server of the table, and the run that judges it. */
interface Case {
  readonly server: Omit<DocumentedServerOptions, 'limits'>
  readonly run: Run
}

const faulty = (fault: Fault): Case => ({
  server: { ...fault.server, faults: [fault] },
  run: fault.run ?? 'quick',
})

const cases = new Map<string, Case>([
  ...Object.entries(GOOD).map(([name, server]) => [name, { server, run: 'complete' }] as const),
  ...FAULTS.map((fault) => [fault.name, faulty(fault)] as const),
])

describe('postern verify', () => {
  let results: ReadonlyMap<string, Promise<Verdicts>>
  const result = async (name: string): Promise<Verdicts> => (await results.get(name)) ?? new Map()

  // The runs mostly wait for windows, so many run at a time; of those with floods, which take the processor, few. All servers
  // start here, because a server that starts while a test runs stops when that test ends.
  beforeAll(async () => {
    const seconds = WINDOW
    const limits = { api: { requests: REQUESTS.api, seconds }, oauth: { requests: REQUESTS.oauth, seconds } }
    const start = async (name: string, { server, run }: Case): Promise<[string, () => Promise<Verdicts>]> => {
      const started = await startDocumentedServer({ ...server, limits })
      return [name, () => verdictsOn(started, run, server.revocationPath)]
    }
    const runs = new Map(await Promise.all([...cases].map(([name, each]) => start(name, each))))
    const named = (kind: Run): string[] =>
      [...cases].filter(([, { run }]) => run === kind).map(([name]) => name)
    const run = (name: string): Promise<Verdicts> => runs.get(name)?.() ?? Promise.resolve(new Map())
    results = new Map([
      ...inTurn(named('complete'), 8, run),
      ...inTurn(named('windows'), 20, run),
      ...inTurn(named('quick'), 8, run),
    ])
  })

  it.each(Object.keys(GOOD))(
    'H127 finds every promise kept by a server that keeps the documented API, %s',
    async (name) => {
      const verdicts = await result(name)
      expect(described(broken(verdicts))).toBe('')
      const untestable = [...verdicts.values()].filter((verdict) => verdict.result === 'not testable')
      expect(untestable.map(({ id }) => id)).toEqual(['C8'])
      expect(verdicts.size).toBe(OUTSIDE.size)
    },
  )

  it.each(FAULTS.map((fault) => [fault.name, fault] as const))(
    'H127 finds %s, and nothing else',
    async (name, fault) => {
      const found = broken(await result(name))
      const decided = found.filter(({ id }) => !fault.alsoBreaks?.includes(id))
      const expected = Object.keys(fault.breaks).sort()
      expect(decided.map(({ id }) => id).sort(), described(found)).toEqual(expected)
      for (const { id, departures } of decided) {
        const text = departures.map(({ came }) => came).join('\n')
        expect(text, `${fault.sentence}: ${id}`).toMatch(fault.breaks[id] ?? /^$/)
      }
    },
  )
})
