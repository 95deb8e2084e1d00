import type { Check, Range } from './figure.ts'

/** Result of one run of a load generator against one peer. */
export interface Sample {
  readonly requestsPerSecond: number
  /** Milliseconds; undefined if the generator does not report them. */
  readonly p50: number | undefined
  readonly p90: number | undefined
  readonly p99: number | undefined
  /** Processor time of the proxy per request (µs): other processes hardly affect it. */
  readonly cpuPerRequest: number | undefined
  /** Fraction of its core that the proxy used. Well below 1, the proxy was not the bottleneck. */
  readonly busy: number | undefined
  /** Unexpected responses, and errors. */
  readonly failed: number
}

/** Median and range of several rounds. */
export interface Summary {
  readonly median: number
  readonly range: Range
}

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
    const from = contestants.length === 0 ? 0 : round % contestants.length
    for (const contestant of [...contestants.slice(from), ...contestants.slice(0, from)]) {
      results.get(contestant)?.push(await run(contestant, round))
    }
  }
  return results
}

/** Summarizes the finite numbers; undefined if there are none. */
export function summarize(values: readonly (number | undefined)[]): Summary | undefined {
  const sorted = values
    .filter((value): value is number => value !== undefined && Number.isFinite(value))
    .sort((a, b) => a - b)
  const [low] = sorted
  const high = sorted.at(-1)
  const middle = (sorted.length - 1) / 2
  const [below, above] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]]
  if (low === undefined || high === undefined || below === undefined || above === undefined) return undefined
  return { median: (below + above) / 2, range: [low, high] }
}

/** Combines two series round by round, so that both values come from the same moment, and summarizes the results. */
export function summarizePairs(
  ours: readonly (number | undefined)[],
  theirs: readonly (number | undefined)[],
  combine: (ours: number, theirs: number) => number,
): Summary | undefined {
  return summarize(
    ours.map((value, round) => {
      const other = theirs[round]
      return value === undefined || other === undefined ? undefined : combine(value, other)
    }),
  )
}

/** A check of our values as a multiple of those of a peer, round by round. */
export function ratioOf(
  ours: readonly (number | undefined)[],
  theirs: readonly (number | undefined)[],
  check: Omit<Check, 'unit' | 'value' | 'range' | 'comparable'>,
): Check {
  const ratio = summarizePairs(ours, theirs, (a, b) => a / b)
  return { ...check, unit: '×', value: ratio?.median, range: ratio?.range, comparable: 'anywhere' }
}

/** Percentiles of durations, in the unit of the durations; NaN if there are none. */
export interface LatencySummary {
  readonly count: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

/** Nearest-rank percentiles: each is one of the values. */
export function summarizeLatencies(values: readonly number[]): LatencySummary {
  const sorted = Float64Array.from(values).sort()
  const at = (part: number): number => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) }
}
