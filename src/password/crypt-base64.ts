const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * The base64 of crypt(3): bytes taken in the scheme's own order, three at a time, written low bits first.
 * `order` lists byte positions from the highest of each triple to the lowest; the last group may be shorter.
 */
export function cryptBase64(digest: Uint8Array, order: readonly number[]): string {
  let text = ''
  for (let at = 0; at < order.length; at += 3) {
    const group = order.slice(at, at + 3)
    let bits = 0
    for (const position of group) bits = (bits << 8) | (digest[position] ?? 0)
    for (let left = group.length + 1; left > 0; left -= 1) {
      text += ALPHABET[bits & 63]
      bits >>>= 6
    }
  }
  return text
}
