import { isUnreachable, type UpstreamFailure } from '../http/refusal.ts'
import type { Clock, Timer } from '../system/clock.ts'
import { isBug } from '../system/setup-error.ts'
import type { Connections } from './connections.ts'
import { failureOf } from './failure.ts'
import { sendOwnRequest } from './own-request.ts'

export type Breaker = Readonly<ReturnType<typeof createBreaker>>

/** The device counts as down after this many failures in a row. */
const THRESHOLD = 3
/** While the device is down, one request per interval (ms) is sent to test whether it is reachable again. */
const PROBE_INTERVAL = 1_000

/**
 * A circuit breaker. While the device is down, requests fail immediately and do not wait for a deadline.
 *
 * Counts only failures to reach the device. A malformed or late response proves that it is reachable, and one slow page must
 * not shut off the others.
 */
export function createBreaker(clock: Clock) {
  let inARow = 0
  let last: UpstreamFailure | undefined
  let probeAt = 0

  const breaker = {
    /** How often the device has responded, for the first time or after a failure. */
    successes: 0,
    /** The device has responded since the last failure: another response changes nothing. */
    responds: false,
    /** Whether the device counts as down. */
    open: false,
    /** Why a request is refused. Undefined if it may go to the device: while the breaker is open, one request per `PROBE_INTERVAL` may. */
    refuse(): UpstreamFailure | undefined {
      if (!breaker.open) return undefined
      const now = clock.monotonic()
      if (now < probeAt) return last
      probeAt = now + PROBE_INTERVAL
      return undefined
    },
    /** The device responded. Any status proves that it is reachable. */
    succeeded(): void {
      if (!breaker.responds) breaker.successes += 1
      breaker.responds = true
      breaker.open = false
      inARow = 0
    },
    /** Counts a failure to reach the device. Any other failure resets the count, because the device responded. */
    failed(failure: UpstreamFailure): void {
      inARow = isUnreachable(failure) ? inARow + 1 : 0
      breaker.responds = false
      breaker.open = inARow >= THRESHOLD
      last = failure
      if (inARow === THRESHOLD) probeAt = clock.monotonic() + PROBE_INTERVAL
    },
  }
  return breaker
}

interface HealthEvents {
  /** @param failure why `up` is false: the name of the failure, or the status of the response */
  readonly onResult: (up: boolean, failure?: UpstreamFailure | `status ${number}`) => void
  /** Sends a request in a place at the device. Undefined: there was no place in time, so the check says nothing. */
  readonly inPlace: <T>(send: () => Promise<T>) => Promise<T | undefined>
  /** Called when the device did not respond. */
  readonly onFault: (failure: UpstreamFailure) => void
  /** Called for a bug of the sidecar, which says nothing about the device. */
  readonly onBug: (error: unknown) => void
}

/**
 * From `begin` on, requests `path` from the device every `interval` ms, one request at a time. Any response proves that the device is
 * reachable. Only a status below 500 counts as up. `up` is the last result; undefined before the first one. Returns undefined, and checks
 * nothing, if `path` is null.
 */
export function createHealthCheck(
  { path, interval }: { readonly path: string | null; readonly interval: number },
  connections: Connections,
  breaker: Breaker,
  { onResult, inPlace, onFault, onBug }: HealthEvents,
) {
  if (path === null) return undefined
  const request = { method: 'GET', target: path, fields: [] }
  let checking = false
  /** A check that is cut off by the close says nothing of the device. */
  let closed = false

  const report: HealthEvents['onResult'] = (up, failure) => {
    health.up = up
    onResult(up, failure)
  }

  async function check(): Promise<void> {
    if (checking) return
    checking = true
    try {
      const response = await inPlace(() => sendOwnRequest(connections, request, false))
      if (closed || response === undefined) return
      const { status } = response
      breaker.succeeded()
      if (status < 500) report(true)
      else report(false, `status ${status}`)
    } catch (error) {
      if (isBug(error)) {
        onBug(error)
        return
      }
      if (closed) return
      const failure = failureOf(error)
      breaker.failed(failure)
      onFault(failure)
      report(false, failure)
    } finally {
      checking = false
    }
  }

  let timer: Timer | undefined
  const health: { up?: boolean; readonly begin: () => void; readonly close: () => void } = {
    /** A second call does nothing: a reload may keep the check for another service. */
    begin() {
      if (timer !== undefined) return
      timer = connections.clock.every(interval, () => void check())
      void check()
    },
    close() {
      closed = true
      timer?.cancel()
    },
  }
  return health
}
