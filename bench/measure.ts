import type { Check, Range, Unit } from './figure.ts'

/** Median and range of several rounds. */
export interface Summary {
  readonly median: number
  readonly range: Range
}

/** A series of rounds. A round that could not be measured is NaN. */
export type Series = readonly number[]

/**
 * Runs every contestant once per round, in turn: a machine that becomes slower affects all of them. Each round begins with
 * the next contestant, so none always runs first.
 */
export async function alternate<Contestant, Result>(
  contestants: readonly Contestant[],
  rounds: number,
  run: (contestant: Contestant, round: number) => Promise<Result>,
): Promise<Map<Contestant, Result[]>> {
  const results = new Map<Contestant, Result[]>(contestants.map((contestant) => [contestant, []]))
  for (let round = 0; round < rounds; round += 1) {
    const from = round % Math.max(1, contestants.length)
    for (const contestant of [...contestants.slice(from), ...contestants.slice(0, from)]) {
      results.get(contestant)?.push(await run(contestant, round))
    }
  }
  return results
}

/** Summarizes the finite numbers; undefined if there are none. */
export function summarize(values: Series): Summary | undefined {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  const at = (index: number): number => sorted[index] ?? Number.NaN
  const last = sorted.length - 1
  if (last < 0) return undefined
  return { median: (at(Math.floor(last / 2)) + at(Math.ceil(last / 2))) / 2, range: [at(0), at(last)] }
}

/** NaN if there are no finite numbers. */
export function medianOf(values: Series): number {
  return summarize(values)?.median ?? Number.NaN
}

/** Combines two series round by round, so that both values come from the same moment, and summarizes the results. */
export function summarizePairs(
  ours: Series,
  theirs: Series,
  combine: (ours: number, theirs: number) => number,
): Summary | undefined {
  return summarize(ours.map((value, round) => combine(value, theirs[round] ?? Number.NaN)))
}

type Threshold = Partial<Pick<Check, 'better' | 'reach' | 'aim' | 'comparable'>>

/**
 * Ratios to peers are comparable between all machines, and so are bytes of the heap; processor time only between runs on one
 * machine; latencies and resident memory never.
 */
const COMPARABLE: Readonly<Record<Unit, Check['comparable']>> = {
  '×': 'anywhere',
  B: 'anywhere',
  µs: 'same machine',
  ms: 'never',
  KiB: 'never',
  MiB: 'never',
}

/** A check of a number, or of the rounds of a series. Less is better, unless `more` says otherwise. */
export function checkOf(
  id: string,
  what: string,
  unit: Unit,
  value: Summary | number | undefined,
  more: Threshold = {},
): Check {
  const { median, range } = typeof value === 'object' ? value : { median: value, range: undefined }
  const known = Number.isNaN(median) ? undefined : median
  return { id, what, unit, better: 'less', comparable: COMPARABLE[unit], value: known, range, ...more }
}

/** A check of our values as a multiple of those of a peer, round by round. */
export function ratioOf(id: string, what: string, ours: Series, theirs: Series, more: Threshold = {}): Check {
  const ratio = summarizePairs(ours, theirs, (a, b) => a / b)
  return checkOf(id, what, '×', ratio, more)
}

/** Percentiles of durations, in the unit of the durations; NaN if there are none. */
export interface LatencySummary {
  readonly count: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

export const PERCENTILES = ['p50', 'p90', 'p99'] as const

/** Nearest-rank percentiles: each is one of the values. */
export function summarizeLatencies(values: readonly number[]): LatencySummary {
  const sorted = Float64Array.from(values).sort()
  const at = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) }
}
