import type { Exchange } from '../http/exchange.ts'

/** What is under way right now, by the grant that it was admitted under. */
export interface LiveExchanges {
  /**
   * What needed no grant is not kept: nothing can be revoked about it. `refuse` answers the exchange where that can
   * still be done.
   */
  add(grant: string | undefined, exchange: Exchange, refuse: () => void): void
  /**
   * Breaks off everything that was admitted under these grants: their tokens are worth nothing any more (C8). What has
   * no answer yet is refused, as it would be if it came now.
   */
  cut(grants: readonly string[]): void
}

export function createLiveExchanges(): LiveExchanges {
  const byGrant = new Map<string, Map<Exchange, () => void>>()
  return {
    add(grant, exchange, refuse) {
      if (grant === undefined) return
      const exchanges = byGrant.get(grant) ?? new Map()
      byGrant.set(grant, exchanges.set(exchange, refuse))
      exchange.onEnd(() => {
        exchanges.delete(exchange)
        if (exchanges.size === 0 && byGrant.get(grant) === exchanges) byGrant.delete(grant)
      })
    },
    cut(grants) {
      for (const grant of grants) {
        for (const [exchange, refuse] of byGrant.get(grant) ?? []) {
          if (exchange.answered) exchange.cut()
          else refuse()
        }
      }
    },
  }
}
