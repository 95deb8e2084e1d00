/** One figure at one moment: a sample of the exposition text, typed. */
export interface Figure {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/**
 * Durations by bucket, in the text format of Prometheus. Kept by ourselves because every request is observed twice:
 * prom-client's own looks its labels up each time.
 */
export interface Histogram {
  series(labels?: Figure['labels']): Series
  /** Buckets, sum and count of each series, named as in the text. */
  figures(): Figure[]
  text(): string
}

interface Series {
  observe(seconds: number): void
}

/** Around what a LAN device takes, from a cached answer to the response deadline (seconds). */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function createHistogram(name: string, help: string): Histogram {
  const all: (() => Figure[])[] = []

  function series(labels: Figure['labels'] = {}): Series {
    /** How many fell into each bucket and into none of the lower ones; the last bucket has no bound. */
    const counts = new Array<number>(BOUNDS.length + 1).fill(0)
    let sum = 0
    all.push(() => {
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
      observe(seconds) {
        let i = 0
        while (seconds > (BOUNDS[i] ?? Number.POSITIVE_INFINITY)) i += 1
        counts[i] = (counts[i] ?? 0) + 1
        sum += seconds
      },
    }
  }

  const figures = (): Figure[] => all.flatMap((figuresOf) => figuresOf())

  return {
    series,
    figures,
    text: () =>
      [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...figures().map(sample), ''].join('\n'),
  }
}

/** Our own label values need no escaping. */
function sample({ name, labels, value }: Figure): string {
  const pairs = Object.entries(labels).map(([label, of]) => `${label}="${of}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
}
