import type { OutsideId } from '../../src/promises/promises.ts'
import { systemClock } from '../../src/system/clock.ts'
import { DEFAULTS, type VerifyOptions } from '../../src/verify/options.ts'
import type { Departure, Report, Verdict } from '../../src/verify/verdict.ts'
import { verify } from '../../src/verify/verify.ts'

/** The documented numbers in short windows, so that a whole run takes less than half a minute. */
export const SHORT: VerifyOptions['limits'] = {
  api: { requests: 60, window: 3 },
  oauth: { requests: 30, window: 3 },
}

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
