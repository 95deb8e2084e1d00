import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Gauge, Histogram } from 'prom-client'

/** The metrics of one sidecar; each name gets the prefix `postern_`. */
export interface MetricRegistry {
  counter<L extends string>(
    name: string,
    help: string,
    labelNames?: readonly L[],
    collect?: (counter: Counter<L>) => void,
  ): Counter<L>
  /** `collect` is called for every scrape. */
  gauge<L extends string>(
    name: string,
    help: string,
    labelNames?: readonly L[],
    collect?: (gauge: Gauge<L>) => void,
  ): Gauge<L>
  /** Of durations, in seconds. */
  histogram<L extends string>(name: string, help: string, labelNames?: readonly L[]): Histogram<L>
  readonly contentType: string
  /** The exposition text. */
  text(): Promise<string>
}

/** Around what a LAN device takes, from a cached answer to the response deadline (seconds). */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** prom-client's own whose names promise a counter that they are not; `promtool check metrics` objects to them. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** A registry of its own, with prom-client's metrics of the process in it. */
export function createMetricRegistry(): MetricRegistry {
  const register = new Registry()
  collectDefaultMetrics({ register })
  for (const name of MISNAMED) register.removeSingleMetric(name)
  const registers = [register]
  return {
    counter(name, help, labelNames = [], collect) {
      const options = { name: `postern_${name}`, help, labelNames, registers }
      return new Counter(collect === undefined ? options : { ...options, collect: collecting(collect) })
    },
    gauge(name, help, labelNames = [], collect) {
      const options = { name: `postern_${name}`, help, labelNames, registers }
      return new Gauge(collect === undefined ? options : { ...options, collect: collecting(collect) })
    },
    histogram: (name, help, labelNames = []) =>
      new Histogram({ name: `postern_${name}`, help, labelNames, buckets: BUCKETS, registers }),
    contentType: register.contentType,
    text: () => register.metrics(),
  }
}

/** prom-client hands the metric over as `this`. */
function collecting<M>(collect: (metric: M) => void): (this: M) => void {
  return function (this: M) {
    collect(this)
  }
}
