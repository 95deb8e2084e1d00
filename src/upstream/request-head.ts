import type { Fields } from '../http/fields.ts'
import { DeviceFault } from './failure.ts'
import { hasLines } from './line-count.ts'
import type { Reuse } from './target.ts'

/** A request as it is sent to the device. */
export interface DeviceRequest {
  readonly method: string
  /** In origin form, byte for byte. */
  readonly target: string
  /** With `Content-Length` where that frames the body, without any other word about the connection. */
  readonly fields: Fields
  readonly framing: null | number | 'chunked'
  /** There if the framing says that there is one. */
  readonly body: AsyncIterable<Buffer> | undefined
}

/** A method and a target, one space apart: none within them. */
const LINE = /^[!#$%&'*+.^_`|~\w-]+ [\x21-\x7e\x80-\xff]+$/

/** Methods of which a device expects a body (RFC 9110 §9.3), and a word about its length where there is none (§8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH'])

/**
 * Whether another request may follow on the same connection: firmware that overlooks the body of a GET would read one in
 * it, and what it sends behind the head of an answer to HEAD would be taken for the next answer.
 */
export function mayFollow({ method, body }: DeviceRequest, reuse: Reuse): boolean {
  return reuse === 'shared' && method !== 'HEAD' && (body === undefined || WITH_BODY.has(method))
}

/**
 * The head in bytes, one a character. Whatever it is made of, no field becomes two, and no request another: what cannot
 * stand there fails with a `DeviceFault`. @param host for a request that names none, because HTTP/1.1 needs one
 */
export function writeRequestHead(request: DeviceRequest, host: string, reuse: Reuse): string {
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
  head = `${line} HTTP/1.1\r\n${head}${length}Connection: ${mayFollow(request, reuse) ? 'keep-alive' : 'close'}\r\n\r\n`
  if (!LINE.test(line) || !hasLines(head, lines)) throw new DeviceFault('http_protocol_error')
  return head
}

/** What `fields` leave to be said of the length of the body. */
function lengthField(method: string, framing: DeviceRequest['framing']): string {
  if (framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  return framing === null && WITH_BODY.has(method) ? 'Content-Length: 0\r\n' : ''
}
