/** A waiting line in which everyone's own line is served in turn, so that a crowd of one does not hold up the others. */
export interface FairLine<T> {
  readonly size: number
  join(owner: string, waiter: T): void
  /** Takes one that gives up out of the line, wherever it stands. */
  leave(owner: string, waiter: T): void
  /** Who is served next, taken from the line. */
  next(): T | undefined
  /**
   * Makes room for one more of `owner`, who takes less than the longest: the last of the longest own line is given
   * back, taken from the line. Undefined where `owner` would be no better off than those who wait.
   */
  makeRoomFor(owner: string): T | undefined
}

export function createFairLine<T>(): FairLine<T> {
  /** Own lines in the order in which they are served; each in order of arrival, as a `Set` is. */
  const lines = new Map<string, Set<T>>()
  let size = 0

  function leave(owner: string, waiter: T): void {
    const line = lines.get(owner)
    if (line?.delete(waiter) !== true) return
    size -= 1
    if (line.size === 0) lines.delete(owner)
  }

  return {
    get size() {
      return size
    },
    join(owner, waiter) {
      const line = lines.get(owner) ?? new Set()
      lines.set(owner, line.add(waiter))
      size += 1
    },
    leave,
    next() {
      for (const [owner, line] of lines) {
        const [first] = line
        if (first === undefined) continue
        leave(owner, first)
        // Served once, an owner goes behind all the others.
        if (lines.delete(owner)) lines.set(owner, line)
        return first
      }
      return undefined
    },
    makeRoomFor(owner) {
      const own = lines.get(owner)?.size ?? 0
      let longest: readonly [string, Set<T>] | undefined
      for (const entry of lines) if (entry[1].size > (longest?.[1].size ?? own + 1)) longest = entry
      if (longest === undefined) return undefined
      const last = [...longest[1]].at(-1)
      if (last !== undefined) leave(longest[0], last)
      return last
    },
  }
}
