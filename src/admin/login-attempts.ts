import { prefix64 } from '../http/ip.ts'
import { secondsToReset } from '../http/limit-fields.ts'
import { Window, WindowList } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'

/** The most failed logins of a client in a window. */
export const MOST_FAILURES = 10
/** The length of a window (ms). */
const WINDOW = 60_000
const MOST_CLIENTS = 1_000

/**
 * Limits failed logins to `MOST_FAILURES` a minute from one client: an IPv4 address or an IPv6 /64. An attempt counts from its beginning,
 * so concurrent attempts do not exceed the limit. In a full list, new clients share one window, so many addresses give an attacker no
 * further guesses.
 */
export function createLoginAttempts(clock: Pick<Clock, 'monotonic'>) {
  const windows = new WindowList((now) => new Window(now + WINDOW))
  /** Begins an attempt. `count`: the failed attempts of this window, with this one. `retryAfter`: refused, for this time (s). */
  return (client: string) => {
    const now = clock.monotonic()
    const key = prefix64(client)
    const window = windows.find(key, now, MOST_CLIENTS) ?? windows.open(key, now)
    if (window.count >= MOST_FAILURES) return { retryAfter: secondsToReset(window.closesAt - now) }
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
