/** What one run of a load generator against one peer gave. */
export interface Sample {
  readonly requestsPerSecond: number
  /** Milliseconds; undefined where the generator does not tell. */
  readonly p50?: number | undefined
  readonly p99?: number | undefined
  /** Microseconds of the proxy's own processor time per request: hardly moved by what else the machine does. */
  readonly cpuPerRequest?: number | undefined
  /** The part of its core that the proxy used. Well below 1, something else was the bottleneck. */
  readonly busy?: number | undefined
  /** Answers that were not 2xx, and errors. */
  readonly failed: number
}

/** The figures of several rounds. */
export interface Summary {
  readonly median: number
  /** Distance from the slowest to the fastest round, as a part of the median. */
  readonly spread: number
}

/**
 * Runs every contestant once per round, in turn, so that a machine that becomes busier or slower meets all of them.
 * The first round begins with another contestant each time, so that nobody always runs first.
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

/** Median and spread; of nothing, not a number. */
export function summarize(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (index: number): number => sorted[index] ?? Number.NaN
  const middle = (sorted.length - 1) / 2
  const median = (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2
  return { median, spread: (at(sorted.length - 1) - at(0)) / median }
}

/** The summary of one figure, over the samples that have it. */
export function summarizeBy(samples: readonly Sample[], figure: keyof Sample): Summary | undefined {
  const values = samples.map((sample) => sample[figure]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : summarize(values)
}
