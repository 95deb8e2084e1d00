import { isUnreachable, type UpstreamFailure } from '../http/refusal.ts'
import type { MetricRegistry } from './metric-registry.ts'

/** How busy the device is, with all its services. */
export interface UpstreamReadings {
  readonly inFlight: number
  readonly queued: number
  readonly tolerant: boolean
}

/** What happens at one service of the device. */
export interface UpstreamMetrics {
  /** Milliseconds to the head of its response. */
  answered(duration: number): void
  failed(reason: UpstreamFailure): void
  up(up: boolean): void
  tunnel(change: 1 | -1): void
}

const IDLE: UpstreamReadings = { inFlight: 0, queued: 0, tolerant: false }

/**
 * The metrics of the device. Those without a label are the sum over all its services; only `upstream_up` is the main
 * service's alone. The function gives the metrics of one service; its argument is the path of a further one. It gives the
 * same object each time, because `upstream_up` is set only on a change and so has to see every answer.
 */
export function createUpstreamMetrics(
  { counter, gauge, histogram }: MetricRegistry,
  readings: () => UpstreamReadings | undefined,
): (route: string | undefined) => UpstreamMetrics {
  const duration = histogram(
    'upstream_duration_seconds',
    "Time from sending a request to the device to the head of the device's response.",
  ).series()
  const errors = counter('upstream_errors_total', 'Requests that the device failed, by reason.', ['reason'])
  const mainUp = gauge('upstream_up', 'Whether the device answered the last request or health check.')
  // Nobody has asked yet: no sample, rather than one that raises an alarm.
  mainUp.remove()
  const routeUp = gauge('route_up', 'Whether a service of upstream.routes answered last, by its path.', [
    'route',
  ])
  const now = (): UpstreamReadings => readings() ?? IDLE
  gauge('upstream_in_flight', 'Requests at the device now.', [], (g) => g.set(now().inFlight))
  gauge('upstream_queued', 'Requests waiting for a place at the device.', [], (g) => g.set(now().queued))
  gauge('upstream_tolerant', 'Whether the device is read tolerantly, on a connection per request.', [], (g) =>
    g.set(now().tolerant ? 1 : 0),
  )
  const tunnels = gauge('tunnels', 'Open WebSocket tunnels.')

  const services = new Map<string | undefined, UpstreamMetrics>()

  function serviceMetrics(route: string | undefined): UpstreamMetrics {
    const set = onChange((up: 0 | 1) => (route === undefined ? mainUp.set(up) : routeUp.set({ route }, up)))
    return {
      answered(ms) {
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

/** Passes on only what differs from the time before. */
function onChange<T>(tell: (value: T) => void): (value: T) => void {
  let told: T | undefined
  return (value) => {
    if (value === told) return
    told = value
    tell(value)
  }
}
