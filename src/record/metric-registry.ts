import { monitorEventLoopDelay } from 'node:perf_hooks'
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type LabelValues,
  type MetricValueWithName,
  Registry,
} from 'prom-client'
import { createHistogram, type Histogram, type Sample } from './tally.ts'

/** `collect` is called on every scrape. */
type Definition<L extends string, M> = readonly [
  name: string,
  help: string,
  labelNames?: readonly L[],
  collect?: (metric: M) => void,
]

export interface MetricRegistry {
  readonly counter: <L extends string>(...metric: Definition<L, Counter<L>>) => Counter<L>
  readonly gauge: <L extends string>(...metric: Definition<L, Gauge<L>>) => Gauge<L>
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

/** A period (ms) of prom-client's monitor of the event loop that never ends. Its usual one, 10 ms, wakes an idle process. */
const NEVER = 2 ** 31 - 1

/** prom-client's metrics of the process. All sidecars of a process share them: what measures the collector cannot be stopped. */
let ofProcess: Registry | undefined

function processMetrics(): Registry {
  if (ofProcess !== undefined) return ofProcess
  ofProcess = new Registry()
  collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: NEVER })
  for (const name of MISNAMED) ofProcess.removeSingleMetric(name)
  measureLoop(ofProcess)
  return ofProcess
}

/** A registry for one sidecar, including prom-client's metrics of the process. */
export function createMetricRegistry(): MetricRegistry {
  const shared = processMetrics()
  const register = new Registry()
  const histograms: Histogram[] = []

  function configured<L extends string, M>(...[name, help, labelNames = [], collect]: Definition<L, M>) {
    const options = { name: `postern_${name}`, help, labelNames, registers: [register] }
    return collect === undefined ? options : { ...options, collect: collecting(collect) }
  }

  return {
    counter: (...metric) => new Counter(configured(...metric)),
    gauge: (...metric) => new Gauge(configured(...metric)),
    histogram(name, help) {
      const histogram = createHistogram(`postern_${name}`, help)
      histograms.push(histogram)
      return histogram
    },
    contentType: register.contentType,
    async text() {
      return [
        await shared.metrics(),
        await register.metrics(),
        ...histograms.map((histogram) => histogram.text()),
      ].join('\n')
    },
    async snapshot() {
      const metrics = [...(await shared.getMetricsAsJSON()), ...(await register.getMetricsAsJSON())]
      const counted = metrics.flatMap((metric) =>
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

/**
 * Replaces prom-client's figures of the event loop by the durations of its turns since the last scrape: work that arrives waits at
 * most that long. Node measures them in the turns themselves, so nothing has to wake up for it.
 */
function measureLoop(register: Registry): void {
  const turns = monitorEventLoopDelay({ samplePerIteration: true })
  turns.enable()
  const figures = {
    min: () => turns.min,
    max: () => turns.max,
    mean: () => turns.mean,
    stddev: () => turns.stddev,
    p50: () => turns.percentile(50),
    p90: () => turns.percentile(90),
    p99: () => turns.percentile(99),
  }
  for (const [key, read] of Object.entries(figures)) {
    const collect = collecting((gauge: Gauge) => {
      gauge.set(turns.count === 0 ? 0 : read() / 1e9)
      if (key === 'p99') turns.reset()
    })
    // Runs after that of prom-client's first gauge, which sets all of them.
    Object.assign(register.getSingleMetric(`nodejs_eventloop_lag_${key}_seconds`) ?? {}, { collect })
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
