import { monitorEventLoopDelay } from 'node:perf_hooks'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** Gauges of prom-client with the name of a counter (`_total`). They are left out: `promtool check metrics` complains about them. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** The period of prom-client's monitor of the event loop (ms): the longest possible one. The default, 10 ms, wakes an idle process. */
const NEVER = 2 ** 31 - 1

let ofProcess: Registry | undefined

/** prom-client's metrics of the process. All its sidecars share them, because the observer of garbage collection cannot be stopped. */
export function processMetrics(): Registry {
  if (ofProcess !== undefined) return ofProcess
  ofProcess = new Registry()
  collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: NEVER })
  for (const name of MISNAMED) ofProcess.removeSingleMetric(name)
  measureTurns(ofProcess)
  return ofProcess
}

/**
 * Replaces prom-client's figures of the event loop by the durations of its turns since the last scrape: the longest turn is the longest
 * wait of work that arrives. Node measures within the turns, so no timer wakes the process.
 */
function measureTurns(register: Registry): void {
  const turns = monitorEventLoopDelay({ samplePerIteration: true })
  turns.enable()
  const figures = [
    ['min', 'Shortest', () => turns.min],
    ['max', 'Longest', () => turns.max],
    ['mean', 'Mean', () => turns.mean],
    ['stddev', 'Standard deviation of the', () => turns.stddev],
    ['p50', 'Median', () => turns.percentile(50)],
    ['p90', '90th percentile of the', () => turns.percentile(90)],
    // Collected last, because it resets the measurement for the next scrape.
    ['p99', '99th percentile of the', () => turns.percentile(99)],
  ] as const
  for (const [key, which, nanoseconds] of figures) {
    const name = `nodejs_eventloop_lag_${key}_seconds`
    register.removeSingleMetric(name)
    new Gauge({
      name,
      help: `${which} duration of the turns of the event loop since the last scrape.`,
      registers: [register],
      collect() {
        this.set(turns.count === 0 ? 0 : nanoseconds() / 1e9)
        if (key === 'p99') turns.reset()
      },
    })
  }
}
