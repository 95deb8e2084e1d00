import { METHODS } from 'node:http'
import { type Classified, OWN_PATHS, type OwnEndpoint } from '../http/admission.ts'
import type { Exchange, RequestHead } from '../http/exchange.ts'
import { type Fields, isBlank } from '../http/fields.ts'
import { isHost } from '../http/ip.ts'
import { hasOverride } from '../http/overrides.ts'
import type { Refusal } from '../http/refusal.ts'
import {
  createPathTable,
  isAmbiguousPath,
  isPathTarget,
  pathOf,
  splitAbsolute,
} from '../http/request-path.ts'
import { isRead } from '../http/scope.ts'
import { isPreflight, type Origins } from './cors.ts'
import type { GateExchange } from './gate-exchange.ts'

/**
 * The methods that are forwarded: Node's list, which includes those of WebDAV. Any other method is refused, for example `head` in lower
 * case. Methods are case-sensitive (RFC 9110 §9.1), so a response to `head` has a body. Firmware that ignores case sends none, and the
 * sidecar would wait for it.
 */
const FORWARDED_METHODS: ReadonlySet<string> = new Set(
  METHODS.filter((name) => name !== 'TRACE' && name !== 'CONNECT'),
)

/** The `Allow` field of a refused method: the methods of an API, without those of WebDAV. */
const NAMED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

export interface ClassifyRules {
  /** The caps on a request head: the bytes of its names and values, and the number of its fields. */
  readonly headerCaps: { readonly maxHeaderSize: number; readonly maxHeaderCount: number }
  /** The path of the revocation endpoint (RFC 7009); undefined if it is switched off. */
  readonly revocationPath: string | undefined
  /** The login of browsers is on. */
  readonly browser: boolean
  /** The origins whose pages may use the API. Undefined: preflights are requests like all others. */
  readonly cors: Origins | undefined
}

/**
 * Classifies a request. If two programs could read its head differently, although the HTTP readers accept it, its fault is `malformed`: it
 * is refused, and no later byte on the connection is read. The result is kept with the head.
 */
export function classify(head: GateExchange['head'], rules: ClassifyRules): Classified {
  const known = head.classified
  if (known?.rules === rules) return known
  const { framing, survey } = head
  const { target, authority } = originForm(head)
  const path = pathOf(target)
  const atPath = ownEndpointAt(path, rules)
  let ownEndpoint = atPath
  if (head.redirects) ownEndpoint = 'redirect'
  else if (rules.cors !== undefined && isPreflight(head, rules.cors)) ownEndpoint = 'preflight'
  const fault =
    capFault(head, rules.headerCaps) ??
    methodFault(head, ownEndpoint) ??
    targetFault(head, target) ??
    hostFault(head, authority) ??
    (framing === 'broken' ? malformed('The length of the request body is ambiguous.') : undefined) ??
    fieldFault(head) ??
    (head.upgrade ? upgradeFault(head) : undefined)
  const classified: Classified = {
    endpoint: atPath === undefined ? 'api' : 'oauth',
    ownEndpoint,
    target,
    host: head.authority ?? survey.host[0] ?? authority ?? '',
    framing: framing === 'broken' ? null : framing,
    fault,
    ambiguous: fault?.kind === 'malformed' || fault?.kind === 'method-not-allowed' || framing === 'broken',
    rules,
  }
  head.classified = classified
  return classified
}

function ownEndpointAt(path: string, { revocationPath, browser }: ClassifyRules): OwnEndpoint | undefined {
  if (path === OWN_PATHS.token) return 'token'
  if (path === revocationPath) return 'revocation'
  if (!browser) return undefined
  return path === OWN_PATHS.login ? 'login' : path === OWN_PATHS.logout ? 'logout' : undefined
}

function malformed(description: string): Refusal {
  return { kind: 'malformed', description }
}

/**
 * Checks both caps for both HTTP versions. The HTTP/1 reader does not count fields, and nghttp2 enforces the size only after the client has
 * acknowledged the sidecar's SETTINGS.
 */
function capFault(head: RequestHead, caps: ClassifyRules['headerCaps']): Refusal | undefined {
  const size = head.method.length + head.target.length + (head.authority?.length ?? 0) + head.survey.size
  const over = size > caps.maxHeaderSize || head.fields.length > 2 * caps.maxHeaderCount
  return over ? { kind: 'header-too-large' } : undefined
}

function methodFault({ method }: RequestHead, ownEndpoint: OwnEndpoint | undefined): Refusal | undefined {
  if (FORWARDED_METHODS.has(method)) return undefined
  return { kind: 'method-not-allowed', allow: ownEndpoint === undefined ? NAMED_METHODS : 'POST' }
}

