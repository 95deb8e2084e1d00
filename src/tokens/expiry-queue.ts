/** Something that ends by itself at `expiresAt`, unless it has `gone` before. */
export interface Expiring {
  readonly expiresAt: number
  readonly gone: boolean
}

export interface ExpiryQueue<T extends Expiring> {
  push(entry: T): void
  /** Says that an entry has `gone`, so that the queue can forget it when such entries pile up. */
  discard(): void
  /** Takes the next entry with `expiresAt <= now`, earliest first; `undefined` when there is none. */
  take(now: number): T | undefined
}

/**
 * A binary heap, so that a sweep costs what has expired and not what is stored, whatever mix of lifetimes a
 * reload leaves behind. Removed entries stay in it until they surface or make up half of it.
 */
export function createExpiryQueue<T extends Expiring>(): ExpiryQueue<T> {
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

  function discard(): void {
    discarded++
    if (discarded < 64 || discarded * 2 < heap.length) return
    // A sorted array is a heap.
    heap = heap.filter((entry) => !entry.gone).sort((a, b) => a.expiresAt - b.expiresAt)
    discarded = 0
  }

  function take(now: number): T | undefined {
    for (;;) {
      const first = heap[0]
      if (first === undefined) return undefined
      if (!first.gone && first.expiresAt > now) return undefined
      removeFirst()
      if (!first.gone) return first
      discarded--
    }
  }

  return { push, discard, take }
}
