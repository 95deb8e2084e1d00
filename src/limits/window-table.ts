import type { LimitDecision } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'
import { createUsedUpWindows, OVERFLOW, type UsedUpWindow } from './used-up-windows.ts'
import { decide, findWindow, isOpen, isSamePolicy, type WindowPolicy } from './window.ts'

/** A fixed window of one key. Its first request opens it; it closes `policy.window` ms later (C14). */
interface Window {
  closesAt: number
  count: number
  /** Requests past the limit. */
  refused: number
}

/** The windows of one endpoint type, by key. Those that several sidecars share return promises. */
export interface Windows {
  /** Counts a request and decides whether it passes. Never rejects. */
  count(key: string): LimitDecision | Promise<LimitDecision>
}

/** The windows that one sidecar uses, and what it knows of them. */
export interface WindowTable extends Windows {
  /** The number of windows, including closed ones that are not reclaimed yet. */
  readonly size: number
  /**
   * The windows that are used up and still open, the latest first, at most 1000. Of shared windows: first those that the sidecar
   * counted alone, then those that it knows on the server, at most 1000 of each. A key that has both appears once.
   */
  usedUp(): readonly UsedUpWindow[]
  /** A policy that differs from the present one opens new windows. */
  applyPolicy(policy: WindowPolicy): void
}

/** The windows of this process, without promises. */
export interface LocalWindows extends WindowTable {
  count(key: string): LimitDecision
}

/**
 * Holds at most `maxKeys` windows, and one that further keys share: see `findWindow`. All windows have the same length, so the map's
 * insertion order is the order in which they close.
 */
export function createWindowTable(
  policy: WindowPolicy,
  { clock, maxKeys }: { readonly clock: Clock; readonly maxKeys: number },
): LocalWindows {
  const windows = new Map<string, Window>()
  let current = policy
  let overflow: Window | undefined
  const usedUp = createUsedUpWindows<Window>(({ closesAt }) => closesAt)

  const openWindow = (now: number): Window => ({ closesAt: now + current.window, count: 0, refused: 0 })

  function windowOf(key: string, now: number): Window {
    const found = findWindow(windows, key, now, maxKeys)
    if (found === 'new') {
      const opened = openWindow(now)
      windows.set(key, opened)
      return opened
    }
    if (found !== 'overflow') return found
    if (overflow === undefined || !isOpen(overflow, now)) overflow = openWindow(now)
    return overflow
  }

  return {
    /**
     * Checks and counts in one step, so that no interleaving admits more than `policy.requests` per window. A refused request does
     * not raise the count and does not prolong the window.
     */
    count(key) {
      const now = clock.monotonic()
      const window = windowOf(key, now)
      const decision = decide(current, window.count, window.closesAt - now)
      if (decision.admitted) window.count += 1
      else window.refused += 1
      const overflows = window === overflow
      if (decision.admitted && decision.remaining === 0) usedUp.note(overflows ? OVERFLOW : key, window)
      return overflows ? { ...decision, overflow: true } : decision
    },
    get size() {
      return windows.size
    },
    usedUp: () => usedUp.open(clock.monotonic()),
    applyPolicy(next) {
      if (isSamePolicy(next, current)) return
      current = next
      overflow = undefined
      windows.clear()
      usedUp.clear()
    },
  }
}
