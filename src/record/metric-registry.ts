/** A series of a counter or gauge. Its owner adds to it, so the path of a request looks up no label. NaN has no sample. */
export class Series {
  value = 0

  add(amount = 1): void {
    this.value += amount
  }
}

/** The series with these label values, in the order of the label names. It is in the text from its first call on, at 0. */
type Family<S = Series> = (...values: readonly string[]) => S

type Definition<S = Series> = readonly [
  name: string,
  help: string,
  labelNames?: readonly string[],
  /** Called on each scrape. */
  collect?: (family: Family<S>) => void,
]

/** The upper bounds of the buckets in seconds: from a cached response of a LAN device to the response deadline. */
export const BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** A series of a histogram of durations. */
class Durations {
  /** Observations in each bucket and in no lower one. The last bucket has no bound. */
  readonly counts = new Array<number>(BOUNDS.length + 1).fill(0)
  /** Of all observations (s). */
  sum = 0

  observe(seconds: number): void {
    let i = 0
    while (seconds > (BOUNDS[i] ?? Number.POSITIVE_INFINITY)) i += 1
    this.counts[i] = (this.counts[i] ?? 0) + 1
    this.sum += seconds
  }
}

export type MetricRegistry = ReturnType<typeof createMetricRegistry>

/** The metrics of one sidecar, in the text format of Prometheus. (prom-client looks up the labels on each count.) */
export function createMetricRegistry() {
  const families: (() => readonly string[])[] = []

  function addFamily<S>(
    type: string,
    [shortName, help, labelNames = [], collect]: Definition<S>,
    create: () => S,
    linesOf: (series: S, name: string, labels: readonly string[]) => readonly string[],
  ): Family<S> {
    const name = `postern_${shortName}`
    const all = new Map<string, { readonly labels: readonly string[]; readonly series: S }>()
    const family: Family<S> = (...values) => {
      const key = values.join('\n')
      const known = all.get(key)
      if (known !== undefined) return known.series
      const labels = labelNames.map((label, i) => `${label}=${JSON.stringify(values[i])}`)
      const series = create()
      all.set(key, { labels, series })
      return series
    }
    families.push(() => {
      collect?.(family)
      const lines = [...all.values()].flatMap(({ labels, series }) => linesOf(series, name, labels))
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines]
    })
    return family
  }

  return {
    counter: (...metric: Definition): Family => addFamily('counter', metric, () => new Series(), valueLines),
    gauge: (...metric: Definition): Family => addFamily('gauge', metric, () => new Series(), valueLines),
    histogram: (...metric: Definition<Durations>): Family<Durations> =>
      addFamily('histogram', metric, () => new Durations(), bucketLines),
    text: (): string => `${families.flatMap((lines) => lines()).join('\n')}\n`,
  }
}

/** The series of a family with one label, from the start: `increase()` does not see the first event of a new series. */
export function seriesOf<Value extends string>(
  family: Family,
  values: readonly Value[],
): Readonly<Record<Value, Series>> {
  // Proof of the cast: the keys are all values.
  return Object.fromEntries(values.map((value) => [value, family(value)])) as Record<Value, Series>
}

function valueLines({ value }: Series, name: string, labels: readonly string[]): readonly string[] {
  return Number.isNaN(value) ? [] : [sample(name, labels, value)]
}

function bucketLines({ counts, sum }: Durations, name: string, labels: readonly string[]): readonly string[] {
  let total = 0
  const buckets = counts.map((count, i) => {
    total += count
    return sample(`${name}_bucket`, [`le="${BOUNDS[i] ?? '+Inf'}"`, ...labels], total)
  })
  return [...buckets, sample(`${name}_sum`, labels, sum), sample(`${name}_count`, labels, total)]
}

function sample(name: string, labels: readonly string[], value: number): string {
  return `${name}${labels.length === 0 ? '' : `{${labels.join()}}`} ${value}`
}
