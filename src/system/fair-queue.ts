/** A queue that serves its owners in turn, so that an owner with many waiters does not delay the others. */
export interface FairQueue<T> {
  /** The waiters of all owners. */
  readonly size: number
  join(owner: string, waiter: T): void
  /** Removes a waiter that gives up, at any position. */
  leave(owner: string, waiter: T): void
  /** Removes and returns the waiter to serve next. */
  next(): T | undefined
  /**
   * Makes room for one more waiter of `owner`: removes and returns the last waiter of the owner with most waiters. Undefined if
   * `owner`, with its new waiter, would have at least as many.
   */
  makeRoomFor(owner: string): T | undefined
}

export function createFairQueue<T>(): FairQueue<T> {
  /** The owners in the order in which they are served. A `Set` keeps the order of arrival. */
  const queues = new Map<string, Set<T>>()
  function leave(owner: string, waiter: T): void {
    const queue = queues.get(owner)
    if (queue?.delete(waiter) !== true) return
    fair.size -= 1
    if (queue.size === 0) queues.delete(owner)
  }

  const fair: { size: number } & FairQueue<T> = {
    size: 0,
    join(owner, waiter) {
      const queue = queues.get(owner) ?? new Set()
      queues.set(owner, queue.add(waiter))
      fair.size += 1
    },
    leave,
    next() {
      for (const [owner, queue] of queues) {
        const [first] = queue
        if (first === undefined) continue
        leave(owner, first)
        // The owner goes behind all the others.
        if (queues.delete(owner)) queues.set(owner, queue)
        return first
      }
      return undefined
    },
    makeRoomFor(owner) {
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
