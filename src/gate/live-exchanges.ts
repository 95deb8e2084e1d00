import type { GateExchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'

/** For a request whose grant is revoked. */
export const REVOKED: Refusal = { kind: 'unauthorized', cause: 'revoked' }

/** An exchange in flight, with the grant that admitted it. It is a node of a linked list and holds the links. */
export interface LiveExchange {
  grant: string | undefined
  newer: this | undefined
  older: this | undefined
}

export type LiveExchanges<E extends LiveExchange = GateExchange> = ReturnType<typeof createLiveExchanges<E>>

/**
 * The exchanges in flight that were admitted by a grant. One linked list for all grants, because every request is added and deleted
 * but grants are rarely revoked. A `Set` takes a microsecond to add and delete, mostly to create a hash for the new object.
 */
export function createLiveExchanges<E extends LiveExchange = GateExchange>() {
  let newest: E | undefined
  let end: (exchange: E, refusal: Refusal) => void = () => {}
  const watches = new Set<Set<string>>()

  function all(): E[] {
    const found: E[] = []
    for (let at = newest; at !== undefined; at = at.older) found.push(at)
    return found
  }

  /** Ends the exchanges that are refused now. */
  function judgeAnew(refusalOf: (exchange: E) => Refusal | undefined): void {
    const judged = all().map((exchange) => ({ exchange, refusal: refusalOf(exchange) }))
    for (const { exchange, refusal } of judged) if (refusal !== undefined) end(exchange, refusal)
  }

  return {
    add(exchange: E): void {
      exchange.older = newest
      if (newest !== undefined) newest.newer = exchange
      newest = exchange
    },
    /** Must be called exactly once for each added exchange. */
    delete(exchange: E): void {
      const { newer, older } = exchange
      if (older !== undefined) older.newer = newer
      if (newer !== undefined) newer.older = older
      else newest = older
      exchange.newer = undefined
      exchange.older = undefined
    },
    /** Calls the listener with each exchange that is to end, and why. A later listener replaces an earlier one. */
    onEnd(listener: typeof end): void {
      end = listener
    },
    judgeAnew,
    /** Revokes these grants (C8). */
    cut(grants: readonly string[]): void {
      const revoked = new Set(grants)
      for (const watched of watches) for (const grant of grants) watched.add(grant)
      judgeAnew(({ grant }) => (grant !== undefined && revoked.has(grant) ? REVOKED : undefined))
    },
    /** The exchanges of one grant go on with another one, and end with that. */
    handOver(from: string, to: string): void {
      for (const exchange of all()) if (exchange.grant === from) exchange.grant = to
    },
    /** The grants of these exchanges. */
    grants: (): ReadonlySet<string> => new Set(all().flatMap(({ grant }) => grant ?? [])),
    /** Collects the grants that are revoked until `close`, for a request whose token lookup is pending. */
    watchRevoked() {
      const watched = new Set<string>()
      watches.add(watched)
      return { has: (grant: string) => watched.has(grant), close: () => watches.delete(watched) }
    },
  }
}
