import { type Fields, TOKEN } from '../http/fields.ts'
import { SAFE_METHODS } from '../http/scope.ts'

export type HttpVersion = '1.0' | '1.1'

/** The head of a request to the device, and the framing of its body. */
export interface OutgoingRequest {
  readonly method: string
  readonly target: string
  /** Including `Content-Length` if it frames the body. No other field about framing or the connection is allowed. */
  readonly fields: Fields
  readonly framing: null | number | 'chunked'
  /** The request asks for a WebSocket. */
  readonly upgrade?: boolean
  /** The result of `writeRequestLines` for this request in HTTP/1.1, if it is known. */
  readonly lines?: string | undefined
}

/** A method, one space, and a target without spaces. */
const LINE = new RegExp(`^${TOKEN} [\\x21-\\x7e\\x80-\\xff]+$`)

/**
 * A character that no name and no value may contain: a control character except the tab, because some parsers take CR, LF or NUL for a line
 * end, or a character above 0xFF, because `latin1` sends only its low byte.
 */
const UNSENDABLE = /[^\t\x20-\xff]/

/** The methods with which a device expects a body (RFC 9110 §9.3). Without a body the request has `Content-Length: 0` (§8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH'])

/**
 * Whether another request may follow on the same connection. False in three cases:
 *
 * - A body that firmware may ignore, such as that of a GET: the firmware would read it as the next request.
 * - HEAD: firmware may send a body, and the sidecar would read it as the next response.
 * - An upgrade: if the device refuses it, the next bytes may belong to either protocol.
 */
export function mayPersist({ method, framing, upgrade }: OutgoingRequest): boolean {
  const bodiless = framing === null || framing === 0
  return method !== 'HEAD' && upgrade !== true && (bodiless || WITH_BODY.has(method))
}

/** Whether a request may be sent again although the device may have received it. */
export function mayRepeat({ method, framing }: Pick<OutgoingRequest, 'method' | 'framing'>): boolean {
  return framing === null && SAFE_METHODS.includes(method)
}

/**
 * Writes a request head in Latin-1. Undefined if `writeRequestLines` is.
 *
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
 * Writes the request line and all field lines except `Connection`. Undefined if a part contains a character that a head must not contain,
 * so no value can add a field or a request (header injection).
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

/** The framing field that must be added to `fields`, with its line end; empty if none is needed. */
function lengthField(method: string, framing: OutgoingRequest['framing']): string {
  if (framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  return framing === null && WITH_BODY.has(method) ? 'Content-Length: 0\r\n' : ''
}
