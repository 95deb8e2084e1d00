/** Frames of a malicious HTTP/2 client, byte by byte: libraries do not send them. */

/** Connection preface of a client (RFC 9113 §3.4). */
export const PREFACE: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

const HEADERS = 1
const RST_STREAM = 3
const SETTINGS = 4
const PING = 6
const CONTINUATION = 9

const END_STREAM = 1
const END_HEADERS = 4
const INITIAL_WINDOW_SIZE = 4
const CANCEL = 8

/** One frame. Nothing is validated. */
export function frame(type: number, flags: number, stream: number, payload: ArrayLike<number> = []): Buffer {
  const bytes = Buffer.alloc(9 + payload.length)
  bytes.writeUIntBE(payload.length, 0, 3)
  bytes.writeUInt8(type, 3)
  bytes.writeUInt8(flags, 4)
  bytes.writeUInt32BE(stream, 5)
  bytes.set(payload, 9)
  return bytes
}

/** Preface and SETTINGS. `window` is the initial window of a stream (bytes). */
export function opening(window: number): Buffer {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(window)
  return Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, [0, INITIAL_WINDOW_SIZE, ...value])])
}

/** An HPACK string without compression, of at most 126 bytes (RFC 7541 §5.2). */
function text(value: string): number[] {
  if (value.length > 126) throw new RangeError('too long for one byte of length')
  return [value.length, ...Buffer.from(value, 'latin1')]
}

/** A GET in HPACK, with indices of the static table where possible (RFC 7541, Appendix A). */
function getRequest(path: string, token: string | undefined): number[] {
  const authorization = token === undefined ? [] : [0x0f, 23 - 15, ...text(`Bearer ${token}`)]
  return [0x82, 0x87, 0x01, ...text('device'), 0x04, ...text(path), ...authorization]
}

export function get(stream: number, path: string, token?: string): Buffer {
  return frame(HEADERS, END_STREAM | END_HEADERS, stream, getRequest(path, token))
}

/** HEADERS without END_HEADERS: the start of a head. */
export function beginning(stream: number): Buffer {
  return frame(HEADERS, END_STREAM, stream, getRequest('/', undefined))
}

/** CONTINUATION without END_HEADERS: the head is still incomplete. */
export function continuation(stream: number): Buffer {
  return frame(CONTINUATION, 0, stream)
}

export function reset(stream: number): Buffer {
  return frame(RST_STREAM, 0, stream, [0, 0, 0, CANCEL])
}

export const PINGED: Buffer = frame(PING, 0, 0, Array<number>(8).fill(0))
export const NO_SETTINGS: Buffer = frame(SETTINGS, 0, 0)
