import { type Fields, TOKEN } from '../http/fields.ts'

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

/**
 * What no name and no value may hold: a control character except the tab, because some parsers take a CR, LF or NUL for a line end, and a
 * character above 0xFF, of which `latin1` sends the low byte only.
 */
const UNSENDABLE = /[^\t\x20-\xff]/

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

/** Whether a request changes nothing at the device (RFC 9110 §9.2.1). */
export function isSafe(method: string): boolean {
  return SAFE.has(method)
}

/** Whether a request may be sent again although the device may have received it. */
export function mayRepeat({ method, framing }: Pick<OutgoingRequest, 'method' | 'framing'>): boolean {
  return framing === null && isSafe(method)
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
  if (!LINE.test(line) || UNSENDABLE.test(host + fields.join(''))) return undefined
  let named = false
  let head = ''
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    head += `${name}: ${fields[i + 1]}\r\n`
    if (name.length === 4 && name.toLowerCase() === 'host') named = true
  }
  const first = `${line} HTTP/${version}\r\n${named ? '' : `Host: ${host}\r\n`}`
  return first + head + lengthField(method, framing)
}

/** The framing field that `fields` lack, with its line end; empty if none is needed. */
function lengthField(method: string, framing: OutgoingRequest['framing']): string {
  if (framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  return framing === null && WITH_BODY.has(method) ? 'Content-Length: 0\r\n' : ''
}
