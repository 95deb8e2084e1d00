import { BROKEN_BODY, type Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import type { BoundedQueue, Leave } from '../system/bounded-queue.ts'

/** Too many requests wait already. The client is asked to come back in a second. */
export const OVERLOADED: Refusal = { kind: 'overloaded', retryAfter: 1 }

/** Waits for a place. A client that leaves, or whose upload breaks off, stops waiting. */
export async function waitForPlace(
  guard: BoundedQueue,
  exchange: Exchange,
  client: string,
): Promise<Leave | Refusal> {
  const entry = await guard.enter(client, (withdraw) => {
    // One of those that wait is this one.
    exchange.contestedWhile(() => guard.waiting > 1)
    exchange.onEnd(withdraw)
    exchange.onBroken(withdraw)
  })
  if (entry.kind === 'entered') return entry.leave
  return entry.kind === 'withdrawn' ? BROKEN_BODY : OVERLOADED
}
