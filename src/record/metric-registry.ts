import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { nextTurn } from '../system/clock.ts'

/** A series of a counter or gauge. Its owner keeps it, so a request costs no look-up of labels. */
export class Series {
  value = 0

  add(amount = 1): void {
    this.value += amount
  }
}

/** The upper bounds of the buckets in seconds: from a fast response of a device in the LAN to the response deadline. */
export const BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** A series of a histogram of durations. */
class Durations {
  /** The observations of each bucket, without those of lower buckets. The last bucket has no upper bound. */
  readonly counts = new Array<number>(BOUNDS.length + 1).fill(0)
  /** The sum of all observations (s). */
  sum = 0

  observe(seconds: number): void {
    let i = 0
    while (seconds > (BOUNDS[i] ?? Number.POSITIVE_INFINITY)) i += 1
    this.counts[i] = (this.counts[i] ?? 0) + 1
    this.sum += seconds
  }
}

type Labels = Readonly<Record<string, string>>

/** Returns the series with these label values, in the order of the label names. The first call adds the series to the text, at 0. */
type Family<S = Series> = (...values: readonly string[]) => S

/** The series of a family with their labels, in the order in which they were added. */
type SeriesList<S> = readonly { readonly labels: Labels; readonly series: S }[]

function createFamily<S>(
  labelNames: readonly string[],
  create: () => S,
): { readonly family: Family<S>; readonly all: () => SeriesList<S> } {
  const byLabels = new Map<string, SeriesList<S>[number]>()
  const family: Family<S> = (...values) => {
    const key = values.join('\n')
    const known = byLabels.get(key)
    if (known !== undefined) return known.series
    const labels = Object.fromEntries(labelNames.map((label, i) => [label, values[i] ?? '']))
    const series = create()
    byLabels.set(key, { labels, series })
    return series
  }
  return { family, all: () => [...byLabels.values()] }
}

/** Removes all samples. After `reset`, a family without labels would still have one, of 0. */
function empty(metric: Counter | Gauge, labelNames: readonly string[]): void {
  metric.reset()
  if (labelNames.length === 0) metric.remove()
}

/** What a histogram of prom-client returns at a scrape. */
type Scraped = Awaited<ReturnType<Histogram['get']>>

/**
 * A histogram whose samples are read from `Durations` when it is scraped. It is a subclass, because `collect` cannot set the buckets of
 * prom-client: only `observe` fills them, one observation and one look-up of labels at a time.
 */
class ReadHistogram extends Histogram {
  readonly #read: () => Scraped

  constructor(
    config: { name: string; help: string; registers: Registry[] },
    labelNames: readonly string[],
    all: () => SeriesList<Durations>,
  ) {
    super({ ...config, labelNames, buckets: [...BOUNDS] })
    const { name, help } = config
    this.#read = () => ({
      name,
      help,
      // Proof of the cast: at run time, the package uses this word. Its declarations have a numeric enum that it does not export.
      type: 'histogram' as unknown as Scraped['type'],
      aggregator: 'sum',
      collect: () => {},
      values: all().flatMap(({ labels, series }) => bucketSamples(name, labels, series)),
    })
  }

  override async get(): Promise<Scraped> {
    return this.#read()
  }

  /** What a registry prefers to `get` for the text. */
  async getForPromString(): Promise<Scraped> {
    return this.#read()
  }
}

function bucketSamples(name: string, labels: Labels, { counts, sum }: Durations): Scraped['values'] {
  let total = 0
  const buckets = counts.map((count, i) => {
    total += count
    return {
      metricName: `${name}_bucket`,
      labels: { le: String(BOUNDS[i] ?? '+Inf'), ...labels },
      value: total,
    }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ]
}

export type MetricRegistry = ReturnType<typeof createMetricRegistry>

/**
 * The metrics of one sidecar. prom-client holds name, help, labels and type of each family, writes the text, and throws for a name that is
 * malformed or taken. It gets the values when it collects them for a scrape. Until then they are in `Series`: prom-client would look up
 * the labels on each count, the owner of a `Series` does it once.
 *
 * @param shared registries whose metrics this registry reports, too
 */
export function createMetricRegistry(...shared: readonly Registry[]) {
  const registry = Registry.merge([...shared, new Registry()])
  const describe = (shortName: string, help: string) => ({
    name: `postern_${shortName}`,
    help,
    registers: [registry],
  })

  return {
    counter(shortName: string, help: string, labelNames: readonly string[] = []): Family {
      const { family, all } = createFamily(labelNames, () => new Series())
      new Counter({
        ...describe(shortName, help),
        labelNames,
        collect() {
          empty(this, labelNames)
          for (const { labels, series } of all()) this.inc(labels, series.value)
        },
      })
      return family
    },
    gauge(shortName: string, help: string, labelNames: readonly string[] = []): Family {
      const { family, all } = createFamily(labelNames, () => new Series())
      new Gauge({
        ...describe(shortName, help),
        labelNames,
        collect() {
          empty(this, labelNames)
          for (const { labels, series } of all()) this.set(labels, series.value)
        },
      })
      return family
    },
    /** A gauge that is asked for its value on each scrape. Undefined: it has no sample. */
    readGauge(shortName: string, help: string, read: () => number | undefined): void {
      new Gauge({
        ...describe(shortName, help),
        collect() {
          const value = read()
          if (value === undefined) this.remove()
          else this.set(value)
        },
      })
    },
    /** A gauge with one label that is asked on each scrape: for the values by the value of the label. */
    readGauges(
      shortName: string,
      help: string,
      label: string,
      read: () => Readonly<Record<string, number>>,
    ): void {
      new Gauge({
        ...describe(shortName, help),
        labelNames: [label],
        collect() {
          this.reset()
          for (const [of, value] of Object.entries(read())) this.set({ [label]: of }, value)
        },
      })
    },
    histogram(shortName: string, help: string, labelNames: readonly string[] = []): Family<Durations> {
      const { family, all } = createFamily(labelNames, () => new Durations())
      new ReadHistogram(describe(shortName, help), labelNames, all)
      return family
    },
    contentType: registry.contentType as string,
    /** The exposition text. Concurrent readers share one text, which begins after the last of them has asked: no text is stale. */
    text: shareNext(() => writeInTurns(registry)),
  }
}

/** The families that one turn of the event loop writes: all at once would delay clients by some milliseconds (C26). */
const FAMILIES_PER_TURN = 8

async function writeInTurns(registry: Registry): Promise<string> {
  const names = registry.getMetricsAsArray().map(({ name }) => name)
  const families: string[] = []
  for (let i = 0; i < names.length; i += FAMILIES_PER_TURN) {
    await nextTurn()
    const written = names
      .slice(i, i + FAMILIES_PER_TURN)
      .map((name) => registry.getSingleMetricAsString(name))
    families.push(...(await Promise.all(written)))
  }
  return `${families.join('\n\n')}\n`
}

/** Runs `make` once at a time. Callers that come during a run share the next one, so no caller gets a result from before its call. */
function shareNext<T>(make: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve()
  let next: Promise<T> | undefined
  return () => {
    next ??= running.then(() => {
      next = undefined
      const made = make()
      running = made.catch(() => {})
      return made
    })
    return next
  }
}

/** Creates the series of a family with one label at the start: `increase()` of Prometheus misses the first event of a new series. */
export function seriesOf<Value extends string>(
  family: Family,
  values: readonly Value[],
): Readonly<Record<Value, Series>> {
  // Proof of the cast: the keys are exactly `values`.
  return Object.fromEntries(values.map((value) => [value, family(value)])) as Record<Value, Series>
}
