import type { LimitDecision } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'
import { FixedWindow, WindowList } from './window-list.ts'

/** The number of requests that a window admits, and its length (ms). */
export interface WindowPolicy {
  readonly requests: number
  readonly window: number
}

export function isSamePolicy(one: WindowPolicy, other: WindowPolicy): boolean {
  return one.requests === other.requests && one.window === other.window
}

/**
 * The decision on one request (C14).
 *
 * @param before how many requests the window admitted before this one
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

/** The windows of one endpoint type, by key. */
export interface WindowTable {
  /** Counts a request and decides whether it passes. Tables that several sidecars share return a promise, which never rejects. */
  count(key: string): LimitDecision | Promise<LimitDecision>
  /** The number of windows, including closed ones that are not removed yet. */
  readonly size: number
  /**
   * The windows that are used up and still open, the latest first, at most 1000. A shared table lists first the windows that this sidecar
   * counted alone, then those that it knows on the server, at most 1000 of each. A key with both appears once.
   */
  usedUp(): readonly UsedUpWindow[]
  /**
   * Discards all windows if the policy differs from the present one.
   *
   * @param maxKeys the most windows from now on; those that are open stay. Default: as before
   */
  applyPolicy(policy: WindowPolicy, maxKeys?: number): void
}

/** A table of this process alone: `count` returns no promise. */
export interface LocalWindows extends WindowTable {
  count(key: string): LimitDecision
}

/**
 * Holds at most `maxKeys` windows, and one overflow window that all further keys share: see `WindowList.find`. All windows have the same
 * length, so they close in the order in which they open.
 */
export function createWindowTable(
  policy: WindowPolicy,
  { clock, ...bound }: { readonly clock: Clock; readonly maxKeys: number },
): LocalWindows {
  let { maxKeys } = bound
  let current = policy
  const windows = new WindowList((now) => new FixedWindow(now + current.window))
  const usedUp = createUsedUpWindows<FixedWindow>(({ closesAt }) => closesAt)

  return {
    /**
     * Checks and counts in one step, so that no interleaving admits more than `policy.requests` per window. A refused request does
     * not raise the count and does not prolong the window.
     */
    count(key) {
      const now = clock.monotonic()
      const window = windows.find(key, now, maxKeys) ?? windows.open(key, now)
      const decision = decide(current, window.count, window.closesAt - now)
      if (decision.admitted) window.count += 1
      else window.refused += 1
      const overflows = window === windows.overflow
      if (decision.admitted && decision.remaining === 0) usedUp.note(overflows ? OVERFLOW : key, window)
      return overflows ? { ...decision, overflow: true } : decision
    },
    get size() {
      return windows.size
    },
    usedUp: () => usedUp.open(clock.monotonic()),
    applyPolicy(next, most = maxKeys) {
      maxKeys = most
      if (isSamePolicy(next, current)) return
      current = next
      windows.clear()
      usedUp.clear()
    },
  }
}

/** A window that admits no more requests. */
export interface UsedUpWindow {
  /** The key of the window, or `OVERFLOW`. */
  readonly key: string
  /** On the monotonic clock (ms). */
  readonly closesAt: number
  readonly refused: number
}

/** The key under which the overflow window appears: all clients beyond `limits.max_keys`. No address and no grant has it. */
export const OVERFLOW = 'overflow'

/** How many used-up windows are kept for `usedUp`. */
const KEPT = 1_000

/**
 * The latest used-up windows of a table. To list them needs no search of the table.
 *
 * @param closesAt when a window closes (ms on the monotonic clock). `open` lists a window until then.
 */
export function createUsedUpWindows<W extends { readonly refused: number }>(closesAt: (window: W) => number) {
  const noted = new Map<string, W>()

  return {
    /** Call this once when a window is used up. */
    note(key: string, window: W): void {
      noted.delete(key)
      noted.set(key, window)
      const [oldest] = noted.keys()
      if (noted.size > KEPT && oldest !== undefined) noted.delete(oldest)
    },
    /** The used-up windows that are still open, the latest first. */
    open: (now: number): readonly UsedUpWindow[] =>
      [...noted]
        .map(([key, window]) => ({ key, closesAt: closesAt(window), refused: window.refused }))
        .filter((each) => now < each.closesAt)
        .reverse(),
    clear: (): void => noted.clear(),
  }
}
