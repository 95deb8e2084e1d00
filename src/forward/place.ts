import type { Forward } from '../http/admission.ts'
import { BROKEN_BODY, type Exchange } from '../http/exchange.ts'
import { prefix64 } from '../http/ip.ts'
import type { Refusal } from '../http/refusal.ts'
import type { BoundedQueue, Leave } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'

/** The device is busy: too many requests or logins wait, or too many tunnels are open. The client may try again after a second. */
export const OVERLOADED: Refusal = { kind: 'overloaded', retryAfter: 1 }

/**
 * Waits for a place in the queue. The wait ends early if the client leaves or its upload breaks off. All addresses of an IPv6 /64
 * are one client, as for the windows (C17): otherwise one client could fill the queue under many addresses.
 */
export async function waitForPlace(
  queue: BoundedQueue,
  exchange: Exchange,
  { client, trace }: Forward,
  clock: Clock,
): Promise<Leave | Refusal> {
  const since = clock.monotonic()
  const entry = await queue.enter(prefix64(client), (withdraw) => {
    // This request is one of those that wait.
    exchange.contestedWhile(() => queue.waiting > 1)
    exchange.onEnd(withdraw)
    exchange.onBroken(withdraw)
  })
  trace.waited += clock.monotonic() - since
  if (entry.kind === 'entered') return entry.leave
  return entry.kind === 'withdrawn' ? BROKEN_BODY : OVERLOADED
}
