import type { Clock } from './clock.ts'
/** Gives the place back. Only the first call has an effect. */
export type Leave = () => void

/**
 * The result of `enter`. `full`: the queue had no room for another waiter. `late`: no place was free within `maxWait`.
 * `withdrawn`: the caller stopped waiting.
 */
export type Entry =
  | { readonly kind: 'entered'; readonly leave: Leave }
  | { readonly kind: 'full' }
  | { readonly kind: 'late' }
  | { readonly kind: 'withdrawn' }

type OnWait = (withdraw: () => void) => void

export type BoundedQueue = ReturnType<typeof createBoundedQueue>

/** A number that may change. If it falls below the places in use, no caller enters until enough have left. */
interface Bound {
  readonly places: number
}

interface QueueBounds {
  /** How many callers may be inside. */
  readonly inside: number | Bound
  readonly waiting: number
  /** How long one caller waits (ms). */
  readonly maxWait: number
}

const FULL: Entry = { kind: 'full' }
const LATE: Entry = { kind: 'late' }
const WITHDRAWN: Entry = { kind: 'withdrawn' }

type Waiter = (entry: Entry) => void

/** A queue for the same places, which gets no new callers any more. */
interface Predecessor {
  readonly inside: number
  readonly waiting: number
  passOn(to: { readonly fill: () => void }): void
}

/**
 * Limits how many callers are inside at the same time, how many wait to enter, and how long each waits.
 *
 * @param before what is inside there is inside here, too
 */
export function createBoundedQueue(clock: Pick<Clock, 'after'>, bounds: QueueBounds, before?: Predecessor) {
  const waiters = createFairQueue<Waiter>()
  const most: Bound = typeof bounds.inside === 'number' ? { places: bounds.inside } : bounds.inside
  let inside = 0
  /** It has the places that are left here. */
  let successor: { readonly fill: () => void } | undefined
  let earlier = before

  /**
   * Lets waiters in while places are free. Call it when there are more places. A place passes directly to the next waiter and is never
   * free in between, so `tryEnter` cannot overtake a waiter.
   */
  const fill = (): void => {
    if (earlier?.inside === 0 && earlier.waiting === 0) earlier = undefined
    while (inside + (earlier?.inside ?? 0) < most.places) {
      const next = waiters.next()
      if (next === undefined) return
      inside += 1
      next({ kind: 'entered', leave: occupied() })
    }
  }

  const occupied = (): Leave => {
    let left = false
    return () => {
      if (left) return
      left = true
      inside -= 1
      if (waiters.size > 0) fill()
      if (successor !== undefined) successor.fill()
    }
  }

  /** Enters now if a place is free. For the hot path: it creates no promise. It never overtakes a waiter. */
  const tryEnter = (): Leave | undefined => {
    if (waiters.size > 0) fill()
    if (inside + (earlier?.inside ?? 0) >= most.places) return undefined
    inside += 1
    return occupied()
  }

  const wait = (owner: string, onWait: OnWait | undefined): Promise<Entry> =>
    new Promise((resolve) => {
      const settle: Waiter = (entry) => {
        waiters.leave(owner, settle)
        timer.cancel()
        resolve(entry)
      }
      const timer = clock.after(bounds.maxWait, () => settle(LATE))
      waiters.join(owner, settle)
      onWait?.(() => settle(WITHDRAWN))
    })

  return {
    get inside(): number {
      return inside + (earlier?.inside ?? 0)
    },
    get waiting(): number {
      return waiters.size
    },
    /** How many callers may be inside now. */
    get places(): number {
      return most.places
    },
    fill,
    tryEnter,
    /** Another queue for the same places: what is inside here counts there, and the waiters here go first. */
    passOn(to: { readonly fill: () => void }): void {
      successor = to
    },
    /**
     * Enters as soon as a place is free. Owners are served in turn (round robin), the waiters of one owner in order of arrival. If the
     * queue is full and the new waiter's owner would still have fewer waiters than the owner with most, the last waiter of that owner
     * is displaced with `full`.
     *
     * @param onWait called when the wait begins. Its argument `withdraw` ends the wait; later calls do nothing. (An `AbortSignal` for
     *   each waiter would cost more time than the whole rest of the wait.)
     */
    async enter(owner = '', onWait?: OnWait): Promise<Entry> {
      const leave = tryEnter()
      if (leave !== undefined) return { kind: 'entered', leave }
      if (waiters.size >= bounds.waiting) {
        const displaced = waiters.makeRoomFor(owner)
        if (displaced === undefined) return FULL
        displaced(FULL)
      }
      return wait(owner, onWait)
    },
  }
}

/** A queue that serves its owners in turn (round robin), so that an owner with many waiters does not delay the others. */
export function createFairQueue<T>() {
  /** The owners in the order of service, each with its waiters in the order of arrival. */
  const queues = new Map<string, Set<T>>()
  /** Removes a waiter at any position. Does nothing if it has left already. */
  function leave(owner: string, waiter: T): void {
    const queue = queues.get(owner)
    if (queue?.delete(waiter) !== true) return
    fair.size -= 1
    if (queue.size === 0) queues.delete(owner)
  }

  const fair = {
    /** The number of waiters of all owners. */
    size: 0,
    join(owner: string, waiter: T): void {
      const queue = queues.get(owner) ?? new Set()
      queues.set(owner, queue.add(waiter))
      fair.size += 1
    },
    leave,
    /** Removes and returns the waiter to serve next. */
    next(): T | undefined {
      for (const [owner, queue] of queues) {
        const [first] = queue
        if (first === undefined) continue
        leave(owner, first)
        // The owner moves behind all others.
        if (queues.delete(owner)) queues.set(owner, queue)
        return first
      }
      return undefined
    },
    /**
     * Makes room for one more waiter of `owner`: removes and returns the last waiter of the owner with most waiters. Undefined if no
     * owner has more waiters than `owner` would have with the new one.
     */
    makeRoomFor(owner: string): T | undefined {
      const own = queues.get(owner)?.size ?? 0
      let longest: readonly [string, Set<T>] | undefined
      for (const entry of queues) if (entry[1].size > (longest?.[1].size ?? own + 1)) longest = entry
      if (longest === undefined) return undefined
      const last = [...longest[1]].at(-1)
      if (last !== undefined) leave(longest[0], last)
      return last
    },
  }
  return fair
}
