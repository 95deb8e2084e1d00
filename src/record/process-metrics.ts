import { monitorEventLoopDelay } from 'node:perf_hooks'
import { collectDefaultMetrics, type Gauge, Registry } from 'prom-client'

/** Gauges of prom-client with a counter's name; `promtool check metrics` reports them. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** A period (ms) of prom-client's monitor of the event loop that never ends. Its usual one, 10 ms, wakes an idle process. */
const NEVER = 2 ** 31 - 1

let ofProcess: Registry | undefined

/** prom-client's metrics of the process. All sidecars of a process share them: what measures the collector cannot be stopped. */
export function processMetrics(): Registry {
  if (ofProcess !== undefined) return ofProcess
  ofProcess = new Registry()
  collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: NEVER })
  for (const name of MISNAMED) ofProcess.removeSingleMetric(name)
  measureLoop(ofProcess)
  return ofProcess
}

/**
 * Replaces prom-client's figures of the event loop by the durations of its turns since the last scrape: work that arrives waits at
 * most that long. Node measures them in the turns themselves, so nothing has to wake up for it.
 */
function measureLoop(register: Registry): void {
  const turns = monitorEventLoopDelay({ samplePerIteration: true })
  turns.enable()
  for (const key of ['min', 'max', 'mean', 'stddev', 50, 90, 99] as const) {
    const name = typeof key === 'number' ? `p${key}` : key
    // Runs after that of prom-client's first gauge, which sets all of them.
    Object.assign(register.getSingleMetric(`nodejs_eventloop_lag_${name}_seconds`) ?? {}, {
      collect(this: Gauge) {
        const nanoseconds = typeof key === 'number' ? turns.percentile(key) : turns[key]
        this.set(turns.count === 0 ? 0 : nanoseconds / 1e9)
        if (key === 99) turns.reset()
      },
    })
  }
}
