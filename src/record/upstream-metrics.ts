import { isUnreachable, type UpstreamFailure } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import { type MetricRegistry, seriesOf } from './metric-registry.ts'

/** The load of the device, the sum over its services. */
export interface DeviceLoad {
  readonly inFlight: number
  readonly queued: number
  readonly tolerant: boolean
  /** The most requests that may be at the device at once. */
  readonly limit: number
}

export type UpstreamMetrics = ReturnType<ReturnType<typeof createUpstreamMetrics>['service']>

/** After this many failed answers in a row, the service counts as down: it answers, but with garbage. */
const FAILED_ANSWERS = 5

/** The value of a gauge: 1, 0, or none. */
const numberOf = (up: boolean | null | undefined): number | undefined =>
  typeof up === 'boolean' ? Number(up) : undefined

export type StrikeKind = 'guess' | 'broke'
const STRIKE_KINDS: readonly StrikeKind[] = ['guess', 'broke']

const NO_FAILURE = { failure: null, failedAt: null }
const IDLE: DeviceLoad = { inFlight: 0, queued: 0, tolerant: false, limit: 0 }

/**
 * The metrics of the device. A metric without a label is the sum over all services, except `upstream_up`, which is that of the main
 * service.
 */
export function createUpstreamMetrics(
  { counter, gauge, readGauge, readGauges, histogram }: MetricRegistry,
  load: () => DeviceLoad | undefined,
  clock: Clock,
) {
  const duration = histogram(
    'upstream_duration_seconds',
    "Time from sending a request to the device to the head of the device's response.",
  )()
  const errors = counter('upstream_errors_total', 'Requests that failed at the device, by reason.', [
    'reason',
  ])
  const shared = seriesOf(
    counter(
      'upstream_shared_total',
      'Requests that got the response to another one (`upstream.share`), by where it was: at the device, or kept. Each is a request that the device did not get.',
      ['source'],
    ),
    ['device', 'kept'],
  )
  // No sample before the first request: a 0 would raise an alarm.
  readGauge(
    'upstream_up',
    'Whether the device answers: 0 when it cannot be reached, and after five failed answers in a row.',
    () => numberOf(services.get(undefined)?.condition().up),
  )
  readGauges(
    'route_up',
    'Whether a service of upstream.routes answers, by path: 0 when it cannot be reached, and after five failed answers in a row.',
    'route',
    () => {
      const known = [...services].flatMap(([route, each]) => {
        const up = numberOf(each.condition().up)
        return route === undefined || up === undefined ? [] : [[route, up] as const]
      })
      return Object.fromEntries(known)
    },
  )
  const present = (name: string, help: string, member: keyof DeviceLoad): void => {
    readGauge(name, help, () => Number((load() ?? IDLE)[member]))
  }
  present('upstream_in_flight', 'Requests in flight at the device.', 'inFlight')
  present(
    'upstream_limit',
    'Requests that may be at the device at once: upstream.max_in_flight, fixed or learned.',
    'limit',
  )
  const changes = counter(
    'upstream_limit_changes_total',
    'Changes of the learned upstream.max_in_flight, by reason.',
    ['reason'],
  )
  const strikes = seriesOf(
    counter(
      'upstream_strikes_total',
      'How often the device had no room for one more request at once (guess), and how often that broke it (broke).',
      ['kind'],
    ),
    STRIKE_KINDS,
  )
  present('upstream_queued', 'Requests in the queue for the device.', 'queued')
  present(
    'upstream_tolerant',
    'Whether responses of the device are parsed tolerantly, with a connection for each request.',
    'tolerant',
  )
  const tunnels = gauge('tunnels', 'Open WebSocket tunnels.')()

  const services = new Map<string | undefined, ReturnType<typeof serviceMetrics>>()

  function serviceMetrics() {
    let state: { readonly up: boolean | null; readonly since: number | null } = { up: null, since: null }
    let last: { readonly failure: string | null; readonly failedAt: number | null } = NO_FAILURE
    let failedAnswers = 0
    let failedSinceCheck = false
    let isServed = true
    let onChange: ((up: boolean, failure: string | null) => void) | undefined
    function set(up: boolean): void {
      if (up === state.up || !isServed) return
      state = { up, since: clock.wall() }
      onChange?.(up, last.failure)
    }
    function note(failure: string): void {
      last = { failure, failedAt: clock.wall() }
    }
    function relayed(): void {
      if (state.up && failedAnswers === 0) return
      failedAnswers = 0
      set(true)
    }
    return {
      /** @param ms time to the head of the response */
      responded(ms: number): void {
        duration.observe(ms / 1000)
        if (!state.up && failedAnswers < FAILED_ANSWERS) set(true)
      },
      /** A whole response was relayed. */
      relayed,
      failed(reason: UpstreamFailure): void {
        errors(reason).value += 1
        note(reason)
        failedSinceCheck = true
        if (!isUnreachable(reason)) failedAnswers += 1
        if (isUnreachable(reason) || failedAnswers >= FAILED_ANSWERS) set(false)
      },
      /**
       * Notes the result of a health check.
       *
       * @param failure why the service is not up. No request failed, so `upstream_errors_total` does not count it
       */
      up(up: boolean, failure?: string): void {
        if (failure !== undefined) note(failure)
        // A health check asks for one cheap page. A good one does not outweigh the requests that failed since the previous check.
        const isFailing = failedSinceCheck && failedAnswers >= FAILED_ANSWERS
        failedSinceCheck = false
        if (isFailing && up) return
        failedAnswers = 0
        set(up)
      },
      tunnel(change: 1 | -1): void {
        tunnels.value += change
        if (change === 1) relayed()
      },
      /** A request got the response to another one. `isKept`: the response was kept; otherwise the other request was at the device. */
      shared: (isKept: boolean): void => shared[isKept ? 'kept' : 'device'].add(),
      /** The learned bound of its places changed. */
      limitChanged: (reason: string): void => changes(reason).add(),
      /** The device had no room for one more request at once. */
      struck: (kind: StrikeKind): void => strikes[kind].add(),
      /**
       * Whether the service answers, since when, and its last failure, also that of a health check. Times are in ms since the Unix epoch.
       * Null: the service was not asked yet, or has not failed.
       */
      condition: () => ({ ...state, ...last }),
      /**
       * The configuration has the service from now on. Calls `listener` when the service answers for the first time, goes down, or comes up
       * again. A new listener replaces the last.
       */
      watch(listener: NonNullable<typeof onChange>): void {
        onChange = listener
        isServed = true
      },
      /**
       * Forgets whether the service answers, because another device serves it now.
       *
       * @param served whether the configuration still has the service; otherwise its last requests do not say that it answers
       */
      forget(served: boolean): void {
        state = { up: null, since: null }
        last = NO_FAILURE
        failedAnswers = 0
        failedSinceCheck = false
        isServed = served
      },
    }
  }

  return {
    /**
     * The metrics of one service. Returns the same object on each call, because one object has to see every response.
     *
     * @param route the path of a route's service; undefined for the main service
     */
    service(route: string | undefined) {
      const metrics = services.get(route) ?? serviceMetrics()
      services.set(route, metrics)
      return metrics
    },
    durations: duration.counts,
    tunnels,
  }
}
