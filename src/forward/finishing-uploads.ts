import type { Exchange } from '../http/exchange.ts'
import type { Leave } from '../system/bounded-queue.ts'
import type { ForwardExchange } from './forward-exchange.ts'

/** The requests in flight, which end with their login. */
export interface LiveRequests {
  add(exchange: Exchange): void
  delete(exchange: Exchange): void
}

export type FinishingUploads = ReturnType<typeof createFinishingUploads>

/**
 * The uploads that the device finishes although their client has left (`upstream.finish_uploads`). Each is in flight until it ends, so it
 * ends with its login. A client has at most one, so a client that uploads and leaves again and again takes one place.
 *
 * @param within how long the device may take to answer after the client has left (ms)
 * @param clients the clients that have one, also of a service that a reload has replaced
 */
export function createFinishingUploads(live: LiveRequests, within: number, clients: Set<string>) {
  return {
    within,
    /** @returns gives the place back; undefined if the client has one already */
    tryEnter(exchange: ForwardExchange, abandon: () => void): Leave | undefined {
      const { key } = exchange.client
      if (clients.has(key)) return undefined
      clients.add(key)
      exchange.abandon = abandon
      live.add(exchange)
      return () => {
        clients.delete(key)
        live.delete(exchange)
      }
    },
  }
}
