import { TOKEN as TOKEN_SOURCE } from '../http/fields.ts'

export const HTAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SP = 0x20
export const COLON = 0x3a
export const ZERO = 0x30
export const ONE = 0x31
export const NINE = 0x39
const DEL = 0x7f

/** A table with a 1 for each byte of a class. The loop over the bytes of a head needs no function call to test a byte. */
function tableOf(isMember: (byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (isMember(byte) ? 1 : 0))
}

const TOKEN_TEXT = new RegExp(TOKEN_SOURCE)

/** The bytes of a token, such as a method or a field name (RFC 9110 §5.6.2). */
export const TOKEN: Uint8Array = tableOf((byte) => TOKEN_TEXT.test(String.fromCharCode(byte)))

/** The bytes of a field value (RFC 9110 §5.5): every byte except control characters; the tab is allowed. */
export const TEXT: Uint8Array = tableOf((byte) => byte === HTAB || (byte >= SP && byte !== DEL))

/**
 * The bytes of a request target: visible ASCII (RFC 9112 §3.2) and 8-bit bytes. The gate refuses 8-bit bytes with a description
 * that names the fault: they must be percent-encoded.
 */
export const TARGET: Uint8Array = tableOf((byte) => byte > SP && byte !== DEL)

/** Whether the bytes between two messages are only line ends. Some firmware sends them; RFC 9112 §2.2 allows to ignore them. */
export function onlyLineEnds(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (bytes[at] !== CR && bytes[at] !== LF) return false
  return true
}
