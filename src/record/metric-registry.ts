import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type LabelValues,
  type MetricValueWithName,
  Registry,
} from 'prom-client'
import { createHistogram, type Histogram, type Sample } from './histogram.ts'

/** The metrics of one sidecar; each name gets the prefix `postern_`. */
export interface MetricRegistry {
  counter<L extends string>(
    name: string,
    help: string,
    labelNames?: readonly L[],
    collect?: (counter: Counter<L>) => void,
  ): Counter<L>
  /** `collect` is called on every scrape. */
  gauge<L extends string>(
    name: string,
    help: string,
    labelNames?: readonly L[],
    collect?: (gauge: Gauge<L>) => void,
  ): Gauge<L>
  /** A histogram of durations in seconds. */
  histogram(name: string, help: string): Histogram
  readonly contentType: string
  /** The exposition text. */
  text(): Promise<string>
  /** Every sample of the text as a value. */
  snapshot(): Promise<readonly Sample[]>
}

/** Gauges of prom-client with a counter's name; `promtool check metrics` reports them. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** A registry for one sidecar, including prom-client's metrics of the process. */
export function createMetricRegistry(): MetricRegistry {
  const register = new Registry()
  collectDefaultMetrics({ register })
  for (const name of MISNAMED) register.removeSingleMetric(name)
  const registers = [register]
  const histograms: Histogram[] = []
  return {
    counter(name, help, labelNames = [], collect) {
      const options = { name: `postern_${name}`, help, labelNames, registers }
      return new Counter(collect === undefined ? options : { ...options, collect: collecting(collect) })
    },
    gauge(name, help, labelNames = [], collect) {
      const options = { name: `postern_${name}`, help, labelNames, registers }
      return new Gauge(collect === undefined ? options : { ...options, collect: collecting(collect) })
    },
    histogram(name, help) {
      const histogram = createHistogram(`postern_${name}`, help)
      histograms.push(histogram)
      return histogram
    },
    contentType: register.contentType,
    async text() {
      return [await register.metrics(), ...histograms.map((histogram) => histogram.text())].join('\n')
    },
    async snapshot() {
      const counted = (await register.getMetricsAsJSON()).flatMap((metric) =>
        // `metricName` is set if a metric has samples of several names.
        metric.values.map(({ labels, value, metricName = metric.name }: MetricValueWithName<string>) => ({
          name: metricName,
          labels: textual(labels),
          value,
        })),
      )
      return [...counted, ...histograms.flatMap((histogram) => histogram.samples())]
    },
  }
}

function textual(labels: LabelValues<string>): Sample['labels'] {
  return Object.fromEntries(Object.entries(labels).map(([label, value]) => [label, String(value)]))
}

/** prom-client passes the metric as `this`. */
function collecting<M>(collect: (metric: M) => void): (this: M) => void {
  return function (this: M) {
    collect(this)
  }
}
