import type { LimitDecision } from '../http/admission.ts'

/** How many requests a window admits, and its length (ms). */
export interface WindowPolicy {
  readonly requests: number
  readonly window: number
}

/** What a window in a table has: the time at which it closes (ms on the monotonic clock). */
interface Closing {
  readonly closesAt: number
}

export function isSamePolicy(one: WindowPolicy, other: WindowPolicy): boolean {
  return one.requests === other.requests && one.window === other.window
}

/** A request at the very instant of the close belongs to the next window. */
export function isOpen(window: Closing, now: number): boolean {
  return now < window.closesAt
}

/**
 * The decision on one request (C14).
 *
 * @param before the requests that its window had admitted before it
 * @param closesIn the time until the window closes (ms)
 */
export function decide({ requests }: WindowPolicy, before: number, closesIn: number): LimitDecision {
  return {
    admitted: before < requests,
    limit: requests,
    remaining: Math.max(0, requests - before - 1),
    closesIn,
  }
}

/**
 * Where a request of a key counts in a table of at most `maxKeys` windows: in the open window of the key, in a `new` one, or in the
 * `overflow` window that all further keys share while the table is full (C17). An open window is never evicted, so an attacker with
 * many addresses cannot reset the count of another client.
 *
 * The windows are in the order in which they close. Up to two closed ones are removed for each new one: that takes constant time,
 * and the table shrinks under load.
 */
export function findWindow<W extends Closing>(
  windows: Map<string, W>,
  key: string,
  now: number,
  maxKeys: number,
): W | 'new' | 'overflow' {
  const known = windows.get(key)
  if (known !== undefined) {
    if (isOpen(known, now)) return known
    windows.delete(key)
  }
  let steps = 2
  for (const [oldest, window] of windows) {
    if (isOpen(window, now) || steps === 0) break
    windows.delete(oldest)
    steps -= 1
  }
  return windows.size < maxKeys ? 'new' : 'overflow'
}
