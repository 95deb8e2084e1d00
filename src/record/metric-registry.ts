import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type LabelValues,
  type MetricValueWithName,
  Registry,
} from 'prom-client'
import { createHistogram, type Figure, type Histogram } from './histogram.ts'

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
  histogram(name: string, help: string): Histogram
  readonly contentType: string
  /** The exposition text. */
  text(): Promise<string>
  /** Every sample of the text as a value. */
  snapshot(): Promise<readonly Figure[]>
}

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
        // `metricName` is given where a metric has samples of several names.
        metric.values.map(({ labels, value, metricName = metric.name }: MetricValueWithName<string>) => ({
          name: metricName,
          labels: textual(labels),
          value,
        })),
      )
      return [...counted, ...histograms.flatMap((histogram) => histogram.figures())]
    },
  }
}

function textual(labels: LabelValues<string>): Figure['labels'] {
  return Object.fromEntries(Object.entries(labels).map(([label, value]) => [label, String(value)]))
}

/** prom-client hands the metric over as `this`. */
function collecting<M>(collect: (metric: M) => void): (this: M) => void {
  return function (this: M) {
    collect(this)
  }
}
