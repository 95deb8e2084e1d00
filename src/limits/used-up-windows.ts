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

/** The windows of a table that were used up last. Reading them needs no search of the table. */
export interface UsedUpWindows<W> {
  /** The window is used up from now on. Call it once per window; it takes constant time. */
  note(key: string, window: W): void
  /** Those that are still open, the latest first. */
  open(now: number): readonly UsedUpWindow[]
  clear(): void
}

/** How many are kept. */
const KEPT = 1_000

/**
 * @param closesAt reads when a window closes (ms on the monotonic clock). An entry counts while that is ahead; a window that is opened
 * again and used up again is noted again
 */
export function createUsedUpWindows<W extends { readonly refused: number }>(
  closesAt: (window: W) => number,
): UsedUpWindows<W> {
  let noted: { readonly key: string; readonly window: W }[] = []
  let next = 0

  return {
    note(key, window) {
      noted[next % KEPT] = { key, window }
      next += 1
    },
    open(now) {
      const found = new Map<W, UsedUpWindow>()
      for (let i = next - 1; i >= Math.max(0, next - KEPT); i -= 1) {
        const entry = noted[i % KEPT]
        if (entry === undefined || now >= closesAt(entry.window) || found.has(entry.window)) continue
        const { key, window } = entry
        found.set(window, { key, closesAt: closesAt(window), refused: window.refused })
      }
      return [...found.values()]
    },
    clear() {
      noted = []
      next = 0
    },
  }
}
