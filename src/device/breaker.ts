import { isUnreachable, type UpstreamFailure } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import { isBug } from '../system/setup-error.ts'
import type { Connections } from './connections.ts'
import { failureOf } from './failure.ts'
import { sendOwnRequest } from './own-request.ts'

/** A circuit breaker. While the device is down, requests fail immediately and do not wait for a deadline. */
export interface Breaker {
  /** The failure to refuse a request with now; undefined when the device may be tried. */
  refuse(): UpstreamFailure | undefined
  /** Whether the device counts as down, so that all requests but one per second are refused. */
  readonly open: boolean
  /** How often the device has responded. */
  readonly successes: number
  /** The device responded. Any status proves that it is reachable. */
  succeeded(): void
  failed(failure: UpstreamFailure): void
}

/** The device counts as down after this many failures in a row. */
const THRESHOLD = 3
/** While the device is down, one request per interval (ms) is sent to test whether it is reachable again. */
const PROBE_INTERVAL = 1_000

/**
 * Counts only failures to reach the device. A malformed or late response proves that it is reachable, and one slow page must
 * not shut off the others.
 */
export function createBreaker(clock: Clock): Breaker {
  let inARow = 0
  let last: UpstreamFailure | undefined
  let probeAt = 0

  const breaker = {
    successes: 0,
    open: false,
    refuse(): UpstreamFailure | undefined {
      if (!breaker.open) return undefined
      const now = clock.monotonic()
      if (now < probeAt) return last
      probeAt = now + PROBE_INTERVAL
      return undefined
    },
    succeeded(): void {
      breaker.successes += 1
      breaker.open = false
      inARow = 0
    },
    failed(failure: UpstreamFailure): void {
      inARow = isUnreachable(failure) ? inARow + 1 : 0
      breaker.open = inARow >= THRESHOLD
      last = failure
      if (inARow === THRESHOLD) probeAt = clock.monotonic() + PROBE_INTERVAL
    },
  }
  return breaker
}

export interface HealthCheck {
  /** The result of the last check; undefined before the first one. */
  readonly up: boolean | undefined
  close(): void
}

/** The name of a failure, or the status of a response. */
export type HealthFailure = UpstreamFailure | `status ${number}`

export interface HealthEvents {
  readonly onResult: (up: boolean, failure?: HealthFailure) => void
  /** The device did not respond. */
  readonly onFault: (failure: UpstreamFailure) => void
  /** Called for a bug of the sidecar, which says nothing about the device. */
  readonly onBug: (error: unknown) => void
}

/**
 * Requests `path` from the device every `interval` ms, one request at a time; never, and undefined, if `path` is null. Any response proves that the device is reachable;
 * only a status below 500 counts as up.
 */
export function startHealthCheck(
  { path, interval }: { readonly path: string | null; readonly interval: number },
  connections: Connections,
  breaker: Breaker,
  { onResult, onFault, onBug }: HealthEvents,
): HealthCheck | undefined {
  if (path === null) return undefined
  const request = { method: 'GET', target: path, fields: [] }
  let checking = false
  let last: boolean | undefined

  function report(failure?: HealthFailure): void {
    last = failure === undefined
    onResult(last, failure)
  }

  async function check(): Promise<void> {
    if (checking) return
    checking = true
    try {
      const { status } = await sendOwnRequest(connections, request, false)
      breaker.succeeded()
      report(status < 500 ? undefined : `status ${status}`)
    } catch (error) {
      if (isBug(error)) {
        onBug(error)
        return
      }
      const failure = failureOf(error)
      breaker.failed(failure)
      onFault(failure)
      report(failure)
    } finally {
      checking = false
    }
  }

  void check()
  const timer = setInterval(() => void check(), interval).unref()
  return {
    get up() {
      return last
    },
    close: () => clearInterval(timer),
  }
}
