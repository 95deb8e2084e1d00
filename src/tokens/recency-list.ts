import { LRUCache } from 'lru-cache'

/** A bounded table that knows which of its entries was used longest ago. */
export interface RecencyList<V> {
  readonly size: number
  /** Finds an entry and makes it the most recently used. */
  get(key: string): V | undefined
  /** Finds an entry and leaves the order alone. */
  peek(key: string): V | undefined
  /** Adds an entry as the most recently used; past the bound the least recently used one goes. */
  set(key: string, value: V): unknown
  delete(key: string): boolean
  /** Takes out the least recently used entry. */
  pop(): V | undefined
  /** All entries, least recently used first. */
  rvalues(): Iterable<V | undefined>
}

export function createRecencyList<V extends {}>(max: number): RecencyList<V> {
  return new LRUCache<string, V>({ max })
}
