/** A request that is in flight. */
interface Sent {
  /** Index of the request in the list of the flood. */
  readonly request: number
  /** Milliseconds on the monotonic clock. */
  readonly at: number
}

/** Every request of a flood: `sent` is the sum of `responses`, `inFlight`, `discarded` and `lost`. */
export interface RequestTotals {
  readonly sent: number
  readonly responses: number
  /**
   * Without a response when autocannon closed its connections at the end. A flood of some seconds leaves `pipelining` requests per
   * connection, one with `requestsEach` leaves one less. The server may have served them.
   */
  readonly inFlight: number
  /** How long the oldest of those in flight had waited (ms). */
  readonly longestWait: number
  /** Sent behind a response with `Connection: close`, which autocannon does not heed. A server ignores them (RFC 9112 §9.6). */
  readonly discarded: number
  /** Without a response, because their connection failed, was closed or timed out. The server may have served them. */
  readonly lost: number
}

/** The requests of one client of autocannon. */
export interface ClientCount {
  /** The client sends its next request. */
  sent(): void
  /**
   * The client receives a response. Returns the index of its request and the time that it took (ms). Undefined if the request had
   * been given up, because the client had opened another connection.
   */
  answered(closes: boolean): { readonly request: number; readonly time: number } | undefined
}

export interface RequestCount {
  client(): ClientCount
  /** Requests that were lost since the last response. */
  lostInARow(): number
  /** The totals at the end. `unread`: how many requests a client leaves in flight at most. */
  totals(unread: number): RequestTotals
}

/**
 * Counts the requests of clients that each send `kinds` requests in turn and have `depth` of them in flight.
 *
 * autocannon does not say when it replaces a connection, or which requests were lost with it. It takes the first response of the
 * new connection for that of a lost request, so its own times are too long from then on. But no connection carries more than
 * `depth` requests at once: when there is one more, the oldest was sent on an earlier connection.
 */
export function createRequestCount(depth: number, kinds: number, monotonic: () => number): RequestCount {
  const clients: Sent[][] = []
  const count = { sent: 0, responses: 0, discarded: 0, lost: 0 }
  let lostInARow = 0
  return {
    client() {
      const inFlight: Sent[] = []
      clients.push(inFlight)
      let next = 0
      let closing = false
      return {
        sent() {
          count.sent += 1
          inFlight.push({ request: next, at: monotonic() })
          next = (next + 1) % kinds
          if (inFlight.length <= depth) return
          inFlight.shift()
          if (closing) count.discarded += 1
          else {
            count.lost += 1
            lostInARow += 1
          }
        },
        answered(closes) {
          count.responses += 1
          lostInARow = 0
          closing = closes
          const sent = inFlight.shift()
          if (sent !== undefined) return { request: sent.request, time: monotonic() - sent.at }
          if (count.lost > 0) count.lost -= 1
          else count.discarded -= 1
          return undefined
        },
      }
    },
    lostInARow: () => lostInARow,
    totals(unread) {
      const left = clients.flatMap((requests) => requests.slice(Math.max(0, requests.length - unread)))
      const inFlight = left.length
      const { sent, responses, discarded } = count
      return {
        sent,
        responses,
        inFlight,
        longestWait: left.length === 0 ? 0 : monotonic() - Math.min(...left.map(({ at }) => at)),
        discarded,
        lost: sent - responses - discarded - inFlight,
      }
    },
  }
}
