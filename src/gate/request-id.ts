import type { RandomBytes } from '../tokens/mint.ts'

/** How many ids are generated at once. */
const BATCH = 64
/** The size of an id (bytes): with 128 random bits a collision is practically impossible. */
const BYTES = 16
const DIGITS = 2 * BYTES

/** An id of a client is kept up to this length. */
export const LONGEST_ID = 128
/** Short visible ASCII: other characters could forge log lines in the programs behind the sidecar. */
const WELL_FORMED = new RegExp(`^[\\w.:/+=@-]{1,${LONGEST_ID}}$`)

/**
 * The id of one request (C22). It stands in the access log, and as `X-Request-Id` in the request to the device and in the
 * sidecar's own responses. The id of a trusted peer is kept if it is a single well-formed value, so that the logs of both can be
 * joined. Otherwise `mint` creates one.
 */
export function requestIdOf(presented: readonly string[], peerTrusted: boolean, mint: () => string): string {
  const [id] = presented
  const kept = peerTrusted && presented.length === 1 && id !== undefined && WELL_FORMED.test(id)
  return kept ? id : mint()
}

/**
 * Each call of the returned function gives a new request id: 32 hexadecimal digits, a slice of the text of a batch. A UUID costs
 * five times as much, because it is concatenated digit by digit and flattened again when it is sent.
 */
export function createRequestIds(random: RandomBytes): () => string {
  let digits = ''
  let used = 0
  return () => {
    if (used === digits.length) {
      digits = random(BATCH * BYTES).toString('hex')
      used = 0
    }
    used += DIGITS
    return digits.slice(used - DIGITS, used)
  }
}
