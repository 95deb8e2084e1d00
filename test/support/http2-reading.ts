/** Reads the HTTP/2 frames (RFC 9113) of a correct server. */

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** The complete frames in `bytes`, and how many bytes follow them. */
export function readFrames(bytes: Buffer): { readonly frames: readonly Frame[]; readonly rest: number } {
  const frames: Frame[] = []
  let at = 0
  while (at + 9 <= bytes.length) {
    const end = at + 9 + bytes.readUIntBE(at, 3)
    if (end > bytes.length) break
    frames.push({
      type: bytes[at + 3] ?? 0,
      flags: bytes[at + 4] ?? 0,
      stream: bytes.readUInt32BE(at + 5) & 0x7fffffff,
      payload: bytes.subarray(at + 9, end),
    })
    at = end
  }
  return { frames, rest: bytes.length - at }
}

/** The statuses in the static table (RFC 7541, Appendix A). */
const INDEXED: Readonly<Record<number, number>> = {
  8: 200,
  9: 204,
  10: 206,
  11: 304,
  12: 400,
  13: 404,
  14: 500,
}

/** The Huffman codes of the ten digits (RFC 7541, Appendix B). */
const DIGITS = new Map(
  ['00000', '00001', '00010', '011001', '011010', '011011', '011100', '011101', '011110', '011111'].map(
    (code, digit) => [code, digit],
  ),
)

/** The status at the start of a header block; undefined where there is none, as in trailers. */
export function statusOf(block: Buffer): number | undefined {
  let at = 0
  // Dynamic table size updates (RFC 7541 §6.3). A size of 31 and more takes further bytes.
  while (((block[at] ?? 0) & 0xe0) === 0x20) {
    const isLong = block[at] === 0x3f
    at += 1
    if (isLong) while (((block[at++] ?? 0) & 0x80) !== 0);
  }
  const first = block[at] ?? 0
  if (first & 0x80) return INDEXED[first & 0x7f]
  const length = (block[at + 1] ?? 0) & 0x7f
  const value = block.subarray(at + 2, at + 2 + length)
  if (((block[at + 1] ?? 0) & 0x80) === 0) return Number(value.toString('latin1'))
  const bits = [...value].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let status = ''
  for (let from = 0; from < bits.length && status.length < 3; ) {
    const width = DIGITS.has(bits.slice(from, from + 5)) ? 5 : 6
    const digit = DIGITS.get(bits.slice(from, from + width))
    if (digit === undefined) return undefined
    status += digit
    from += width
  }
  return Number(status)
}