/** Converts an absolute-form target (RFC 9112 §3.2.2) into origin form, so later steps handle only one form. */
function originForm(head: RequestHead): { target: string; authority: string | undefined } {
  if (head.target.startsWith('/')) return { target: head.target, authority: undefined }
  const absolute = head.version === '2' ? undefined : splitAbsolute(head.target)
  return absolute ?? { target: head.target, authority: undefined }
}

/** A target with any other byte lacks percent-encoding (RFC 3986 §2.1). */
const ASCII = /^[\0-\x7f]*$/

function targetFault(head: RequestHead, target: string): Refusal | undefined {
  if (head.method === 'OPTIONS' && target === '*') {
    return { kind: 'invalid-request', description: 'The target of OPTIONS must be a path.' }
  }
  if (isPathTarget(target)) return undefined
  return ASCII.test(target)
    ? malformed('The request target is not a path.')
    : malformed('The request target is not ASCII and has to be percent-encoded.')
}

/** A host with the zone of an IPv6 address, which has a meaning for the client only (RFC 6874 §4). */
const ZONE = /^\[[^\]]*%/

function malformedHost(host: string): Refusal {
  return malformed(
    ZONE.test(host)
      ? 'The Host of the request has an IPv6 zone, which means something to the client only: send the address without it.'
      : 'The Host of the request is malformed.',
  )
}

/** @param absolute the host in a target of absolute form */
function hostFault(head: RequestHead, absolute: string | undefined): Refusal | undefined {
  const [field, second] = head.survey.host
  const named = head.authority ?? absolute
  const host = named ?? field
  if (host === undefined) {
    return head.version === '1.0' ? undefined : malformed('The request does not name a host.')
  }
  if (second !== undefined) return malformed('The request carries more than one Host field.')
  if (!isHost(host)) return malformedHost(host)
  if (named === undefined || field === undefined) return undefined
  if (!isHost(field)) return malformedHost(field)
  return field.toLowerCase() === named.toLowerCase() ? undefined : malformed('The request names two hosts.')
}

/**
 * Whether a value begins or ends with a blank. RFC 9113 §8.2.1 forbids that in HTTP/2; the reader of HTTP/1 strips such blanks.
 * `Authorization` does not count: a malformed token is refused with 401 (C10).
 */
function hasBlankAround(fields: Fields): boolean {
  return fields.some((value, i) => {
    const around = i % 2 === 1 && (isBlank(value[0]) || isBlank(value.at(-1)))
    return around && fields[i - 1]?.toLowerCase() !== 'authorization'
  })
}

function fieldFault({ version, survey, fields }: RequestHead): Refusal | undefined {
  if (survey.twin)
    return malformed('A header field name differs from a protected one only in its punctuation.')
  if (version === '2' && hasBlankAround(fields))
    return malformed('A header field value begins or ends with a space or a tab.')
  const expected = survey.expect
  if (expected.length > 0 && (expected.length > 1 || expected[0]?.toLowerCase() !== '100-continue')) {
    return { kind: 'expectation-failed' }
  }
  return version === '2' && survey.upgrade.length > 0 ? malformed('HTTP/2 has no Upgrade.') : undefined
}

/**
 * A WebSocket handshake is a GET (RFC 6455 §4.1) without a body: one parser would take the bytes after the head for a body, another for the
 * first frames. `Content-Length: 0` announces no body.
 */
function upgradeFault({ method, framing }: RequestHead): Refusal | undefined {
  if (framing !== null && framing !== 0) return malformed('An upgrade to websocket must not have a body.')
  return method === 'GET' ? undefined : malformed('An upgrade to websocket must use GET.')
}

/** Whether a request with this target needs no token. `signed-in`: a read of it gets the sidecar's own login at the device all the same. */
export type FindPublic = (target: string) => 'open' | 'signed-in' | undefined

/**
 * Compares the entries with the path as the device receives it. An ambiguous path is never public, because the device could resolve it to a
 * path that needs a token.
 */
export function createPublicPaths(entries: readonly (string | { readonly path: string })[]): FindPublic {
  if (entries.length === 0) return () => undefined
  const find = createPathTable(
    entries.map((entry) =>
      typeof entry === 'string' ? ([entry, 'open'] as const) : ([entry.path, 'signed-in'] as const),
    ),
  )
  return (target) => {
    const path = pathOf(target)
    return isAmbiguousPath(path) ? undefined : find(path)
  }
}

/**
 * Whether a request without a token gets the sidecar's own login at the device. Any method but GET and HEAD could change the device under
 * that account, and so could a GET with a body, which some programs read as a form. A request that names another path or method could read
 * a page that is not public.
 */
export function readsSignedIn(
  { head, classified }: Pick<Exchange, 'head' | 'classified'>,
  findPublic: FindPublic,
): boolean {
  const reads = isRead(head.method) && !head.upgrade && !head.framing
  if (!reads || findPublic(classified.target) !== 'signed-in') return false
  return head.survey.destination.length === 0 && !hasOverride(head.fields)
}
