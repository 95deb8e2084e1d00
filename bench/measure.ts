import type { Check, Range } from './figure.ts'

/** What one run of a load generator against one peer gave. */
export interface Sample {
  readonly requestsPerSecond: number
  /** Milliseconds; undefined where the generator does not tell. */
  readonly p50: number | undefined
  readonly p90: number | undefined
  readonly p99: number | undefined
  /** Microseconds of the proxy's own processor time per request: hardly moved by what else the machine does. */
  readonly cpuPerRequest: number | undefined
  /** The part of its core that the proxy used. Well below 1, something else was the bottleneck. */
  readonly busy: number | undefined
  /** Answers that were not the expected one, and errors. */
  readonly failed: number
}

/** The figures of several rounds. */
export interface Summary {
  readonly median: number
  readonly range: Range
}

/**
 * Runs every contestant once per round, in turn, so that a machine that becomes busier or slower meets all of them.
 * Each round begins with another contestant, so that nobody always runs first.
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

/** Median, lowest and highest of those that are numbers; undefined where none is. */
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

/** What two series amount to when held against each other round by round, so that both met the same machine. */
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

/** Our values as a multiple of others, round by round. */
export function ratioOf(
  ours: readonly (number | undefined)[],
  theirs: readonly (number | undefined)[],
  check: Omit<Check, 'unit' | 'value' | 'range' | 'comparable'>,
): Check {
  const ratio = summarizePairs(ours, theirs, (a, b) => a / b)
  return { ...check, unit: '×', value: ratio?.median, range: ratio?.range, comparable: 'anywhere' }
}
