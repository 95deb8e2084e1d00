import type { ClientSide } from '../http/exchange.ts'
import { BROKEN_BODY, bodyFault, type Refusal } from '../http/refusal.ts'
import type { BoundedQueue, Leave } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import type { ForwardExchange } from './forward-exchange.ts'
import type { Learner } from './learner.ts'
import type { LongPaths } from './long-paths.ts'
import { laggedIn, type Pace } from './pace.ts'
import type { Streams } from './streams.ts'

/** The device is busy: too many requests or logins wait, or too many tunnels are open. The client may try again after a second. */
export const OVERLOADED: Refusal = { kind: 'overloaded', retryAfter: 1 }

/** The places of a queue, and how fast an upload must be to keep one. */
export interface QueuePlaces {
  readonly queue: BoundedQueue
  readonly pace: Pace
  /** Undefined if the number of places is fixed. */
  readonly learner?: Learner | undefined
  /** The requests for these paths get at most half of the places; undefined if the path does not matter. */
  readonly longPaths?: LongPaths | undefined
  /** Responses that give a place back when they have become streams; undefined if none may. */
  readonly streams?: Streams | undefined
}

/** The refusal for a request body that the client has not sent as it should. Throws any other error: a bug. */
export function bodyRefusal(error: unknown): Refusal {
  const fault = bodyFault(error)
  if (fault === undefined) throw error
  return fault
}

/**
 * Waits for a place in the queue. The wait ends early if the client leaves or its upload breaks off. An upload that was too slow while it
 * waited passes its place on: a request behind many slow uploads would otherwise wait for each of them. All addresses of an IPv6 /64 are
 * one client, as for the windows (C17): otherwise one client could fill the queue from many addresses.
 *
 * @param client the side that waits for the response, if that is not the exchange alone: several clients may share a response
 */
export async function waitForPlace(
  { queue, pace, learner, longPaths, streams }: QueuePlaces,
  exchange: ForwardExchange,
  clock: Clock,
  client: Pick<ClientSide, 'onEnd'> = exchange,
): Promise<Leave | Refusal> {
  const since = clock.monotonic()
  learner?.onWait()
  streams?.onWait()
  const onWait = (withdraw: () => void): void => {
    // This request is itself one of those that wait.
    exchange.othersWait = () => queue.waiting > 1
    client.onEnd(withdraw)
    exchange.onBroken(withdraw)
  }
  const isLong = longPaths?.has(exchange.classified.target)
  const entry = await queue.enter(exchange.client.key, onWait, isLong)
  const waited = clock.monotonic() - since
  exchange.waited += waited
  exchange.places = queue.places
  if (entry.kind === 'entered') {
    if (!laggedIn(waited, exchange, pace)) return entry.leave
    entry.leave()
    return { kind: 'request-timeout' }
  }
  return entry.kind === 'withdrawn' ? BROKEN_BODY : OVERLOADED
}
