/** A sample of the exposition text. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/**
 * A histogram of durations in the text format of Prometheus. It replaces prom-client's, which looks up the labels on each
 * observation: each request is observed twice.
 */
export interface Histogram {
  /** @param isShown whether the samples are in the text */
  series(labels?: Sample['labels'], isShown?: () => boolean): Series
  /** Buckets, sum and count of each series, with the names of the text. */
  samples(): Sample[]
  text(): string
}

export interface Series {
  observe(seconds: number): void
  /** Observations in each bucket and in no lower one. The last bucket has no bound. The array is live: it goes on counting. */
  readonly counts: readonly number[]
}

/** The upper bounds of the buckets in seconds: from a cached response of a LAN device to the response deadline. */
export const BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

export function createHistogram(name: string, help: string): Histogram {
  const all: (() => Sample[])[] = []

  function series(labels: Sample['labels'] = {}, isShown = () => true): Series {
    const counts = new Array<number>(BOUNDS.length + 1).fill(0)
    let sum = 0
    all.push(() => {
      if (!isShown()) return []
      let total = 0
      const buckets = counts.map((count, i) => {
        total += count
        return {
          name: `${name}_bucket`,
          labels: { le: String(BOUNDS[i] ?? '+Inf'), ...labels },
          value: total,
        }
      })
      return [
        ...buckets,
        { name: `${name}_sum`, labels, value: sum },
        { name: `${name}_count`, labels, value: total },
      ]
    })
    return {
      counts,
      observe(seconds) {
        let i = 0
        while (seconds > (BOUNDS[i] ?? Number.POSITIVE_INFINITY)) i += 1
        counts[i] = (counts[i] ?? 0) + 1
        sum += seconds
      },
    }
  }

  const samples = (): Sample[] => all.flatMap((samplesOf) => samplesOf())

  return {
    series,
    samples,
    text: () =>
      [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...samples().map(sampleLine), ''].join('\n'),
  }
}

/** The label values are the sidecar's own and need no escape. */
function sampleLine({ name, labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(([label, of]) => `${label}="${of}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
}
