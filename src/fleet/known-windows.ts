import {
  createUsedUpWindows,
  findWindow,
  OVERFLOW,
  type UsedUpWindow,
  type WindowPolicy,
} from '../limits/window-table.ts'
import type { CountAnswer } from './count.ts'

/** What a sidecar knows of a window on the server, in ms on its own monotonic clock. */
export interface KnownWindow {
  /** The window closes at this time at the earliest: counted from before the question was sent. */
  closesAt: number
  /** The window closes at this time at the latest: counted from the answer, because the server rounds down. */
  closesBy: number
  usedUp: boolean
  /** Requests of this sidecar past the limit. */
  refused: number
}

export interface KnownWindows {
  readonly size: number
  /** The window that keys without one share while the table is full (C17). */
  readonly overflow: KnownWindow
  /** Where a request of the key counts: see `findWindow`. A window that may have closed is forgotten. */
  find(key: string, now: number): KnownWindow | 'new' | 'overflow'
  /** Takes a place for the window of a key, before the server is asked about it. */
  add(key: string): KnownWindow
  /** The server's answer to a request of this window. */
  learn(window: KnownWindow, answer: CountAnswer, key?: string): void
  /** The server did not answer. It may have opened the window all the same. */
  miss(window: KnownWindow, now: number): void
  /** The windows that this sidecar knows to be used up and that are still open, the latest first, at most 1000. */
  usedUp(now: number): readonly UsedUpWindow[]
}

/**
 * Holds at most `maxKeys` windows, so a sidecar opens no more on the server. A window is placed behind all others when it opens, so
 * the oldest entries close first, at most one window length after they were placed. (A window that another sidecar opened closes
 * sooner.)
 */
export function createKnownWindows(policy: WindowPolicy, maxKeys: number): KnownWindows {
  const windows = new Map<string, KnownWindow>()
  const usedUp = createUsedUpWindows<KnownWindow>(({ closesBy }) => closesBy)

  return {
    get size() {
      return windows.size
    },
    overflow: unknownWindow(),
    find: (key, now) => findWindow(windows, key, now, maxKeys),
    add(key) {
      const window = unknownWindow()
      windows.set(key, window)
      return window
    },
    learn(window, { before, left, askedAt, answeredAt }, key) {
      const closesAt = askedAt + left
      // The known window closed on the way to the server, and this is the next one.
      if (closesAt > window.closesBy) {
        window.usedUp = false
        window.refused = 0
        if (key !== undefined && windows.get(key) === window) {
          windows.delete(key)
          windows.set(key, window)
        }
      }
      window.closesAt = closesAt
      window.closesBy = answeredAt + closesIn(left, policy)
      const wasUsedUp = window.usedUp
      window.usedUp = before + 1 >= policy.requests
      if (before >= policy.requests) window.refused += 1
      if (window.usedUp && !wasUsedUp) usedUp.note(key ?? OVERFLOW, window)
    },
    miss(window, now) {
      if (window.closesAt !== Infinity) return
      window.closesAt = now + policy.window
      window.closesBy = window.closesAt
    },
    usedUp: usedUp.open,
  }
}

/** A window that the server has not been asked about counts as open until it answers. */
function unknownWindow(): KnownWindow {
  return { closesAt: Infinity, closesBy: Infinity, usedUp: false, refused: 0 }
}

/** Time until a window closes (ms), never too short: the server's figure is rounded down. */
export function closesIn(left: number, policy: WindowPolicy): number {
  return Math.min(left + 1, policy.window)
}
