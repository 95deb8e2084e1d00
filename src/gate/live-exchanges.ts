import type { Client } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { GateExchange } from './gate-exchange.ts'

/** For a request whose grant is revoked. */
export const REVOKED: Refusal = { kind: 'unauthorized', cause: 'revoked' }

/** For a stream whose grant has expired or was evicted. */
const LAPSED: Refusal = { kind: 'unauthorized', cause: 'expired' }

/** A forwarded exchange in flight: a node of a linked list, with its links. */
export interface LiveExchange extends Pick<Exchange, 'start' | 'streamAt'> {
  readonly client: Pick<Client, 'address'>
  grant: string | undefined
  newer: this | undefined
  older: this | undefined
}

/** A request in flight that a grant has admitted. */
export interface GrantedExchange {
  readonly grant: string
  readonly client: Pick<Client, 'address'>
  /** When its head was read (ms on the monotonic clock). */
  readonly start: number
}

export type LiveExchanges<E extends LiveExchange = GateExchange> = ReturnType<typeof createLiveExchanges<E>>

/**
 * The forwarded exchanges in flight, in one linked list for all grants: every request is added and deleted, but grants are rarely revoked.
 * A `Set` would take a microsecond to add and delete, mostly to create a hash for the new object.
 */
export function createLiveExchanges<E extends LiveExchange = GateExchange>() {
  let newest: E | undefined
  let end: (exchange: E, refusal: Refusal) => void = () => {}
  const watches = new Set<Set<string>>()

  function* all(): Generator<E> {
    for (let at = newest; at !== undefined; at = at.older) yield at
  }

  function* granted(): Generator<GrantedExchange> {
    for (const { grant, client, start } of all()) if (grant !== undefined) yield { grant, client, start }
  }

  function* streaming(now: number): Generator<string> {
    for (const exchange of all())
      if (exchange.grant !== undefined && isStreaming(exchange, now)) yield exchange.grant
  }

  /** Ends the exchanges that `refusalOf` refuses. Returns the refusals. */
  function judgeAnew(refusalOf: (exchange: E) => Refusal | undefined): readonly Refusal[] {
    const over: { readonly exchange: E; readonly refusal: Refusal }[] = []
    for (const exchange of all()) {
      const refusal = refusalOf(exchange)
      if (refusal !== undefined) over.push({ exchange, refusal })
    }
    // Each end changes the list, so it comes after the walk.
    for (const { exchange, refusal } of over) end(exchange, refusal)
    return over.map(({ refusal }) => refusal)
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
    /** Revokes these grants for the requests in flight: ends all their exchanges (C8). */
    cut(grants: readonly string[]): void {
      const revoked = new Set(grants)
      for (const watched of watches) for (const grant of grants) watched.add(grant)
      judgeAnew(({ grant }) => (grant !== undefined && revoked.has(grant) ? REVOKED : undefined))
    },
    /** The exchanges of the first grant go on with the second one, and end with that. */
    handOver(from: string, to: string): void {
      for (const exchange of all()) if (exchange.grant === from) exchange.grant = to
    },
    /**
     * Ends the streams and tunnels whose grants have expired or were evicted (C8). Uploads and downloads go on. Called once a second: a
     * response may become a stream after the end of its grant.
     *
     * @param now on the monotonic clock (ms)
     */
    endStreams(now: number, isOver: (grant: string) => boolean): void {
      judgeAnew((exchange) => {
        const { grant } = exchange
        return grant !== undefined && isStreaming(exchange, now) && isOver(grant) ? LAPSED : undefined
      })
    },
    all,
    /** The exchanges that a grant has admitted. */
    granted,
    /** The grants of the streams and tunnels that are open `now`. */
    streaming: (now: number): ReadonlySet<string> => new Set(streaming(now)),
    /** Collects the grants that are revoked until `close`, for a request whose token lookup is pending. */
    watchRevoked() {
      const watched = new Set<string>()
      watches.add(watched)
      return { has: (grant: string) => watched.has(grant), close: () => watches.delete(watched) }
    },
  }
}

function isStreaming({ streamAt }: LiveExchange, now: number): boolean {
  return streamAt !== 0 && now >= streamAt
}
