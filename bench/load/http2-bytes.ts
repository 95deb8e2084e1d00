/** What an HTTP/2 client that means no good says, byte by byte: no library would. */

/** RFC 9113 §3.4. */
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

/** One frame, valid or not: nothing is checked. */
export function frame(type: number, flags: number, stream: number, payload: ArrayLike<number> = []): Buffer {
  const bytes = Buffer.alloc(9 + payload.length)
  bytes.writeUIntBE(payload.length, 0, 3)
  bytes.writeUInt8(type, 3)
  bytes.writeUInt8(flags, 4)
  bytes.writeUInt32BE(stream, 5)
  bytes.set(payload, 9)
  return bytes
}

/** The opening of a connection; `window` is how much of a response it wants at first (bytes). */
export function opening(window: number): Buffer {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(window)
  return Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, [0, INITIAL_WINDOW_SIZE, ...value])])
}

/** A string of HPACK that is neither compressed nor longer than 126 bytes (RFC 7541 §5.2). */
function text(value: string): number[] {
  if (value.length > 126) throw new RangeError('too long for one byte of length')
  return [value.length, ...Buffer.from(value, 'latin1')]
}

/** A GET, in names and values of the static table where it has them (RFC 7541, Appendix A). */
function getRequest(path: string, token: string | undefined): number[] {
  const authorization = token === undefined ? [] : [0x0f, 23 - 15, ...text(`Bearer ${token}`)]
  return [0x82, 0x87, 0x01, ...text('device'), 0x04, ...text(path), ...authorization]
}

export function get(stream: number, path: string, token?: string): Buffer {
  return frame(HEADERS, END_STREAM | END_HEADERS, stream, getRequest(path, token))
}

/** A head that is not whole yet. */
export function beginning(stream: number): Buffer {
  return frame(HEADERS, END_STREAM, stream, getRequest('/', undefined))
}

/** More of it, and still not all. */
export function continuation(stream: number): Buffer {
  return frame(CONTINUATION, 0, stream)
}

export function reset(stream: number): Buffer {
  return frame(RST_STREAM, 0, stream, [0, 0, 0, CANCEL])
}

export const PINGED: Buffer = frame(PING, 0, 0, Array<number>(8).fill(0))
export const NO_SETTINGS: Buffer = frame(SETTINGS, 0, 0)
