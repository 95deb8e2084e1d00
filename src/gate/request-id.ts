import { randomBytes } from 'node:crypto'

/** How many ids are generated at once. */
const BATCH = 256
/** The size of an id (bytes): with 128 random bits a collision is practically impossible. */
const BYTES = 16
/** The length of an id in hexadecimal digits. */
const DIGITS = 2 * BYTES

/** The longest id of a trusted peer that is kept (characters). */
export const LONGEST_ID = 128
/** Short visible ASCII: other characters could forge log lines in the programs behind the sidecar. */
const WELL_FORMED = new RegExp(`^[\\w.:/+=@-]{1,${LONGEST_ID}}$`)

/** The text of the current batch, and how many of its digits are used. */
let digits = ''
let used = 0

/**
 * The id of one request (C22). It is in the access log, and is sent as `X-Request-Id` to the device and in the sidecar's own responses. The
 * id of a trusted peer is kept if it is a single well-formed value, so that the logs of both can be joined. A new id is 32 hexadecimal
 * digits, a slice of the text of a batch. A UUID costs five times as much: it is concatenated digit by digit, and flattened when it is
 * sent.
 */
export function requestIdOf(presented: readonly string[], peerTrusted: boolean): string {
  const [id] = presented
  if (peerTrusted && presented.length === 1 && id !== undefined && WELL_FORMED.test(id)) return id
  if (used === digits.length) {
    digits = randomBytes(BATCH * BYTES).toString('hex')
    used = 0
  }
  used += DIGITS
  return digits.slice(used - DIGITS, used)
}
