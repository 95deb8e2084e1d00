import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { nextTurn } from '../system/clock.ts'

/** A series of a counter or gauge. Its owner keeps it, so a request costs no look-up of labels. A value of NaN has no sample. */
export class Series {
  value = 0

  add(amount = 1): void {
    this.value += amount
  }
}

/** Returns the series with these label values, in the order of the label names. The first call adds the series to the text, at 0. */
type Family<S = Series> = (...values: readonly string[]) => S

type Definition<S = Series> = readonly [
  name: string,
  help: string,
  labelNames?: readonly string[],
  /** Called on each scrape. */
  collect?: (family: Family<S>) => void,
]

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

/** One value of a family: a line of the text. */
interface Sample {
  readonly metricName?: string
  readonly labels: Labels
  readonly value: number
}

type Labels = Readonly<Record<string, string>>

/** What a family of prom-client returns at a scrape. */
type Scraped = Awaited<ReturnType<Histogram['get']>>

interface FamilyConfig {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  readonly registers: Registry[]
}

/** A counter whose samples are read from `Series` when it is scraped. */
class ReadCounter extends Counter {
  readonly #read: () => Scraped

  constructor(config: FamilyConfig, read: () => Scraped) {
    super(config)
    this.#read = read
  }

  override async get(): Promise<Scraped> {
    return this.#read()
  }
}

/** A gauge whose samples are read from `Series` when it is scraped. */
class ReadGauge extends Gauge {
  readonly #read: () => Scraped

  constructor(config: FamilyConfig, read: () => Scraped) {
    super(config)
    this.#read = read
  }

  override async get(): Promise<Scraped> {
    return this.#read()
  }
}

/** A histogram whose samples are read from `Durations` when it is scraped. */
class ReadHistogram extends Histogram {
  readonly #read: () => Scraped

  constructor(config: FamilyConfig, read: () => Scraped) {
    super({ ...config, buckets: [...BOUNDS] })
    this.#read = read
  }

  override async get(): Promise<Scraped> {
    return this.#read()
  }

  /** What a registry prefers to `get` for the text. */
  async getForPromString(): Promise<Scraped> {
    return this.#read()
  }
}

/** The class for a family of each type. */
const CLASSES = { counter: ReadCounter, gauge: ReadGauge, histogram: ReadHistogram } as const

export type MetricRegistry = ReturnType<typeof createMetricRegistry>

/**
 * The metrics of one sidecar. prom-client holds name, help, labels and type of each family, writes the text, and throws for a name that is
 * malformed or taken. The values are in `Series`: prom-client would look up the labels on each count, the owner of a `Series` does it once.
 *
 * @param shared registries whose metrics this registry reports, too
 */
export function createMetricRegistry(...shared: readonly Registry[]) {
  const registry = Registry.merge([...shared, new Registry()])

  function addFamily<S>(
    type: keyof typeof CLASSES,
    [shortName, help, labelNames = [], collect]: Definition<S>,
    create: () => S,
    samplesOf: (series: S, labels: Labels, name: string) => readonly Sample[],
  ): Family<S> {
    const name = `postern_${shortName}`
    const all = new Map<string, { readonly labels: Labels; readonly series: S }>()
    const family: Family<S> = (...values) => {
      const key = values.join('\n')
      const known = all.get(key)
      if (known !== undefined) return known.series
      const labels = Object.fromEntries(labelNames.map((label, i) => [label, values[i] ?? '']))
      const series = create()
      all.set(key, { labels, series })
      return series
    }
    function read(): Scraped {
      collect?.(family)
      const values = [...all.values()].flatMap(({ labels, series }) => samplesOf(series, labels, name))
      // Proof of the cast: at run time, the package uses these words. Its declarations have a numeric enum that it does not export.
      const written = type as unknown as Scraped['type']
      return { name, help, type: written, aggregator: 'sum', collect: () => {}, values }
    }
    new CLASSES[type]({ name, help, labelNames, registers: [registry] }, read)
    return family
  }

  return {
    counter: (...metric: Definition): Family => addFamily('counter', metric, () => new Series(), valueSample),
    gauge: (...metric: Definition): Family => addFamily('gauge', metric, () => new Series(), valueSample),
    histogram: (...metric: Definition<Durations>): Family<Durations> =>
      addFamily('histogram', metric, () => new Durations(), bucketSamples),
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

/** No sample for NaN: prom-client would write `Nan`, which no scraper reads. */
function valueSample({ value }: Series, labels: Labels): readonly Sample[] {
  return Number.isNaN(value) ? [] : [{ labels, value }]
}

function bucketSamples({ counts, sum }: Durations, labels: Labels, name: string): readonly Sample[] {
  let total = 0
  const buckets = counts.map((count, i): Sample => {
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
