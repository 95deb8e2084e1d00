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
