import { isUnreachable, type UpstreamFailure } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'

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
