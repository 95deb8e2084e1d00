/** HTTP/2 frames by hand (RFC 9113), as bytes. Nothing is validated. */

export const PREFACE: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Frame types (RFC 9113 §6). */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const FLAG = { ack: 1, endStream: 1, endHeaders: 4 } as const

/** Error codes (RFC 9113 §7). */
export const CODE = {
  noError: 0,
  protocolError: 1,
  flowControlError: 3,
  refusedStream: 7,
  cancel: 8,
  enhanceYourCalm: 11,
} as const

/** Setting identifiers (RFC 9113 §6.5.2). */
export const SETTING = { headerTableSize: 1, initialWindowSize: 4 } as const

const NONE = Buffer.alloc(0)

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: ArrayLike<number> = NONE,
): Buffer {
  const bytes = Buffer.alloc(9 + payload.length)
  bytes.writeUIntBE(payload.length, 0, 3)
  bytes.writeUInt8(type, 3)
  bytes.writeUInt8(flags, 4)
  bytes.writeUInt32BE(stream, 5)
  bytes.set(payload, 9)
  return bytes
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(6 * pairs.length)
  for (const [index, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, 6 * index)
    payload.writeUInt32BE(value, 6 * index + 2)
  }
  return frame(FRAME.settings, 0, 0, payload)
}

export const SETTINGS_ACK: Buffer = frame(FRAME.settings, FLAG.ack, 0)

export function ping(): Buffer {
  return frame(FRAME.ping, 0, 0, Buffer.alloc(8))
}

export function resetStream(stream: number, code: number = CODE.cancel): Buffer {
  return frame(FRAME.resetStream, 0, stream, uint32(code))
}

export function windowUpdate(stream: number, increment: number): Buffer {
  return frame(FRAME.windowUpdate, 0, stream, uint32(increment))
}

export function goaway(lastStream: number, code: number = CODE.noError): Buffer {
  return frame(FRAME.goaway, 0, 0, Buffer.concat([uint32(lastStream), uint32(code)]))
}

/** An HPACK integer (RFC 7541 §5.1) after the bits that say what it means. */
function hpackInteger(pattern: number, prefixBits: number, value: number): number[] {
  const most = 2 ** prefixBits - 1
  if (value < most) return [pattern | value]
  const bytes = [pattern | most]
  let rest = value - most
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  return [...bytes, rest]
}

/** An HPACK string as latin1 text: a flood has tens of thousands, and a buffer for each costs more than its bytes. */
function hpackString(text: string): string {
  return String.fromCharCode(...hpackInteger(0, 7, text.length)) + text
}

/**
 * Header fields in HPACK: literals without Huffman coding or indexing. Names and values are written byte for byte, so
 * that a test can send what a client must not send.
 */
export function hpack(fields: readonly string[]): Buffer {
  let text = ''
  for (let i = 0; i + 1 < fields.length; i += 2) {
    text += `\0${hpackString(fields[i] ?? '')}${hpackString(fields[i + 1] ?? '')}`
  }
  return Buffer.from(text, 'latin1')
}

/** A field that is added to the dynamic table (RFC 7541 §6.2.1), where its index is 62. */
export function hpackRemembered(name: string, value: string): Buffer {
  return Buffer.from(`\x40${hpackString(name)}${hpackString(value)}`, 'latin1')
}

/** A field of the table by its index, in one or two bytes (RFC 7541 §6.1). */
export function hpackIndexed(index: number): Buffer {
  return Buffer.from(hpackInteger(0x80, 7, index))
}

/** The pseudo-header fields of a request (RFC 9113 §8.3.1) and other fields. */
export function requestFields(
  fields: readonly string[] = [],
  pseudo: Readonly<Record<string, string>> = {},
): string[] {
  const first = { ':method': 'GET', ':scheme': 'https', ':authority': 'device', ':path': '/', ...pseudo }
  return [...Object.entries(first).flat(), ...fields]
}

/** HEADERS, and CONTINUATION if needed, with a complete request head. With `end`, it carries END_STREAM. */
export function headers(stream: number, fields: readonly string[], end = true): Buffer {
  const block = hpack(fields)
  if (block.length <= 16_384) {
    return frame(FRAME.headers, FLAG.endHeaders | (end ? FLAG.endStream : 0), stream, block)
  }
  const frames = [frame(FRAME.headers, end ? FLAG.endStream : 0, stream, block.subarray(0, 16_384))]
  for (let at = 16_384; at < block.length; at += 16_384) {
    const flags = at + 16_384 < block.length ? 0 : FLAG.endHeaders
    frames.push(frame(FRAME.continuation, flags, stream, block.subarray(at, at + 16_384)))
  }
  return Buffer.concat(frames)
}

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
