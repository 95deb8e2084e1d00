import { METHODS } from 'node:http'
import type { RequestHead } from '../http/exchange.ts'
import { type Fields, listMembers } from '../http/fields.ts'
import { framingOf, type HeadSurvey, surveyFields } from '../http/head-survey.ts'

/** Where the body of a request ends: after so many bytes, perhaps 0, or with its chunks (RFC 9112 §6). */
export type RequestBodyFraming = number | 'chunked'

/** The head of a request, and what it means for its connection. */
export interface Http1RequestHead
  extends Pick<RequestHead, 'method' | 'target' | 'fields' | 'framing' | 'survey'> {
  readonly version: '1.0' | '1.1'
  /** Where the next request begins, also behind one whose `framing` the gate refuses. */
  readonly bodyEnd: RequestBodyFraming
  /** The client may send another request behind this one (RFC 9112 §9.3). */
  readonly persists: boolean
  /** Behind this head the connection speaks something else, if the server agrees: a tunnel (`CONNECT`) or a WebSocket. */
  readonly leavesHttp: boolean
  /** The client expects something before it sends its body (RFC 9110 §10.1.1). */
  readonly expects: boolean
}

const KNOWN_METHODS: ReadonlyMap<string, string> = new Map(METHODS.map((method) => [method, method]))

/** A known method as one shared string. GET, the commonest, skips the `Map`, because V8 interns what it looks up there. */
function interned(method: string): string {
  return method === 'GET' ? 'GET' : (KNOWN_METHODS.get(method) ?? method)
}

/** The meaning of a head, or undefined where it has none that all readers agree on. */
export function meaningOf(
  method: string,
  target: string,
  version: '1.0' | '1.1',
  fields: Fields,
): Http1RequestHead | undefined {
  if (!isTarget(method, target)) return undefined
  const survey = surveyFields(fields)
  const bodyEnd = bodyEndOf(survey)
  if (bodyEnd === undefined) return undefined
  const { connection } = survey
  // RFC 9110 §7.8: an offer of another protocol may be ignored, and one in HTTP/1.0 has to be.
  const upgrade =
    survey.upgrade.length > 0 &&
    version === '1.1' &&
    connection.includes('upgrade') &&
    listMembers(survey.upgrade).includes('websocket')
  const leavesHttp = upgrade || method === 'CONNECT'
  return {
    method: interned(method),
    target,
    version,
    fields,
    survey,
    framing: framingOf(version, survey, false),
    bodyEnd,
    persists: !connection.includes('close') && (version === '1.1' || connection.includes('keep-alive')),
    leavesHttp,
    expects: survey.expect.length > 0 && version === '1.1' && !leavesHttp,
  }
}

/** The head as the rest of the house sees it. */
export function requestHead(
  { method, target, version, fields, framing, survey, leavesHttp }: Http1RequestHead,
  { secure, peer, localPort }: Pick<RequestHead, 'secure' | 'peer' | 'localPort'>,
): RequestHead {
  const upgrade = leavesHttp && method !== 'CONNECT'
  const authority = undefined
  return { version, secure, method, target, authority, fields, framing, survey, peer, localPort, upgrade }
}

const AUTHORITY = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:%[\\]]|@(?!@))*(?:[/?].*)?$"
const ABSOLUTE_FORM = new RegExp(`^[A-Za-z]+://${AUTHORITY}`)
const AUTHORITY_FORM = new RegExp(`^${AUTHORITY}`)

/** One of the four forms of RFC 9112 §3.2, roughly: the gate serves a part of them, and names what is wrong with the rest. */
function isTarget(method: string, target: string): boolean {
  if (method === 'CONNECT') return AUTHORITY_FORM.test(target)
  return target.startsWith('/') || target.startsWith('*') || ABSOLUTE_FORM.test(target)
}

const DIGITS = /^[0-9]+$/
/** Chunked, once and last: what other codings there are is the gate's to refuse. */
const CHUNKED_LAST = /^(?!.*chunked[ \t]*,)(?:.*,)?[ \t]*chunked$/i

/** A length and a coding, or two of either, are two opinions about where the next request begins (RFC 9112 §6.3). */
function bodyEndOf({ contentLength, transferEncoding }: HeadSurvey): RequestBodyFraming | undefined {
  if (contentLength.length + transferEncoding.length > 1) return undefined
  const [coding] = transferEncoding
  const [length] = contentLength
  if (coding !== undefined) return CHUNKED_LAST.test(coding) ? 'chunked' : undefined
  if (length === undefined) return 0
  const bytes = DIGITS.test(length) ? Number(length) : Number.NaN
  return Number.isSafeInteger(bytes) ? bytes : undefined
}
