/**
 * Durations by bucket, in the text format of Prometheus. Kept by ourselves because every request is observed twice:
 * prom-client's own looks its labels up each time.
 */
export interface Histogram {
  /** @param labels as they stand in the text, e.g. `endpoint="api"` */
  series(labels?: string): Series
  text(): string
}

export interface Series {
  observe(seconds: number): void
}

/** Around what a LAN device takes, from a cached answer to the response deadline (seconds). */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function createHistogram(name: string, help: string): Histogram {
  const all: (() => string[])[] = []

  function series(labels = ''): Series {
    /** How many fell into each bucket and into none of the lower ones; the last bucket has no bound. */
    const counts = new Array<number>(BOUNDS.length + 1).fill(0)
    let sum = 0
    all.push(() => {
      let total = 0
      const buckets = counts.map((count, i) => {
        total += count
        return `${name}_bucket{le="${BOUNDS[i] ?? '+Inf'}"${labels && `,${labels}`}} ${total}`
      })
      const braced = labels && `{${labels}}`
      return [...buckets, `${name}_sum${braced} ${sum}`, `${name}_count${braced} ${total}`]
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

  return {
    series,
    text() {
      const lines = all.flatMap((linesOf) => linesOf())
      return [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...lines, ''].join('\n')
    },
  }
}
