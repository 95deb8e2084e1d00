import { prefix64 } from '../http/ip.ts'
import type { Clock } from '../system/clock.ts'

/** One attempt to sign in. */
export type Attempt =
  | { readonly kind: 'refused'; readonly retryAfter: number }
  | {
      readonly kind: 'admitted'
      /** The password was not wrong, so the attempt does not count. */
      forgive(): void
      /** How many of this window have failed, with this one. */
      readonly count: number
    }

interface Window {
  readonly until: number
  count: number
}

export const MOST_FAILURES = 10
/** Milliseconds. */
const WINDOW = 60_000
const MOST_CLIENTS = 1_000
/** The key that clients share while the table is full. */
const OTHERS = 'others'

/**
 * Limits failed logins to `MOST_FAILURES` a minute from one client: an IPv4 address or an IPv6 /64. An attempt counts from its beginning,
 * so that attempts at the same time do not exceed the limit. An open window is never evicted: in a full table new clients share one, so an
 * attacker with many addresses gets no further guesses by them.
 */
export function createLoginAttempts(clock: Clock): { begin(client: string): Attempt } {
  const windows = new Map<string, Window>()
  return {
    begin(client) {
      const now = clock.monotonic()
      // All windows have the same length, so the first ones close first.
      for (const [key, { until }] of windows) {
        if (until > now) break
        windows.delete(key)
      }
      const own = prefix64(client)
      const key = windows.has(own) || windows.size < MOST_CLIENTS ? own : OTHERS
      const counted = windows.get(key) ?? { until: now + WINDOW, count: 0 }
      windows.set(key, counted)
      if (counted.count >= MOST_FAILURES) {
        return { kind: 'refused', retryAfter: Math.max(1, Math.ceil((counted.until - now) / 1000)) }
      }
      counted.count += 1
      return {
        kind: 'admitted',
        count: counted.count,
        forgive() {
          counted.count -= 1
        },
      }
    },
  }
}
