import type { Client } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { GateExchange } from './gate-exchange.ts'

/** For a request whose grant is revoked. */
export const REVOKED: Refusal = { kind: 'unauthorized', cause: 'revoked' }

/** For a stream whose grant has expired or was evicted. */
const LAPSED: Refusal = { kind: 'unauthorized', cause: 'expired' }

/** An admitted exchange in flight: a node of a linked list, with its links. */
export interface LiveExchange extends Pick<Exchange, 'start' | 'streamAt'> {
  readonly client: Pick<Client, 'address'>
  grant: string | undefined
  newer: this | undefined
  older: this | undefined
}

/** A request in flight that a grant has admitted, or a response in flight with its tokens. */
export interface GrantedExchange {
  readonly grant: string
  readonly client: Pick<Client, 'address'>
  /** When its head was read (ms on the monotonic clock). */
  readonly start: number
}

export type LiveExchanges<E extends LiveExchange = GateExchange> = ReturnType<typeof createLiveExchanges<E>>

/** Why an exchange must end; undefined if it may go on. */
type Judge<E> = (exchange: E) => Refusal | undefined

/**
 * The admitted exchanges in flight, forwarded or served by an own endpoint, in one linked list for all grants: every request is added and
 * deleted, but grants are rarely revoked. A `Set` would take a microsecond to add and delete, mostly to create a hash for the new object.
 */
export function createLiveExchanges<E extends LiveExchange = GateExchange>() {
  let newest: E | undefined
  let end: (exchange: E, refusal: Refusal) => void = () => {}
  /** For each request whose lookup is pending: the judges of the requests in flight that were called meanwhile. */
  const pending = new Set<Judge<E>[]>()

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

  function endAll(refusalOf: Judge<E>): readonly Refusal[] {
    const over: { readonly exchange: E; readonly refusal: Refusal }[] = []
    for (const exchange of all()) {
      const refusal = refusalOf(exchange)
      if (refusal !== undefined) over.push({ exchange, refusal })
    }
    // Each end changes the list, so it comes after the walk.
    for (const { exchange, refusal } of over) end(exchange, refusal)
    return over.map(({ refusal }) => refusal)
  }

  /** Ends the exchanges that `refusalOf` refuses, also those whose lookup is pending, as soon as they are admitted. Returns the refusals. */
  function judgeAnew(refusalOf: Judge<E>): readonly Refusal[] {
    for (const judges of pending) judges.push(refusalOf)
    return endAll(refusalOf)
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
      endAll((exchange) => {
        const { grant } = exchange
        return grant !== undefined && isStreaming(exchange, now) && isOver(grant) ? LAPSED : undefined
      })
    },
    all,
    /** The exchanges that a grant has admitted. */
    granted,
    /** The grants of the streams and tunnels that are open `now`. */
    streaming: (now: number): ReadonlySet<string> => new Set(streaming(now)),
    /** Begins to collect the judges that are called while the lookup of a request is pending. */
    watch() {
      const judges: Judge<E>[] = []
      pending.add(judges)
      return {
        /** Why the exchange that this lookup admitted must end; undefined if it may go on. */
        judge: (exchange: E): Refusal | undefined =>
          judges
            .values()
            .map((refusalOf) => refusalOf(exchange))
            .find(isRefusal),
        /** Call this when the lookup is over. */
        close: (): boolean => pending.delete(judges),
      }
    },
  }
}

function isRefusal(result: Refusal | undefined): boolean {
  return result !== undefined
}

function isStreaming({ streamAt }: LiveExchange, now: number): boolean {
  return streamAt !== 0 && now >= streamAt
}
