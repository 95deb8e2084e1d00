/** An entry that expires at `expiresAt`. `removed`: it was removed before that. */
interface Expiring {
  readonly expiresAt: number
  readonly removed: boolean
}

/**
 * A binary heap, so a sweep costs time per expired entry, not per stored one. A list in the order of issue would not be sorted: a
 * reload changes the lifetimes. Removed entries stay in the heap until they reach its top or make up half of it.
 */
export function createExpiryQueue<T extends Expiring>() {
  let heap: T[] = []
  let discarded = 0

  const at = (i: number): number => heap[i]?.expiresAt ?? Number.POSITIVE_INFINITY

  function push(entry: T): void {
    let i = heap.length
    while (i > 0) {
      const parent = (i - 1) >> 1
      const above = heap[parent]
      if (above === undefined || above.expiresAt <= entry.expiresAt) break
      heap[i] = above
      i = parent
    }
    heap[i] = entry
  }

  function removeFirst(): void {
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let i = 0
    for (;;) {
      const left = 2 * i + 1
      const least = at(left + 1) < at(left) ? left + 1 : left
      const below = heap[least]
      if (below === undefined || last.expiresAt <= below.expiresAt) break
      heap[i] = below
      i = least
    }
    heap[i] = last
  }

  /** Counts a removed entry. The queue drops such entries when they make up half of it. */
  function discard(): void {
    discarded++
    if (discarded < 64 || discarded * 2 < heap.length) return
    // A sorted array is a valid heap.
    heap = heap.filter((entry) => !entry.removed).sort((a, b) => a.expiresAt - b.expiresAt)
    discarded = 0
  }

  /** Sorts the heap again after a change of `expiresAt` in its entries. */
  function reorder(): void {
    heap.sort((a, b) => a.expiresAt - b.expiresAt)
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

  return { push, discard, reorder, take }
}
