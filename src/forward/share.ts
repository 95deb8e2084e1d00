import { publicOrigin } from '../http/browsers.ts'
import type { Forward, ForwardListener, ResponseHead } from '../http/exchange.ts'
import { type Fields, fieldLines, fieldValues, lengthIn, listMembers } from '../http/fields.ts'
import { isOverride } from '../http/overrides.ts'
import { createPathTable, isAmbiguousPath, pathOf } from '../http/request-path.ts'
import { isRead } from '../http/scope.ts'
import { isStreamType } from '../http1/response-head.ts'
import { endsWithHead } from '../http1/response-writer.ts'
import type { ForwardExchange } from './forward-exchange.ts'

/** The longest body (bytes) that is shared. A longer one goes only to the client that asked first, and the others ask for themselves. */
export const LONGEST_SHARED: number = 128 * 1024

/** A client that asks for a response that may be shared. */
export interface Reader {
  readonly exchange: ForwardExchange
  readonly listener: ForwardListener
  /** The request as the device would see it (`keyOf`). */
  readonly key: string
  readonly fields: Fields
  /** When the request came (ms). */
  readonly since: number
  /** The response that this client waited for has failed, and it asks the device again. */
  readonly again: boolean
}

/** Makes the test whether a request only reads one of the paths. */
export function shareable(paths: readonly string[]): (exchange: Forward) => boolean {
  const find = createPathTable(paths.map((path) => [path, true] as const))
  return (exchange) => {
    if (!onlyReads(exchange)) return false
    const path = pathOf(exchange.classified.target)
    return find(path) === true && !isAmbiguousPath(path)
  }
}

/** In this field a proxy in front names the prefix that it cut off the path. It does not make a read a write, and it is part of the key. */
const CUT_OFF = 'x-forwarded-prefix'

/**
 * Whether a request only reads, as far as its head says. A GET with a body does not: some programs read the body as a form. A field that
 * names another path or method may make it a write, unless the device does not get that field.
 */
export function onlyReads({ head, classified: { framing }, confined }: Forward): boolean {
  const names = (text: string, at: number): boolean =>
    at % 2 === 0 && isOverride(text) && text.toLowerCase() !== CUT_OFF
  return isRead(head.method) && !head.upgrade && !framing && (confined || !head.fields.some(names))
}

/** Fields with the address of the client, the proxies on the way, or the id of the request. They differ for each client. */
const PER_CLIENT: ReadonlySet<string> = new Set(['x-request-id', 'x-forwarded-for', 'x-real-ip', 'via'])

/**
 * Requests with the same key may share a response: the device would see them as the same, and their responses are adapted alike.
 *
 * @param set the names of `upstream.headers`, as `asCgi` gives them: their values count, whatever their names
 */
export function keyOf(exchange: Forward, fields: Fields, set: ReadonlySet<string>): string {
  const { head, classified, signedIn } = exchange
  const seen: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [name = '', value = ''] = fields.slice(i, i + 2)
    const lower = name.toLowerCase()
    if (set.has(lower)) seen.push(name, value)
    else if (lower === 'forwarded') seen.push(name, value.replace(/\b(?:for|by)=(?:"[^"]*"|[^;,\s]*)/gi, ''))
    else if (!PER_CLIENT.has(lower)) seen.push(name, value)
  }
  const used = publicOrigin(exchange) ?? ''
  return `${head.method} ${classified.target} ${signedIn} ${used}\r\n${fieldLines(seen)}`
}

/** The length of a response's body (bytes); undefined if the head does not say it. */
export function bodyLength({ status, fields }: ResponseHead, method: string): number | undefined {
  if (endsWithHead(method, status)) return 0
  return lengthIn(fieldValues(fields, 'content-length')[0] ?? '')
}

/** Whether other clients may get a response: it is no stream, not for one client alone, and varies by no field that the key leaves out. */
export function mayShare({ status, fields, said = fields }: ResponseHead): boolean {
  const isOwn = status === 401 || status === 403 || fieldValues(fields, 'set-cookie').length > 0
  const varies = listMembers(fieldValues(said, 'vary'))
  return (
    !isOwn &&
    !isStreamType(fieldValues(fields, 'content-type')[0] ?? '') &&
    !cacheControl(said).some((directive) => directive.startsWith('private')) &&
    !varies.some((name) => name === '*' || name === 'forwarded' || PER_CLIENT.has(name))
  )
}

/** Whether a whole response may be kept for later requests. */
export function mayKeep({ status, fields, said = fields }: ResponseHead): boolean {
  return status < 500 && !cacheControl(said).includes('no-store')
}

function cacheControl(fields: Fields): readonly string[] {
  return listMembers(fieldValues(fields, 'cache-control'))
}
