/** An exchange as far as it waits for its client. */
interface Waiting {
  /** Bytes of the response that wait for the client to take them. */
  readonly queued: number
}

/**
 * Whether a connection may keep what was queued just now: false, and `onOverfull` told, once more than `most` bytes of
 * all its exchanges together wait for a client that does not take them.
 */
export function boundBacklog(
  exchanges: Iterable<Waiting>,
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
