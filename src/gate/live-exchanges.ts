/** An exchange under way, and the grant that it was admitted under. Stands in a list, whose links it holds. */
export abstract class LiveExchange {
  abstract readonly grant: string | undefined
  /** The grant is worth nothing any more. */
  abstract revoke(): void

  newer: LiveExchange | undefined
  older: LiveExchange | undefined
}

/** What is under way right now under some grant. */
export interface LiveExchanges {
  add(exchange: LiveExchange): void
  /** Once for each that was added. */
  delete(exchange: LiveExchange): void
  /** Ends everything that was admitted under these grants (C8). */
  cut(grants: readonly string[]): void
  /** Remembers what is revoked from now on, for a request whose grant is still being asked for. */
  watchRevoked(): RevokedMeanwhile
}

export interface RevokedMeanwhile {
  has(grant: string): boolean
  close(): void
}

/**
 * One list for all grants: every request is added and deleted, and a grant is revoked once in a while. A `Set` takes
 * a microsecond for the two, most of it to make up a hash for the newcomer.
 */
export function createLiveExchanges(): LiveExchanges {
  let newest: LiveExchange | undefined
  const watches = new Set<Set<string>>()
  return {
    add(exchange) {
      exchange.older = newest
      if (newest !== undefined) newest.newer = exchange
      newest = exchange
    },
    delete(exchange) {
      const { newer, older } = exchange
      if (older !== undefined) older.newer = newer
      if (newer !== undefined) newer.older = older
      else newest = older
      exchange.newer = undefined
      exchange.older = undefined
    },
    cut(grants) {
      const revoked = new Set(grants)
      const hit: LiveExchange[] = []
      for (let at = newest; at !== undefined; at = at.older) {
        if (at.grant !== undefined && revoked.has(at.grant)) hit.push(at)
      }
      for (const seen of watches) for (const grant of grants) seen.add(grant)
      for (const exchange of hit) exchange.revoke()
    },
    watchRevoked() {
      const seen = new Set<string>()
      watches.add(seen)
      return { has: (grant) => seen.has(grant), close: () => watches.delete(seen) }
    },
  }
}
