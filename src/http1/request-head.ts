import { METHODS } from 'node:http'
import type { RequestHead } from '../http/exchange.ts'
import { type Fields, listMembers } from '../http/fields.ts'

/** How the body of a request is delimited: by a count of bytes, perhaps 0, or by chunks (RFC 9112 §6). */
export type RequestBodyFraming = number | 'chunked'

/** The head of a request, and what it means for its connection. */
export interface Http1RequestHead extends Pick<RequestHead, 'method' | 'target' | 'fields'> {
  readonly version: '1.0' | '1.1'
  readonly framing: RequestBodyFraming
  /** The client may send another request behind this one (RFC 9112 §9.3). */
  readonly persists: boolean
  /** Behind this head the connection speaks something else, if the server agrees: a tunnel (`CONNECT`) or a WebSocket. */
  readonly leavesHttp: boolean
  /** The client expects something before it sends its body (RFC 9110 §10.1.1). */
  readonly expects: boolean
}

/** What is said of a message by the fields that rule its connection. */
interface Rules {
  /** Undefined where it is not said unmistakably. */
  readonly framing: RequestBodyFraming | undefined
  readonly connection: readonly string[]
  readonly webSocket: boolean
  readonly expect: boolean
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
  const { framing, connection, webSocket, expect } = rulesOf(fields)
  if (framing === undefined) return undefined
  // RFC 9110 §7.8: an offer of another protocol may be ignored, and one in HTTP/1.0 has to be.
  const upgrade = webSocket && version === '1.1' && connection.includes('upgrade')
  const leavesHttp = upgrade || method === 'CONNECT'
  return {
    method: interned(method),
    target,
    version,
    fields,
    framing,
    persists: !connection.includes('close') && (version === '1.1' || connection.includes('keep-alive')),
    leavesHttp,
    expects: expect && version === '1.1' && !leavesHttp,
  }
}

/** The head as the rest of the house sees it. */
export function requestHead(
  { method, target, version, fields, leavesHttp }: Http1RequestHead,
  { secure, peer, localPort }: Pick<RequestHead, 'secure' | 'peer' | 'localPort'>,
): RequestHead {
  const upgrade = leavesHttp && method !== 'CONNECT'
  const authority = undefined
  return { version, secure, method, target, authority, fields, peer, localPort, upgrade, endsWithHead: false }
}

const AUTHORITY = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:%[\\]]|@(?!@))*(?:[/?].*)?$"
const ABSOLUTE_FORM = new RegExp(`^[A-Za-z]+://${AUTHORITY}`)
const AUTHORITY_FORM = new RegExp(`^${AUTHORITY}`)

/** One of the four forms of RFC 9112 §3.2, roughly: the gate serves a part of them, and names what is wrong with the rest. */
function isTarget(method: string, target: string): boolean {
  if (method === 'CONNECT') return AUTHORITY_FORM.test(target)
  return target.startsWith('/') || target.startsWith('*') || ABSOLUTE_FORM.test(target)
}

const NONE: readonly string[] = []

function rulesOf(fields: Fields): Rules {
  let length: string | undefined
  let coding: string | undefined
  let lengths = 0
  let connection = NONE
  let webSocket = false
  let expect = false
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    // Most names are told apart by their length alone.
    switch (name.length) {
      case 6:
        if (name.toLowerCase() === 'expect') expect = true
        break
      case 7:
        if (name.toLowerCase() === 'upgrade' && listMembers([fields[i + 1] ?? '']).includes('websocket'))
          webSocket = true
        break
      case 10:
        if (name.toLowerCase() === 'connection')
          connection = [...connection, ...membersOf(fields[i + 1] ?? '')]
        break
      case 14:
        if (name.toLowerCase() === 'content-length') {
          length = fields[i + 1]
          lengths += 1
        }
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') {
          coding = fields[i + 1]
          lengths += 1
        }
    }
  }
  const framing = lengths === 0 ? 0 : lengths > 1 ? undefined : framingOf(length, coding)
  return { framing, connection, webSocket, expect }
}

const CLOSE: readonly string[] = ['close']
const KEEP_ALIVE: readonly string[] = ['keep-alive']

/** By far most clients say one of two things. */
function membersOf(connection: string): readonly string[] {
  if (connection === 'keep-alive') return KEEP_ALIVE
  return connection === 'close' ? CLOSE : listMembers([connection])
}

const DIGITS = /^[0-9]+$/
/** Chunked, once and last: what other codings there are is the gate's to refuse. */
const CHUNKED_LAST = /^(?!.*chunked[ \t]*,)(?:.*,)?[ \t]*chunked$/i

/** A length and a coding, or two of either, are two opinions about where the next request begins (RFC 9112 §6.3). */
function framingOf(length: string | undefined, coding: string | undefined): RequestBodyFraming | undefined {
  if (coding !== undefined) return CHUNKED_LAST.test(coding) ? 'chunked' : undefined
  if (length === undefined || !DIGITS.test(length)) return undefined
  const bytes = Number(length)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}
