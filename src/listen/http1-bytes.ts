export const HTAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SP = 0x20
export const COLON = 0x3a
const DEL = 0x7f

const TOKEN = new Uint8Array(256)
for (const byte of Buffer.from("!#$%&'*+-.^_`|~0123456789")) TOKEN[byte] = 1
for (const byte of Buffer.from('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ')) TOKEN[byte] = 1

/** What methods and field names are made of (RFC 9110 §5.6.2). */
export function isToken(byte: number): boolean {
  return TOKEN[byte] === 1
}

/** What may stand in a field value (RFC 9110 §5.5): no line break, no NUL, nothing else that controls. */
export function isText(byte: number): boolean {
  return byte === HTAB || (byte >= SP && byte !== DEL)
}

/**
 * The bytes that are read as a request target: visible ASCII (RFC 9112 §3.2), and 8-bit bytes, so that the gate can tell
 * the client that it has to percent-encode them.
 */
export function isTarget(byte: number): boolean {
  return byte > SP && byte !== DEL
}
