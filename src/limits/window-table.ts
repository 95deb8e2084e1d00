import type { LimitDecision } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'
import { createUsedUpWindows, OVERFLOW, type UsedUpWindow } from './used-up-windows.ts'

/** How many requests a window admits, and its length (ms). */
export interface WindowPolicy {
  readonly requests: number
  readonly window: number
}

/** A fixed window of one key. Its first request opens it; it closes `policy.window` ms later (C14). */
export interface Window {
  closesAt: number
  count: number
  /** Requests past the limit. */
  refused: number
}

/** The windows of one endpoint type, by key. A store that several sidecars share returns promises. */
export interface Windows {
  /** Counts a request and decides whether it passes. */
  count(key: string): LimitDecision | Promise<LimitDecision>
}

/** A request at the very instant of the close belongs to the next window. */
export function isOpen(window: Window, now: number): boolean {
  return now < window.closesAt
}

export function openWindow(policy: WindowPolicy, now: number): Window {
  return { closesAt: now + policy.window, count: 0, refused: 0 }
}

/**
 * Checks and counts in one step, so that no interleaving admits more than `policy.requests` per window. A refused request does
 * not raise the count and does not prolong the window.
 */
export function countRequest(window: Window, policy: WindowPolicy, now: number): LimitDecision {
  const admitted = window.count < policy.requests
  if (admitted) window.count += 1
  else window.refused += 1
  return {
    admitted,
    limit: policy.requests,
    remaining: Math.max(0, policy.requests - window.count),
    closesIn: window.closesAt - now,
  }
}

/** The windows of this process, without promises. */
export interface WindowTable extends Windows {
  count(key: string): LimitDecision
  /** The number of windows, including closed ones that are not reclaimed yet. */
  readonly size: number
  /** The windows that are used up and still open, the latest first, at most 1000. */
  usedUp(): readonly UsedUpWindow[]
  /** A policy that differs from the present one closes all windows. */
  applyPolicy(policy: WindowPolicy): void
}

/**
 * Holds at most `maxKeys` windows. All windows have the same length, so the map's insertion order is the order in which they
 * close. Reclaiming looks at the oldest entries only, which takes constant time. An open window is never evicted: in a full
 * table new keys share one overflow window, so an attacker with many addresses cannot reset another client's count (C17).
 */
export function createWindowTable(
  policy: WindowPolicy,
  { clock, maxKeys }: { readonly clock: Clock; readonly maxKeys: number },
): WindowTable {
  const windows = new Map<string, Window>()
  let current = policy
  let overflow: Window | undefined
  const usedUp = createUsedUpWindows<Window>(({ closesAt }) => closesAt)

  /** Removes up to two closed windows for each one opened, so the table shrinks under load. */
  function reclaim(now: number): void {
    let steps = 2
    for (const [key, window] of windows) {
      if (isOpen(window, now) || steps === 0) return
      windows.delete(key)
      steps -= 1
    }
  }

  function windowOf(key: string, now: number): Window {
    const known = windows.get(key)
    if (known !== undefined && isOpen(known, now)) return known
    windows.delete(key)
    reclaim(now)
    if (windows.size < maxKeys) {
      const opened = openWindow(current, now)
      windows.set(key, opened)
      return opened
    }
    if (overflow === undefined || !isOpen(overflow, now)) overflow = openWindow(current, now)
    return overflow
  }

  return {
    count(key) {
      const now = clock.monotonic()
      const window = windowOf(key, now)
      const decision = countRequest(window, current, now)
      const overflows = window === overflow
      if (decision.admitted && decision.remaining === 0) usedUp.note(overflows ? OVERFLOW : key, window)
      return overflows ? { ...decision, overflow: true } : decision
    },
    get size() {
      return windows.size
    },
    usedUp: () => usedUp.open(clock.monotonic()),
    applyPolicy(next) {
      if (next.requests === current.requests && next.window === current.window) return
      current = next
      overflow = undefined
      windows.clear()
      usedUp.clear()
    },
  }
}
