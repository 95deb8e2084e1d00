import { METHODS } from 'node:http'
import type { RequestHead } from '../http/exchange.ts'
import { type Fields, lengthIn, listMembers, persists } from '../http/fields.ts'
import { type HeadSurvey, requestFraming, surveyFields } from '../http/head-survey.ts'

/** Where a request body ends: after this many bytes (0 for no body), or with its last chunk (RFC 9112 §6). */
export type RequestBodyFraming = number | 'chunked'

/** A request head as it is on the wire, in Latin-1. */
export interface RequestHeadText {
  readonly method: string
  readonly target: string
  readonly version: '1.0' | '1.1'
  readonly fields: Fields
}

/** A parsed request head, and its effects on the connection. */
export interface Http1RequestHead extends RequestHead {
  readonly version: '1.0' | '1.1'
  /** Where this request ends. It is also set if the gate refuses the `framing`. */
  readonly bodyEnd: RequestBodyFraming
  /** The client may send another request on this connection (RFC 9112 §9.3). */
  readonly persists: boolean
  /** The connection leaves HTTP after this head, if the server agrees: a tunnel (`CONNECT`) or a WebSocket. */
  readonly leavesHttp: boolean
  /** The client sent `Expect`, and may wait for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expects: boolean
}

/** The known methods, as shared strings. */
const KNOWN_METHODS: ReadonlyMap<string, string> = new Map(METHODS.map((method) => [method, method]))

/** The facts that all requests of a connection share. */
export type ConnectionFacts = Pick<RequestHead, 'secure' | 'peer' | 'localPort' | 'redirects'>

/** Interprets a request head. Undefined if two parsers could disagree about its target or its end. */
export function interpretRequest(
  { method, target, version, fields }: RequestHeadText,
  { secure, peer, localPort, redirects }: ConnectionFacts,
): Http1RequestHead | undefined {
  if (!isTarget(method, target)) return undefined
  const survey = surveyFields(fields)
  const framing = requestFraming(version, survey, false)
  const bodyEnd = framing === 'broken' ? brokenEnd(survey) : (framing ?? 0)
  if (bodyEnd === undefined) return undefined
  const { connection } = survey
  // RFC 9110 §7.8: a server may ignore `Upgrade`, and must ignore it in HTTP/1.0. Only `websocket` is served.
  const upgrade =
    survey.upgrade.length > 0 &&
    version === '1.1' &&
    connection.includes('upgrade') &&
    listMembers(survey.upgrade).includes('websocket')
  const leavesHttp = upgrade || method === 'CONNECT'
  return {
    version,
    secure,
    // GET, the most frequent method, skips the look-up: V8 would have to internalize the string for it.
    method: method === 'GET' ? 'GET' : (KNOWN_METHODS.get(method) ?? method),
    target,
    authority: undefined,
    fields,
    peer,
    localPort,
    redirects,
    upgrade,
    framing,
    survey,
    classified: undefined,
    client: undefined,
    presented: undefined,
    outgoing: undefined,
    shown: undefined,
    changes: undefined,
    logged: undefined,
    bodyEnd,
    persists: persists(version, connection),
    leavesHttp,
    expects: survey.expect.length > 0 && version === '1.1' && !leavesHttp,
  }
}

const AUTHORITY = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:%[\\]]|@(?!@))*(?:[/?].*)?$"
const ABSOLUTE_FORM = new RegExp(`^[A-Za-z]+://${AUTHORITY}`)
const AUTHORITY_FORM = new RegExp(`^${AUTHORITY}`)

/** A rough check for the four target forms of RFC 9112 §3.2. The gate checks the target exactly and names the fault. */
function isTarget(method: string, target: string): boolean {
  if (method === 'CONNECT') return AUTHORITY_FORM.test(target)
  return target.startsWith('/') || target.startsWith('*') || ABSOLUTE_FORM.test(target)
}

/** Codings with `chunked` once, as the last one. The gate refuses a request with any other coding. */
const CHUNKED_LAST = /^(?!.*chunked[ \t]*,)(?:.*,)?[ \t]*chunked$/i

/**
 * The end of a request whose framing the gate refuses. Undefined if two parsers could choose different ends (RFC 9112 §6.3): for a length
 * and a coding, two of either, a coding that does not end with `chunked`, or a length that is no number.
 */
function brokenEnd({ contentLength, transferEncoding }: HeadSurvey): RequestBodyFraming | undefined {
  if (contentLength.length + transferEncoding.length > 1) return undefined
  const [coding] = transferEncoding
  if (coding !== undefined) return CHUNKED_LAST.test(coding) ? 'chunked' : undefined
  return lengthIn(contentLength[0] ?? '')
}
