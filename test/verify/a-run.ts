import type { Time } from '../../src/verify/conversation.ts'
import { DEFAULTS, DOCUMENTED_LIMITS, type VerifyOptions } from '../../src/verify/options.ts'
import { OUTSIDE, type OutsideId } from '../../src/verify/promises.ts'
import { verify } from '../../src/verify/run.ts'
import type { Departure, Report, Verdict } from '../../src/verify/verdict.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

/** The promises apart from those that only a flood shows. */
export const WITHOUT_FLOODS: readonly OutsideId[] = [...OUTSIDE.keys()].filter(
  (id) => !['C15', 'H125'].includes(id),
)

/** A run and what it has told on the way. */
export interface Run {
  readonly report: Report
  readonly decided: readonly Verdict[]
  readonly progress: readonly string[]
}

/** Options of a run against a server under test, which accepts any certificate. */
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
    limits: DOCUMENTED_LIMITS,
    quick: false,
    only: [],
    flood: { seconds: 10, connections: 10 },
    ...changes,
  }
}

/** Time that stands still until a wait moves it, which takes no time then. */
export interface MovedTime extends Time, MovableClock {}

export function movedTime(): MovedTime {
  const clock = stillClock()
  return {
    ...clock,
    async sleep(ms) {
      // Each timer has turns of its own, so the client beside a flood does not starve it.
      await clock.advance(ms)
    },
  }
}

/** Runs `verify` and records what it tells. */
export async function runVerify(
  options: VerifyOptions,
  time: Time = movedTime(),
  signal?: AbortSignal,
): Promise<Run> {
  const decided: Verdict[] = []
  const progress: string[] = []
  const reporter = {
    announce() {},
    progress: (text: string) => progress.push(text),
    decided: (verdict: Verdict) => decided.push(verdict),
    finished() {},
  }
  const report = await verify(options, reporter, time, signal)
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
