export const HTAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SP = 0x20
export const COLON = 0x3a
export const ZERO = 0x30
export const ONE = 0x31
export const NINE = 0x39
const DEL = 0x7f

/** A table with a 1 for each byte of the class. Loops over every byte of a head look it up without a call. */
function tableOf(isMember: (byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (isMember(byte) ? 1 : 0))
}

const TOKEN_TEXT = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/

/** The bytes of a token: of methods and field names (RFC 9110 §5.6.2). */
export const TOKEN: Uint8Array = tableOf((byte) => TOKEN_TEXT.test(String.fromCharCode(byte)))

/** The bytes of a field value (RFC 9110 §5.5): no CR, LF or NUL, and no other control character but the tab. */
export const TEXT: Uint8Array = tableOf((byte) => byte === HTAB || (byte >= SP && byte !== DEL))

/**
 * The bytes of a request target: visible ASCII (RFC 9112 §3.2), and 8-bit bytes too. The gate refuses those, and tells the
 * client to percent-encode them.
 */
export const TARGET: Uint8Array = tableOf((byte) => byte > SP && byte !== DEL)

/** HTTP has two blanks: space and tab (RFC 9110 §5.6.3). */
export function isBlank(byte: number | undefined): boolean {
  return byte === SP || byte === HTAB
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === CR || byte === LF
}

/** Whether bytes between two messages are only line ends. Some firmware sends them; RFC 9112 §2.2 ignores them. */
export function onlyLineEnds(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (!isLineEnd(bytes[at])) return false
  return true
}
