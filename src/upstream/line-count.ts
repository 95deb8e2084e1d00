const CR = 0x0d
const LF = 0x0a
const HTAB = 0x09
const SP = 0x20

/** Where heads are looked at; grows with the largest. */
let bytes = Buffer.alloc(16 * 1024)
let words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)

/**
 * Whether a head, as it will be sent, has just so many line ends, and nothing else that controls (CR, LF or NUL within a value
 * would be a line more to some reader). It is looked at in bytes, as letters beyond 0xFF leave their lower byte alone; and in
 * four of them at a time, because this is done for every request, and is a fifth of the work of a regular expression so.
 */
export function hasLines(head: string, lines: number): boolean {
  if (head.length > bytes.length) grow(head.length)
  const length = bytes.write(head, 'latin1')
  const whole = length >> 2
  let found = 0
  for (let i = 0; i < whole; i += 1) {
    const word = words[i] ?? 0
    // Where a byte is below 0x20, subtracting that borrows into its highest bit, and where it had none itself.
    if (((word - 0x20202020) & ~word & 0x80808080) !== 0) found += lineBytes(4 * i, 4 * i + 4)
  }
  return found + lineBytes(4 * whole, length) === 2 * lines
}

/** How many bytes are CR or LF; not a number where there is another that controls. */
function lineBytes(start: number, end: number): number {
  let found = 0
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0
    if (byte === CR || byte === LF) found += 1
    else if (byte < SP && byte !== HTAB) return Number.NaN
  }
  return found
}

function grow(length: number): void {
  bytes = Buffer.alloc(4 * Math.ceil(length / 2))
  words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
}
