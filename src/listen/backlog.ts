/** An exchange whose response the client may read slowly. */
interface QueuedExchange {
  /** Bytes of the response that are queued for the client. */
  readonly queued: number
}

/**
 * Bounds the bytes that are queued for one client. Call the returned function after each addition. It returns true while all
 * exchanges of the connection together have at most `most` bytes queued; otherwise it calls `onOverfull` and returns false.
 */
export function boundBacklog(
  exchanges: Iterable<QueuedExchange>,
  most: number,
  onOverfull: () => void,
): () => boolean {
  return () => {
    let queued = 0
    for (const exchange of exchanges) queued += exchange.queued
    if (queued <= most) return true
    onOverfull()
    return false
  }
}
