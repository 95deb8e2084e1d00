/** An entry that expires at `expiresAt`. `removed`: it was removed before that. */
interface Expiring {
  readonly expiresAt: number
  readonly removed: boolean
}

/**
 * A binary heap: the cost of a sweep grows with the number of expired entries, not of stored ones, also when a reload has
 * changed the lifetimes. Removed entries stay in the heap until they reach its top or make up half of it.
 */
export function createExpiryQueue<T extends Expiring>() {
  let heap: T[] = []
  let discarded = 0

  const at = (i: number): number => heap[i]?.expiresAt ?? Number.POSITIVE_INFINITY

  function swap(i: number, j: number): void {
    const a = heap[i]
    const b = heap[j]
    if (a === undefined || b === undefined) return
    heap[i] = b
    heap[j] = a
  }

  function push(entry: T): void {
    let i = heap.push(entry) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (at(parent) <= at(i)) return
      swap(i, parent)
      i = parent
    }
  }

  function removeFirst(): void {
    swap(0, heap.length - 1)
    heap.pop()
    let i = 0
    for (;;) {
      const left = 2 * i + 1
      const least = at(left + 1) < at(left) ? left + 1 : left
      if (at(i) <= at(least)) return
      swap(i, least)
      i = least
    }
  }

  /** Counts a removed entry. The queue drops such entries when they make up half of it. */
  function discard(): void {
    discarded++
    if (discarded < 64 || discarded * 2 < heap.length) return
    // A sorted array is a valid heap.
    heap = heap.filter((entry) => !entry.removed).sort((a, b) => a.expiresAt - b.expiresAt)
    discarded = 0
  }

  /** Takes the earliest entry with `expiresAt <= now`; `undefined` if there is none. */
  function take(now: number): T | undefined {
    for (;;) {
      const first = heap[0]
      if (first === undefined) return undefined
      if (!first.removed && first.expiresAt > now) return undefined
      removeFirst()
      if (!first.removed) return first
      discarded--
    }
  }

  return { push, discard, take }
}
