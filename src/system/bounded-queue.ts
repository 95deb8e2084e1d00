import { createFairLine } from './fair-line.ts'

/** Gives the place back. Calling it again does nothing. */
export type Leave = () => void

/**
 * What became of asking for a place: `full` when the waiting line had no room, `late` when patience ran out,
 * `withdrawn` when the caller gave up first.
 */
export type Entry =
  | { readonly kind: 'entered'; readonly leave: Leave }
  | { readonly kind: 'full' }
  | { readonly kind: 'late' }
  | { readonly kind: 'withdrawn' }

type OnWait = (withdraw: () => void) => void

/** At most so many inside at once, at most so many waiting behind them, none of those longer than patience. */
export interface BoundedQueue {
  readonly inside: number
  readonly waiting: number
  /** A place now or not at all: the hot path, without a promise. Never overtakes a waiter. */
  tryEnter(): Leave | undefined
  /**
   * A place as soon as there is one: owners in turn, each one's waiters in order of arrival. In a full line an owner
   * with fewer waiters takes the place of the last one of the owner with most. Whoever has to wait is given the way out
   * first: `withdraw` ends the waiting, and does nothing once that is over. (An `AbortSignal` for each waiter took longer
   * than all the rest of a wait.)
   */
  enter(owner?: string, onWait?: OnWait): Promise<Entry>
}

export interface QueueBounds {
  readonly inside: number
  readonly waiting: number
  /** Milliseconds. */
  readonly patience: number
}

/** What a timer can hold: past it `setTimeout` would fire at once. */
const LONGEST_PATIENCE = 2 ** 31 - 1

const FULL: Entry = { kind: 'full' }
const LATE: Entry = { kind: 'late' }
const WITHDRAWN: Entry = { kind: 'withdrawn' }

type Waiter = (entry: Entry) => void

export function createBoundedQueue(bounds: QueueBounds): BoundedQueue {
  const patience = Math.min(bounds.patience, LONGEST_PATIENCE)
  const line = createFairLine<Waiter>()
  let inside = 0

  // A place is handed over, never put back, while someone waits: that is why nobody can overtake the line.
  const vacate = (): void => {
    const next = line.next()
    if (next === undefined) inside -= 1
    else next({ kind: 'entered', leave: occupied() })
  }

  const occupied = (): Leave => {
    let left = false
    return () => {
      if (left) return
      left = true
      vacate()
    }
  }

  const tryEnter = (): Leave | undefined => {
    if (inside >= bounds.inside) return undefined
    inside += 1
    return occupied()
  }

  const wait = (owner: string, onWait: OnWait | undefined): Promise<Entry> =>
    new Promise((resolve) => {
      const settle: Waiter = (entry) => {
        line.leave(owner, settle)
        clearTimeout(timer)
        resolve(entry)
      }
      const timer = setTimeout(() => settle(LATE), patience)
      line.join(owner, settle)
      onWait?.(() => settle(WITHDRAWN))
    })

  return {
    get inside() {
      return inside
    },
    get waiting() {
      return line.size
    },
    tryEnter,
    async enter(owner = '', onWait) {
      const leave = tryEnter()
      if (leave !== undefined) return { kind: 'entered', leave }
      if (line.size >= bounds.waiting) {
        const displaced = line.makeRoomFor(owner)
        if (displaced === undefined) return FULL
        displaced(FULL)
      }
      return wait(owner, onWait)
    },
  }
}
