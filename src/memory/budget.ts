import { CONNECTION, TLS_CONNECTION, TUNNEL } from './costs.ts'
import type { MemoryBound, MemoryBounds } from './machine-memory.ts'

const MIB = 1024 ** 2

/** An idle process without its files, and what requests at the device, tables of moderate size and the log take (bytes). */
const RESERVE = 56 * MIB

/**
 * The part of the rest that clients may hold. The other part is for garbage, which V8 lets grow as large as what lives, and for free
 * pages of the C library.
 */
const SHARE = 0.45

/** The part of V8's heap that may be held: about half of what clients hold is in it. */
const SHARE_OF_HEAP = 0.8

/** The most that `auto` takes (bytes): the clients of one device hold far less, and other programs need the rest of a large machine. */
const MOST = 512 * MIB

/** The account is never smaller (bytes): with less, not even a few clients could be served. */
const LEAST = 8 * MIB

export interface MemoryBudget {
  /** The most that all clients together may hold (bytes). */
  readonly limit: number
  /** The least of what bounds the process. */
  readonly bound: MemoryBound
  /** `listen.memory` names the limit. */
  readonly isGiven: boolean
  /** The limit is the most that `auto` takes, because the share of the bound is larger. */
  readonly isCapped: boolean
}

/** @param hash the memory of the largest configured hash (bytes): the most that `auto` takes has room for two logins at once */
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

/** The keys of the configuration that bound what clients hold. */
export interface HeldByKeys {
  readonly secure: boolean
  readonly maxConnections: number
  /** The sum over all services. */
  readonly maxTunnels: number
}

export interface UnusableKey {
  readonly key: string
  /** The value of the key that would fill the account alone. */
  readonly fits: string
}

/** The keys whose values can never be reached, because what they admit costs more than the whole account. */
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
