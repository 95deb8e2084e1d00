import { METHODS } from 'node:http'
import { isIPv6 } from 'node:net'
import type { Endpoint, Service } from '../http/admission.ts'
import type { RequestHead } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { pathOf } from '../http/request-path.ts'

/** The one path that the sidecar answers itself; every disguise of it is an ordinary API path (C1). */
const TOKEN_PATH = '/oauth/token'

/**
 * Methods that are forwarded: those that Node's parser knows, WebDAV's among them. Any other is refused. Methods are
 * case-sensitive (RFC 9110 §9.1), but firmware that ignores case answers `head` without a body, and we would wait for one.
 */
const FORWARDED_METHODS: ReadonlySet<string> = new Set(
  METHODS.filter((name) => name !== 'TRACE' && name !== 'CONNECT'),
)

/** Methods that are named to a client whose method is not served. */
const NAMED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

/** What a request head may hold: bytes of names and values, and lines. */
interface HeaderCaps {
  readonly maxHeaderSize: number
  readonly maxHeaderCount: number
}

export interface ClassifyRules {
  readonly headerCaps: HeaderCaps
  /** Where tokens are revoked (RFC 7009); undefined where nobody may. */
  readonly revocationPath: string | undefined
}

/** What kind of request this is, before anything is looked up. */
export interface Classified {
  readonly endpoint: Endpoint
  /** Set where the sidecar answers itself. */
  readonly service: Service | undefined
  /** Origin form: path and query, byte for byte. */
  readonly target: string
  readonly host: string
  readonly framing: null | number | 'chunked'
  /** Set when the request cannot be served whoever sent it. */
  readonly fault: Refusal | undefined
}

/**
 * Decides what a request is. Whatever the readers of HTTP let through although two programs could disagree about
 * it is `malformed` here: it is refused, and nothing behind it on the connection is read.
 */
export function classify(head: RequestHead, rules: ClassifyRules): Classified {
  const { framing, survey } = head
  const { target, authority } = originForm(head)
  const path = pathOf(target)
  const service = path === TOKEN_PATH ? 'token' : path === rules.revocationPath ? 'revocation' : undefined
  return {
    endpoint: service === undefined ? 'api' : 'oauth',
    service,
    target,
    host: head.authority ?? survey.host[0] ?? authority ?? '',
    framing: framing === 'broken' ? null : framing,
    fault:
      capFault(head, rules.headerCaps) ??
      methodFault(head, service) ??
      targetFault(head, target) ??
      hostFault(head, authority) ??
      (framing === 'broken' ? malformed('The length of the request body is not unmistakable.') : undefined) ??
      fieldFault(head) ??
      upgradeFault(head),
  }
}

function malformed(description: string): Refusal {
  return { kind: 'malformed', description }
}

/**
 * Node drops lines over its count without a word, and nghttp2 applies our size only once the client has acknowledged
 * it; so both are held here.
 */
function capFault(head: RequestHead, caps: HeaderCaps): Refusal | undefined {
  const size = head.method.length + head.target.length + (head.authority?.length ?? 0) + head.survey.size
  const over = size > caps.maxHeaderSize || head.fields.length > 2 * caps.maxHeaderCount
  return over ? { kind: 'header-too-large' } : undefined
}

function methodFault({ method }: RequestHead, service: Service | undefined): Refusal | undefined {
  if (FORWARDED_METHODS.has(method)) return undefined
  return { kind: 'method-not-allowed', allow: service === undefined ? NAMED_METHODS : 'POST' }
}

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i

/** An absolute-form target (RFC 9112 §3.2.2) becomes its origin form, so that there is one spelling behind the gate. */
function originForm(head: RequestHead): { target: string; authority: string | undefined } {
  if (head.target.startsWith('/')) return { target: head.target, authority: undefined }
  const absolute = head.version === '2' ? null : ABSOLUTE_FORM.exec(head.target)
  if (absolute === null) return { target: head.target, authority: undefined }
  const rest = absolute[2] ?? ''
  return { target: rest.startsWith('/') ? rest : `/${rest}`, authority: absolute[1] ?? '' }
}

/** Visible ASCII without `#`: a fragment or a raw 8-bit byte has no place in a request target (RFC 9112 §3.2). */
const ORIGIN_FORM = /^\/[!"$-~]*$/

/** Any other byte in a target shows that the client did not percent-encode it (RFC 3986 §2.1). */
const ASCII = /^[\0-\x7f]*$/

function targetFault(head: RequestHead, target: string): Refusal | undefined {
  if (head.method === 'OPTIONS' && target === '*') {
    return { kind: 'invalid-request', description: 'OPTIONS needs a path here, not "*".' }
  }
  if (ORIGIN_FORM.test(target)) return undefined
  return ASCII.test(target)
    ? malformed('The request target is not a path.')
    : malformed('The request target is not ASCII and has to be percent-encoded.')
}

/**
 * A registered name of RFC 3986 §3.2.2, and perhaps a port; never userinfo. Not with a comma, which that grammar allows:
 * where `X-Forwarded-Host` tells of it, it is read as two names.
 */
const HOST_NAME = /^(?:[A-Za-z0-9\-._~!$&'()*+;=]|%[0-9A-Fa-f]{2})+(?::[0-9]{0,5})?$/

/** An address in brackets, and perhaps a port. */
const HOST_ADDRESS = /^\[([0-9A-Fa-f:.]+)\](?::[0-9]{0,5})?$/

function isHost(text: string): boolean {
  if (HOST_NAME.test(text)) return true
  const address = HOST_ADDRESS.exec(text)?.[1]
  return address !== undefined && isIPv6(address)
}

function hostFault(head: RequestHead, authority: string | undefined): Refusal | undefined {
  const { host } = head.survey
  const alone = head.authority === undefined && authority === undefined
  const names = alone ? host : [...host, head.authority, authority].filter(isGiven)
  if (names.length === 0) {
    return head.version === '1.0' ? undefined : malformed('The request does not name a host.')
  }
  if (host.length > 1) return malformed('The request carries more than one Host field.')
  for (const name of names) if (!isHost(name)) return malformed('The Host of the request is malformed.')
  if (names.length === 1) return undefined
  const first = names[0]?.toLowerCase()
  if (names.some((name) => name.toLowerCase() !== first)) return malformed('The request names two hosts.')
  return undefined
}

function isGiven(name: string | undefined): name is string {
  return name !== undefined
}

function fieldFault({ version, survey }: RequestHead): Refusal | undefined {
  if (survey.underscoreTwin) return malformed('A header field is a look-alike of one that the gate guards.')
  if (survey.blankAround) return malformed('A header field value begins or ends with a blank.')
  const expected = survey.expect
  if (expected.length > 0 && (expected.length > 1 || expected[0]?.toLowerCase() !== '100-continue')) {
    return { kind: 'expectation-failed' }
  }
  return version === '2' && survey.upgrade.length > 0 ? malformed('HTTP/2 has no Upgrade.') : undefined
}

/**
 * A WebSocket handshake is a GET (RFC 6455 §4.1) without a body: one reader takes the bytes behind it for the body, another
 * for the first frames. `Content-Length: 0` announces no body.
 */
function upgradeFault({ upgrade, method, framing }: RequestHead): Refusal | undefined {
  if (!upgrade) return undefined
  if (framing !== null && framing !== 0) return malformed('An upgrade to websocket carries no body.')
  return method === 'GET' ? undefined : malformed('An upgrade to websocket is a GET.')
}
