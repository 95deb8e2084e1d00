import type { Exchange } from '../http/exchange.ts'

/** What is under way right now, by the grant that it was admitted under. */
export interface LiveExchanges {
  /** What needed no grant is not kept: nothing can be revoked about it. */
  add(grant: string | undefined, exchange: Exchange): void
  /** Breaks off everything that was admitted under these grants: their tokens are worth nothing any more (C8). */
  cut(grants: readonly string[]): void
}

export function createLiveExchanges(): LiveExchanges {
  const byGrant = new Map<string, Set<Exchange>>()
  return {
    add(grant, exchange) {
      if (grant === undefined) return
      const exchanges = byGrant.get(grant) ?? new Set()
      byGrant.set(grant, exchanges.add(exchange))
      exchange.onEnd(() => {
        exchanges.delete(exchange)
        if (exchanges.size === 0 && byGrant.get(grant) === exchanges) byGrant.delete(grant)
      })
    },
    cut(grants) {
      for (const grant of grants) for (const exchange of byGrant.get(grant) ?? []) exchange.cut()
    },
  }
}
