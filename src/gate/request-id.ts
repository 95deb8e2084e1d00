import type { RandomBytes } from '../tokens/mint.ts'

/** Ids made at once. */
const BATCH = 64
/** 128 bits each, so that no two are alike. */
const BYTES = 16
const DIGITS = 2 * BYTES

/** Visible ASCII, short: anything else could forge log lines on the way. */
const WELL_FORMED = /^[\w.:/+=@-]{1,128}$/

/**
 * The id of one request (C22): in the access line, in `X-Request-Id` towards the device and on the sidecar's own answers.
 * A trusted peer's id is kept if it is a single well-formed value, so that its log can be joined with ours; otherwise
 * `mint` makes one.
 */
export function requestIdOf(presented: readonly string[], peerTrusted: boolean, mint: () => string): string {
  const [id] = presented
  const kept = peerTrusted && presented.length === 1 && id !== undefined && WELL_FORMED.test(id)
  return kept ? id : mint()
}

/**
 * Gives a new request id for each call: 32 hexadecimal digits, cut from the text of a batch. A UUID costs five times as
 * much: it is put together digit by digit, and once more when it is sent.
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
