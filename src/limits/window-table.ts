import type { LimitDecision } from '../http/admission.ts'
import type { Clock } from '../system/clock.ts'

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

/** The base of a window in a `WindowList`. */
export abstract class Listed {
  /** When the window closes (ms on the monotonic clock). */
  abstract closesAt: number
  key = ''
  /** The neighbours in the order of closing. */
  older: this | undefined
  newer: this | undefined
}

/** A window that its first count opens, and that closes at a fixed time (C14). */
export class Window extends Listed {
  closesAt: number
  count = 0
  refused = 0

  constructor(closesAt: number) {
    super()
    this.closesAt = closesAt
  }
}

/**
 * What is counted by key, such as the requests or the wrong passwords of a client: windows in the order in which they close. An open window
 * is never evicted, so an attacker with many addresses cannot reset the count of another client (C17). Every operation takes constant time,
 * whatever the number of windows. (A `Map` alone is not enough: to find its oldest entry, V8 walks over the holes of all deleted entries.)
 */
export class WindowList<W extends Listed> {
  readonly #make: (now: number) => W
  readonly #windows = new Map<string, W>()
  #oldest: W | undefined
  #newest: W | undefined
  /** The latest window that keys shared because the list was full. */
  overflow: W | undefined

  /** @param make creates a window that opens now (ms on the monotonic clock) */
  constructor(make: (now: number) => W) {
    this.#make = make
  }

  /** The number of windows without `overflow`, including closed ones that are not removed yet. */
  get size(): number {
    return this.#windows.size
  }

  /**
   * The window in which a key counts: its open window, or the overflow window that all further keys share while the list has `maxKeys`
   * windows. Undefined if the key may `open` a window. Each call removes up to two closed windows, so the list shrinks under load.
   *
   * @param now ms on the monotonic clock
   */
  find(key: string, now: number, maxKeys: number): W | undefined {
    const known = this.#windows.get(key)
    if (known !== undefined) {
      // A request at exactly `closesAt` belongs to the next window.
      if (now < known.closesAt) return known
      this.#remove(known)
    }
    for (let steps = 0; steps < 2; steps += 1) {
      if (this.#oldest === undefined || now < this.#oldest.closesAt) break
      this.#remove(this.#oldest)
    }
    if (this.#windows.size < maxKeys) return undefined
    if (this.overflow === undefined || now >= this.overflow.closesAt) this.overflow = this.#make(now)
    return this.overflow
  }

  /** Opens a window for a key without one: see `find`. It must close later than all others in the list. */
  open(key: string, now: number): W {
    const window = this.#make(now)
    window.key = key
    this.#append(window)
    return window
  }

  /** Changes when a window closes. If the window is in the list, it must close later than all others from now on. */
  renew(window: W, closesAt: number): void {
    window.closesAt = closesAt
    // The overflow window, and one that was removed, have no place in the order.
    if (this.#windows.get(window.key) !== window) return
    this.#remove(window)
    this.#append(window)
  }

  clear(): void {
    this.#windows.clear()
    this.#oldest = undefined
    this.#newest = undefined
    this.overflow = undefined
  }

  #append(window: W): void {
    window.older = this.#newest
    if (this.#newest === undefined) this.#oldest = window
    else this.#newest.newer = window
    this.#newest = window
    this.#windows.set(window.key, window)
  }

  #remove(window: W): void {
    const { key, older, newer } = window
    this.#windows.delete(key)
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    window.older = undefined
    window.newer = undefined
  }
}

/** The windows of one endpoint type, by key. */
export interface WindowTable {
  /**
   * Counts a request and decides whether it passes. Tables that several sidecars share return a promise, which never rejects.
   *
   * @param now ms on the monotonic clock, if the caller has read it in this turn
   */
  count(key: string, now?: number): LimitDecision | Promise<LimitDecision>
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
  count(key: string, now?: number): LimitDecision
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
  const windows = new WindowList((now) => new Window(now + current.window))
  const usedUp = createUsedUpWindows<Window>(({ closesAt }) => closesAt)

  return {
    /**
     * Checks and counts in one step, so that no interleaving admits more than `policy.requests` per window. A refused request does
     * not raise the count and does not prolong the window.
     */
    count(key, now = clock.monotonic()) {
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
    usedUp: () => usedUp.stillOpen(clock.monotonic()),
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
 * @param closesAt when a window closes (ms on the monotonic clock). `stillOpen` lists a window until then.
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
    stillOpen: (now: number): readonly UsedUpWindow[] =>
      [...noted]
        .map(([key, window]) => ({ key, closesAt: closesAt(window), refused: window.refused }))
        .filter((each) => now < each.closesAt)
        .reverse(),
    clear: (): void => noted.clear(),
  }
}
