import type { Fields } from '../http/fields.ts'
import { CR, HTAB, LF, SP } from './bytes.ts'

/** The head of a request to a server, and how its body is delimited. */
export interface OutgoingRequest {
  readonly method: string
  /** In origin form, byte for byte. */
  readonly target: string
  /** With `Content-Length` where that frames the body, without any other word about the connection. */
  readonly fields: Fields
  readonly framing: null | number | 'chunked'
}

/** A method and a target, one space apart: none within them. */
const LINE = /^[!#$%&'*+.^_`|~\w-]+ [\x21-\x7e\x80-\xff]+$/

/** Methods of which a device expects a body (RFC 9110 §9.3), and a word about its length where there is none (§8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH'])

/**
 * Whether another request may follow on the same connection: firmware that overlooks the body of a GET would read one in
 * it, and what it sends behind the head of a response to HEAD would be taken for the next response.
 */
export function mayPersist({ method, framing }: OutgoingRequest): boolean {
  const bodiless = framing === null || framing === 0
  return method !== 'HEAD' && (bodiless || WITH_BODY.has(method))
}

/**
 * The head in bytes, one a character. Undefined for what cannot stand there: no field becomes two, and no request another.
 * @param host for a request that names none, because HTTP/1.1 needs one
 * @param persists another request may follow on the connection
 */
export function writeRequestHead(
  request: OutgoingRequest,
  host: string,
  persists: boolean,
): string | undefined {
  const { method, target, fields, framing } = request
  const line = `${method} ${target}`
  let named = false
  let lines = 3 + fields.length / 2
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
  head = `${line} HTTP/1.1\r\n${head}${length}Connection: ${persists ? 'keep-alive' : 'close'}\r\n\r\n`
  return LINE.test(line) && hasLines(head, lines) ? head : undefined
}

/** What `fields` leave to be said of the length of the body. */
function lengthField(method: string, framing: OutgoingRequest['framing']): string {
  if (framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  return framing === null && WITH_BODY.has(method) ? 'Content-Length: 0\r\n' : ''
}

/** Where heads are looked at; grows with the largest. */
let bytes = Buffer.alloc(16 * 1024)
let words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)

/**
 * Whether a head, as it will be sent, has just so many line ends, and nothing else that controls (CR, LF or NUL within a value
 * would be a line more to some reader). It is looked at in bytes, as letters beyond 0xFF leave their lower byte alone; and in
 * four of them at a time, because this is done for every request, and is a fifth of the work of a regular expression so.
 */
function hasLines(head: string, lines: number): boolean {
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
