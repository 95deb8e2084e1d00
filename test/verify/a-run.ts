import { systemClock } from '../../src/system/clock.ts'
import { DEFAULTS, type VerifyOptions } from '../../src/verify/options.ts'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import { floods } from '../../src/verify/rounds/at-once.ts'
import type { Departure, Report, Verdict } from '../../src/verify/verdict.ts'
import { verify } from '../../src/verify/verify.ts'

/** The documented numbers in the shortest windows that a whole run can judge. It takes about 20 s then. */
export const SHORT: VerifyOptions['limits'] = {
  api: { requests: 60, window: 3 },
  oauth: { requests: 30, window: 3 },
}

/** The promises apart from those that only a flood shows. A run without floods takes 8 s less. */
export const WITHOUT_FLOODS: readonly OutsideId[] = [...OUTSIDE.keys()].filter(
  (id) => !floods.promises.includes(id),
)

/** A run and what it has told on the way. */
export interface Run {
  readonly report: Report
  readonly decided: readonly Verdict[]
  readonly progress: readonly string[]
}

/** Options of a run against a server under test, which accepts any certificate. The flood ends before any window does. */
export function runOptions(
  url: string,
  password: string,
  changes: Partial<VerifyOptions> = {},
): VerifyOptions {
  return {
    ...DEFAULTS,
    url: new URL(url),
    password,
    path: '/api/status',
    tls: { ca: undefined, insecure: true },
    limits: SHORT,
    quick: false,
    only: [],
    flood: { seconds: 1, connections: 10 },
    ...changes,
  }
}

/** Runs `verify` and records what it tells. */
export async function runVerify(options: VerifyOptions, signal?: AbortSignal): Promise<Run> {
  const decided: Verdict[] = []
  const progress: string[] = []
  const reporter = {
    announce() {},
    progress: (text: string) => progress.push(text),
    decided: (verdict: Verdict) => decided.push(verdict),
    finished() {},
  }
  const report = await verify(options, reporter, systemClock, signal)
  return { report, decided, progress }
}

/** The ids with this result, in order. */
export function idsOf({ promises }: Report, result: Verdict['result']): OutsideId[] {
  return promises.filter((verdict) => verdict.result === result).map(({ id }) => id)
}

/** What a report says is broken, as text: to read in the message of a failed test. */
export function brokenIn({ promises }: Report): Record<string, readonly Departure[]> {
  const broken = promises.filter(({ departures }) => departures.length > 0)
  return Object.fromEntries(broken.map(({ id, departures }) => [id, departures]))
}

/** Runs that mostly wait, so many at a time, in their order. The results are for tests to await. */
export function inTurn<Name, Result>(
  names: readonly Name[],
  atATime: number,
  start: (name: Name) => Promise<Result>,
): Map<Name, Promise<Result>> {
  const settled: Promise<unknown>[] = []
  return new Map(
    names.map((name, i) => {
      const result = (settled[i - atATime] ?? Promise.resolve()).then(() => start(name))
      settled.push(result.catch(() => {}))
      return [name, result]
    }),
  )
}
