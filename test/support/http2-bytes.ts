/** HTTP/2 by hand (RFC 9113): writes any bytes, and reads the responses of a correct server. */

import { PREFACE as OPENING } from './http2-frames.ts'

export const PREFACE: string = OPENING.toString('latin1')

export const TYPES = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const

export const END_STREAM = 1
export const END_HEADERS = 4

/** One frame, as latin1 text. */
export function frame(type: number, flags: number, stream: number, payload = ''): string {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length & 0xffffff, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream >>> 0, 5)
  return head.toString('latin1') + payload
}

export function uint32(value: number): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes.toString('latin1')
}

/** SETTINGS with a dynamic table of size 0, so that each header block of the server can be read on its own. */
export const NO_TABLE: string = frame(TYPES.settings, 0, 0, `\0\x01${uint32(0)}`)

/** A string literal (RFC 7541 §5.2) without Huffman coding. */
function packedString(text: string): string {
  if (text.length < 127) return String.fromCharCode(text.length) + text
  let rest = text.length - 127
  let length = '\x7f'
  for (; rest >= 128; rest >>= 7) length += String.fromCharCode((rest & 0x7f) | 0x80)
  return length + String.fromCharCode(rest) + text
}

/** A header block of literals, without indexing. */
export function packedFields(fields: readonly (readonly [string, string])[]): string {
  return fields.map(([name, value]) => `\0${packedString(name)}${packedString(value)}`).join('')
}

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
