import { CONNECTION, TLS_CONNECTION, TUNNEL } from './costs.ts'
import type { MemoryBound, MemoryBounds } from './machine-memory.ts'

const MIB = 1024 ** 2

/** The memory (bytes) of an idle process, of requests at the device, of tables of moderate size and of the log. */
const RESERVE = 56 * MIB

/**
 * The part of the memory beyond `RESERVE` that clients may hold. The other part is for garbage, which V8 lets grow to the size of the live
 * objects, and for free pages of the C library.
 */
const SHARE = 0.45

/** The limit as a part of V8's heap limit. Only about half of what clients hold is in that heap. */
const SHARE_OF_HEAP = 0.8

/** The largest limit that `auto` chooses (bytes): clients of one device hold far less, and other programs need the rest of the machine. */
const MOST = 512 * MIB

/** The smallest limit that `auto` chooses (bytes): with less, not even a few clients could be served. */
const LEAST = 8 * MIB

export interface MemoryBudget {
  /** The most that all clients together may hold (bytes). */
  readonly limit: number
  /** The bound from which `auto` computed the limit; with `listen.memory`, the least bound of the process. */
  readonly bound: MemoryBound
  /** The limit is the value of `listen.memory`. */
  readonly isGiven: boolean
  /** The limit is the largest that `auto` chooses: the share of the bound would be larger. */
  readonly isCapped: boolean
}

/**
 * The limit of the account from `listen.memory` and the bounds of the process.
 *
 * @param hash the memory of the most expensive configured password hash (bytes): the limit by `auto` has room for two logins at once
 */
export function budgetOf(memory: number | 'auto', bounds: MemoryBounds, hash = 0): MemoryBudget {
  const [bound] = bounds
  if (memory !== 'auto') return { limit: memory, bound, isGiven: true, isCapped: false }
  const limits = bounds.map(({ bytes, by }) =>
    by === "V8's heap" ? SHARE_OF_HEAP * bytes : SHARE * (bytes - RESERVE),
  )
  const share = Math.round(Math.max(LEAST, Math.min(...limits)))
  const most = Math.max(MOST, 2 * hash)
  return {
    limit: Math.min(share, most),
    bound: bounds[limits.indexOf(Math.min(...limits))] ?? bound,
    isGiven: false,
    isCapped: share > most,
  }
}

/** The values of the configuration that bound what clients hold. */
interface HeldByKeys {
  readonly secure: boolean
  readonly maxConnections: number
  /** The sum over all services. */
  readonly maxTunnels: number
}

export interface UnusableKey {
  readonly key: string
  /** The largest usable value of the key: it fills the account alone. */
  readonly fits: string
}

/** The keys whose values no load can reach, because so many connections or tunnels cost more than the whole account (`limit` bytes). */
export function keysAbove(limit: number, keys: HeldByKeys): readonly UnusableKey[] {
  const found: UnusableKey[] = []
  const judge = (key: string, value: number, cost: number): void => {
    if (value * cost > limit) found.push({ key, fits: String(Math.floor(limit / cost)) })
  }
  const connection = keys.secure ? TLS_CONNECTION : CONNECTION
  judge('listen.max_connections', keys.maxConnections, connection)
  judge('upstream.max_tunnels', keys.maxTunnels, TUNNEL + connection)
  return found
}
