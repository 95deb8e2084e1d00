import { type Fields, TOKEN } from '../http/fields.ts'
import { CR, HTAB, LF, SP } from './bytes.ts'

/** The version in a request line. */
export type HttpVersion = '1.0' | '1.1'

/** The head of a request to the device, and the framing of its body. */
export interface OutgoingRequest {
  readonly method: string
  readonly target: string
  /** They include `Content-Length` if it frames the body, and no other field about framing or the connection. */
  readonly fields: Fields
  readonly framing: null | number | 'chunked'
  /** The request asks to make the connection a WebSocket. */
  readonly upgrade?: boolean
  /** What `writeRequestLines` gives for this request in HTTP/1.1, if it is known. */
  readonly lines?: string | undefined
}

/** A method, one space, and a target without spaces. */
const LINE = new RegExp(`^${TOKEN} [\\x21-\\x7e\\x80-\\xff]+$`)

/** Methods with which a device expects a body (RFC 9110 §9.3). Without a body they carry `Content-Length: 0` (§8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH'])

/**
 * Whether another request may follow on the same connection. False after a body that firmware may ignore, such as that of a GET:
 * the firmware would read it as the next request. False after HEAD: firmware may send a body all the same, and the sidecar would
 * read it as the next response. False for an upgrade: if the device refuses it, its next bytes may be of either protocol.
 */
export function mayPersist({ method, framing, upgrade }: OutgoingRequest): boolean {
  const bodiless = framing === null || framing === 0
  return method !== 'HEAD' && upgrade !== true && (bodiless || WITH_BODY.has(method))
}

/** Methods that may be repeated although the first request may have arrived (RFC 9110 §9.2.1). */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a request may be sent again although the device may have received it. */
export function mayRepeat({ method, framing }: Pick<OutgoingRequest, 'method' | 'framing'>): boolean {
  return framing === null && SAFE.has(method)
}

/**
 * Writes a request head in Latin-1. Undefined if `writeRequestLines` gives none.
 * @param host the `Host` of a request without one, which HTTP/1.1 requires
 * @param persists another request may follow on the connection
 */
export function writeRequestHead(
  request: OutgoingRequest,
  host: string,
  persists: boolean,
  version: HttpVersion = '1.1',
): string | undefined {
  const lines = request.lines ?? writeRequestLines(request, host, version)
  if (lines === undefined) return undefined
  if (request.upgrade === true) return `${lines}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
  return `${lines}Connection: ${persists ? 'keep-alive' : 'close'}\r\n\r\n`
}

/**
 * Writes the request line and all field lines but that of the connection. Undefined if a part of it contains a character that is not
 * allowed in a head, so no value can add a field or a request (header injection).
 */
export function writeRequestLines(
  { method, target, fields, framing }: OutgoingRequest,
  host: string,
  version: HttpVersion = '1.1',
): string | undefined {
  const line = `${method} ${target}`
  let named = false
  let lines = 1 + fields.length / 2
  let head = ''
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    head += `${name}: ${fields[i + 1]}\r\n`
    if (name.length === 4 && name.toLowerCase() === 'host') named = true
  }
  if (!named) {
    head = `Host: ${host}\r\n${head}`
    lines += 1
  }
  const length = lengthField(method, framing)
  if (length !== '') lines += 1
  head = `${line} HTTP/${version}\r\n${head}${length}`
  return LINE.test(line) && hasLines(head, lines) ? head : undefined
}

/** The framing field that `fields` lack, with its line end; empty if none is needed. */
function lengthField(method: string, framing: OutgoingRequest['framing']): string {
  if (framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  return framing === null && WITH_BODY.has(method) ? 'Content-Length: 0\r\n' : ''
}

/** The buffer for checking heads. It grows to twice the size of the largest head. */
let bytes = Buffer.alloc(16 * 1024)
let words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)

/**
 * Whether a head has exactly this number of line ends, and no other control character below 0x20 except the tab. Some parsers
 * take a CR, LF or NUL in a value for a line end. The check reads the bytes as they are sent, because `latin1` sends only the low
 * byte of a character above 0xFF. It runs for every request and reads four bytes at a time: a regular expression takes five
 * times as long.
 */
function hasLines(head: string, lines: number): boolean {
  if (head.length > bytes.length) grow(head.length)
  const length = bytes.write(head, 'latin1')
  const whole = length >> 2
  let found = 0
  for (let i = 0; i < whole; i += 1) {
    const word = words[i] ?? 0
    // The subtraction sets the highest bit of each byte below 0x20. `~word` excludes bytes whose highest bit was already set.
    if (((word - 0x20202020) & ~word & 0x80808080) !== 0) found += lineBytes(4 * i, 4 * i + 4)
  }
  return found + lineBytes(4 * whole, length) === 2 * lines
}

/** Counts the CR and LF bytes. NaN if there is another control character except the tab. */
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
