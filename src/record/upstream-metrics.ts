import { isUnreachable, type UpstreamFailure } from '../http/refusal.ts'
import type { MetricRegistry } from './metric-registry.ts'

/** The load of the device, the sum over its services. */
export interface DeviceLoad {
  readonly inFlight: number
  readonly queued: number
  readonly tolerant: boolean
}

/** The events of one service of the device. */
export interface UpstreamMetrics {
  /** @param duration time to the head of the response (ms) */
  responded(duration: number): void
  failed(reason: UpstreamFailure): void
  up(up: boolean): void
  tunnel(change: 1 | -1): void
}

const IDLE: DeviceLoad = { inFlight: 0, queued: 0, tolerant: false }

/**
 * The metrics of the device. Metrics without a label are the sum over all services, except `upstream_up`, which is the main
 * service's. The returned function returns the metrics of one service; its argument is the path of a route. It returns the same
 * object on each call, because `upstream_up` is set only on a change, so one object has to see every response.
 */
export function createUpstreamMetrics(
  { counter, gauge, histogram }: MetricRegistry,
  load: () => DeviceLoad | undefined,
): (route: string | undefined) => UpstreamMetrics {
  const duration = histogram(
    'upstream_duration_seconds',
    "Time from sending a request to the device to the head of the device's response.",
  ).series()
  const errors = counter('upstream_errors_total', 'Requests that failed at the device, by reason.', [
    'reason',
  ])
  const mainUp = gauge('upstream_up', 'Whether the device responded to the last request or health check.')
  // No sample before the first request: a 0 would raise an alarm.
  mainUp.remove()
  const routeUp = gauge(
    'route_up',
    'Whether a service of upstream.routes responded to its last request or health check, by path.',
    ['route'],
  )
  const now = (): DeviceLoad => load() ?? IDLE
  gauge('upstream_in_flight', 'Requests in flight at the device.', [], (g) => g.set(now().inFlight))
  gauge('upstream_queued', 'Requests in the queue for the device.', [], (g) => g.set(now().queued))
  gauge(
    'upstream_tolerant',
    'Whether responses of the device are parsed tolerantly, with a connection for each request.',
    [],
    (g) => g.set(now().tolerant ? 1 : 0),
  )
  const tunnels = gauge('tunnels', 'Open WebSocket tunnels.')

  const services = new Map<string | undefined, UpstreamMetrics>()

  function serviceMetrics(route: string | undefined): UpstreamMetrics {
    const set = onChange((up: 0 | 1) => (route === undefined ? mainUp.set(up) : routeUp.set({ route }, up)))
    return {
      responded(ms) {
        duration.observe(ms / 1000)
        set(1)
      },
      failed(reason) {
        errors.inc({ reason })
        if (isUnreachable(reason)) set(0)
      },
      up: (up) => set(up ? 1 : 0),
      tunnel: (change) => tunnels.inc(change),
    }
  }

  return (route) => {
    const metrics = services.get(route) ?? serviceMetrics(route)
    services.set(route, metrics)
    return metrics
  }
}

/** Calls `publish` only with a value that differs from the last one. */
function onChange<T>(publish: (value: T) => void): (value: T) => void {
  let last: T | undefined
  return (value) => {
    if (value === last) return
    last = value
    publish(value)
  }
}
