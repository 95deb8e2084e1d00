import type { LimitDecision } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'

/** How many requests a window admits, and its length (ms). */
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
 *
 * @param windows each with the time at which it closes (ms on the monotonic clock)
 */
export function findWindow<W extends { readonly closesAt: number }>(
  windows: Map<string, W>,
  key: string,
  now: number,
  maxKeys: number,
): W | 'new' | 'overflow' {
  const known = windows.get(key)
  if (known !== undefined) {
    // A request at the very instant of the close belongs to the next window.
    if (now < known.closesAt) return known
    windows.delete(key)
  }
  let steps = 2
  for (const [oldest, window] of windows) {
    if (now < window.closesAt || steps === 0) break
    windows.delete(oldest)
    steps -= 1
  }
  return windows.size < maxKeys ? 'new' : 'overflow'
}

/** A fixed window of one key. Its first request opens it; it closes `policy.window` ms later (C14). */
interface Window {
  closesAt: number
  count: number
  refused: number
}

/** The windows of one endpoint type, by key. */
export interface WindowTable {
  /** Counts a request and decides whether it passes. Windows that several sidecars share return a promise. Never rejects. */
  count(key: string): LimitDecision | Promise<LimitDecision>
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

  return {
    /**
     * Checks and counts in one step, so that no interleaving admits more than `policy.requests` per window. A refused request does
     * not raise the count and does not prolong the window.
     */
    count(key) {
      const now = clock.monotonic()
      const found = findWindow(windows, key, now, maxKeys)
      let window: Window
      if (found === 'new') {
        window = openWindow(now)
        windows.set(key, window)
      } else if (found === 'overflow') {
        if (overflow === undefined || now >= overflow.closesAt) overflow = openWindow(now)
        window = overflow
      } else window = found
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

/** How many are kept. */
const KEPT = 1_000

/**
 * The windows of a table that were used up last. Reading them needs no search of the table.
 *
 * @param closesAt reads when a window closes (ms on the monotonic clock). An entry counts while that is ahead; a window that is opened
 * again and used up again is noted again
 */
export function createUsedUpWindows<W extends { readonly refused: number }>(closesAt: (window: W) => number) {
  const noted = new Map<string, W>()

  return {
    /** The window is used up from now on. Call it once per window. */
    note(key: string, window: W): void {
      noted.delete(key)
      noted.set(key, window)
      const [oldest] = noted.keys()
      if (noted.size > KEPT && oldest !== undefined) noted.delete(oldest)
    },
    /** Those that are still open, the latest first. */
    open: (now: number): readonly UsedUpWindow[] =>
      [...noted]
        .map(([key, window]) => ({ key, closesAt: closesAt(window), refused: window.refused }))
        .filter((each) => now < each.closesAt)
        .reverse(),
    clear: (): void => noted.clear(),
  }
}
