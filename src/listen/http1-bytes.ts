export const CR = 0x0d
export const LF = 0x0a
export const SP = 0x20
export const DEL = 0x7f
const HTAB = 0x09

/** What may stand in a field value (RFC 9110 §5.5): no line break, no NUL, nothing else that controls. */
export function isText(byte: number): boolean {
  return byte === HTAB || (byte >= SP && byte !== DEL)
}
