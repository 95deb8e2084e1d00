import { prefix64 } from '../http/ip.ts'
import type { Clock } from '../system/clock.ts'

/** The failed logins of a client in one window, which closes at `until` (ms on the monotonic clock). */
interface Failures {
  readonly until: number
  count: number
}

/** The most failed logins of a client in a window. */
export const MOST_FAILURES = 10
/** The length of a window (ms). */
const WINDOW = 60_000
const MOST_CLIENTS = 1_000
/** The key that clients share while the table is full. */
const OTHERS = 'others'

/**
 * Limits failed logins to `MOST_FAILURES` a minute from one client: an IPv4 address or an IPv6 /64. An attempt counts from its beginning,
 * so concurrent attempts do not exceed the limit. An open window is never evicted: in a full table, new clients share one window, so many
 * addresses give an attacker no further guesses.
 */
export function createLoginAttempts(clock: Clock) {
  const windows = new Map<string, Failures>()
  /** Begins an attempt. `count`: the failed attempts of this window, with this one. `retryAfter`: refused, for this time (s). */
  return (client: string) => {
    const now = clock.monotonic()
    // All windows have the same length, so they close in the order of the map.
    for (const [key, { until }] of windows) {
      if (until > now) break
      windows.delete(key)
    }
    const own = prefix64(client)
    const key = windows.has(own) || windows.size < MOST_CLIENTS ? own : OTHERS
    const window = windows.get(key) ?? { until: now + WINDOW, count: 0 }
    windows.set(key, window)
    if (window.count >= MOST_FAILURES)
      return { retryAfter: Math.max(1, Math.ceil((window.until - now) / 1000)) }
    window.count += 1
    return {
      count: window.count,
      /** The password was not wrong, so the attempt does not count. */
      forgive(): void {
        window.count -= 1
      },
    }
  }
}
