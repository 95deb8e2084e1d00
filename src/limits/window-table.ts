import type { Clock } from '../system/clock.ts'
import {
  countRequest,
  isOpen,
  openWindow,
  type Verdict,
  type Window,
  type WindowPolicy,
  type Windows,
} from './window.ts'

/** The windows of this process, which knows at once. */
export interface WindowTable extends Windows {
  count(key: string): Verdict
  /** How many windows are held, the closed ones that were not reclaimed yet included. */
  readonly size: number
  /** Takes another policy; where it differs, every key starts afresh. */
  applyPolicy(policy: WindowPolicy): void
}

/**
 * At most `maxKeys` windows are held. All windows of a table are equally long, so the map's insertion order is the
 * order in which they close, and reclaiming looks at the oldest entries only: constant time, however many keys
 * there are. A live window is never evicted; past the cap new keys share one overflow window, so that spraying
 * addresses resets nobody's count (C17).
 */
export function createWindowTable(
  policy: WindowPolicy,
  { clock, maxKeys }: { readonly clock: Clock; readonly maxKeys: number },
): WindowTable {
  const windows = new Map<string, Window>()
  let current = policy
  let overflow: Window | undefined

  /** Two steps for each window opened: the table shrinks under any load that opened it wider. */
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
      return countRequest(windowOf(key, now), current, now)
    },
    get size() {
      return windows.size
    },
    applyPolicy(next) {
      if (next.requests === current.requests && next.window === current.window) return
      current = next
      overflow = undefined
      windows.clear()
    },
  }
}
