import { type Identity, OWN_PATHS, type OwnEndpoint, type Presented } from '../http/admission.ts'
import { DEVICE_LOGIN_COOKIE, isOfThisOrigin, sessionIdsIn } from '../http/browsers.ts'
import { destinationOf, hasOverride } from '../http/overrides.ts'
import type { AuthFailure, Refusal } from '../http/refusal.ts'
import { loosePathOf } from '../http/request-path.ts'
import { type Allows, isRead, nameOfGrant, type Scopes, UPGRADE } from '../http/scope.ts'
import type { Sessions } from '../oauth/browser-sessions.ts'
import type { Later } from '../system/later.ts'
import type { Tokens } from '../tokens/token-store.ts'
import type { ClassifyRules, FindPublic } from './classify.ts'
import type { GateExchange } from './gate-exchange.ts'
import { REVOKED } from './live-exchanges.ts'

/** A request, and what is found out about it while its credential is judged. */
export type JudgedExchange = Pick<
  GateExchange,
  'head' | 'classified' | 'client' | 'identity' | 'grant' | 'scope' | 'confined'
>

/** What finds the grant of a credential. */
export interface CredentialStores {
  readonly identify: Tokens['identify']
  /** The sessions of browsers, if `browser.login` is on. */
  readonly sessions: Pick<Sessions, 'has' | 'identify'>
}

/** The rules by which a token admits a request. */
export interface CredentialRules {
  readonly findPublic: FindPublic
  /** What each name of `passwords` may do; undefined with `password`, which has no names. */
  readonly scopes: Scopes | undefined
}

/** Upper bound on a presented token (bytes): longer than any minted one, and it caps the cost of hashing garbage. */
const LONGEST_TOKEN = 512

/**
 * RFC 6750 §2.1, with the scheme in any letter case and one or more spaces (RFC 9110 §11.4). There are no blanks around the
 * value: the HTTP/1 reader strips them, and HTTP/2 forbids them (RFC 9113 §8.2.1).
 */
const BEARER = /^bearer +[A-Za-z0-9\-._~+/]+=*$/i

/** The scheme with anything but spaces behind it: the client meant to show a token. */
const BEARER_SHOWN = /^bearer(?:[\t,]| +[^ ])/i

/**
 * Reads the token from the `Authorization` fields. `missing`: the request shows no bearer token, because it has no field, another
 * scheme, or the scheme alone. The challenge then carries no error code (RFC 6750 §3.1).
 */
export function readBearer(fields: readonly string[]): Exclude<Presented, { kind: 'session' }> {
  const value = fields[0]
  if (value === undefined) return { kind: 'none', cause: 'missing' }
  if (fields.length > 1) return { kind: 'none', cause: 'malformed' }
  if (BEARER.test(value)) {
    const token = value.slice(value.lastIndexOf(' ') + 1)
    return token.length > LONGEST_TOKEN ? { kind: 'none', cause: 'malformed' } : { kind: 'token', token }
  }
  return { kind: 'none', cause: BEARER_SHOWN.test(value) ? 'malformed' : 'missing' }
}

/**
 * Whether a request has a live session, and no page of another origin can have caused it (CSRF). The method does not matter, because
 * firmware changes its state by GET, too. `SameSite` does not suffice: another port of the same host is the same site.
 */
export function isOfSession(exchange: GateExchange, { sessions }: CredentialStores): boolean {
  const { head, classified } = exchange
  if (classified.ownEndpoint !== undefined) return false
  head.presented ??= presentedIn(head)
  const { presented } = head
  return presented.kind === 'session' && sessions.has(presented.id) && mayUseSession(exchange)
}

function mayUseSession(exchange: JudgedExchange): boolean {
  const { method, upgrade } = exchange.head
  return isOfThisOrigin(exchange, { typed: true, silent: isRead(method) && !upgrade })
}

/**
 * Judges the credential of a request in flight by the rules of a reload. No store is asked again: the answer at the arrival of the request
 * holds. The access token may have expired since then, but a request ends with its grant, not with its token.
 */
export function credentialAnew(
  exchange: JudgedExchange,
  { browser }: Pick<ClassifyRules, 'browser'>,
): Identity | undefined {
  const { head, grant, identity } = exchange
  // A token on a public path that did not admit the request counted as no token.
  if (identity?.kind === 'valid' && grant === undefined) return MISSING
  if (identity?.kind !== 'valid' || head.presented?.kind !== 'session') return identity
  if (!browser) return MISSING
  return mayUseSession(exchange) ? identity : FOREIGN
}

/** A bearer token beats a session, even a malformed token. Another scheme is for the device's own login, and does not. */
function presentedIn({ survey, fields }: GateExchange['head']): Presented {
  const bearer = readBearer(survey.authorization)
  const isShown = bearer.kind === 'token' || bearer.cause === 'malformed'
  const [session] = isShown ? [] : sessionIdsIn(fields, DEVICE_LOGIN_COOKIE)
  return session === undefined ? bearer : { kind: 'session', id: session }
}

const MISSING: Identity = { kind: 'refused', cause: 'missing' }
const FOREIGN: Identity = { kind: 'refused', cause: 'missing', foreign: true }

/** The identity of the credential that a request shows; a promise if the token store returns one. */
export function identifyCredential(
  exchange: GateExchange,
  { browser }: Pick<ClassifyRules, 'browser'>,
  { identify, sessions }: CredentialStores,
): Later<Identity> {
  const { head, client } = exchange
  head.presented ??= presentedIn(head)
  const { presented } = head
  switch (presented.kind) {
    case 'token':
      return identify(presented.token, client.key, exchange.start)
    case 'session':
      if (!browser) return MISSING
      if (exchange.endpoint === 'browser') return sessions.identify(presented.id, client.key, exchange.start)
      return sessions.has(presented.id) ? FOREIGN : MISSING
    case 'none':
      return { kind: 'refused', cause: presented.cause }
  }
}

/**
 * Every path but the sidecar's own endpoints needs a valid token, or the session of a browser, whose name has to allow the request. A
 * public path needs neither: there, a token that does not admit the request counts as no token.
 */
export function credentialFault(exchange: JudgedExchange, rules: CredentialRules): Refusal | undefined {
  const { classified, identity } = exchange
  if (classified.ownEndpoint !== undefined) return ownEndpointFault(exchange, classified.ownEndpoint)
  if (identity?.kind !== 'valid') {
    if (admitAsPublic(exchange, rules)) return undefined
    if (identity?.kind === 'unavailable') return { kind: 'store-unavailable' }
    if (identity?.foreign) return { kind: 'cross-origin' }
    return unauthorized(exchange, identity?.cause ?? 'missing')
  }
  const { grant } = identity
  const fault = rules.scopes === undefined ? undefined : scopeFault(exchange, grant, rules.scopes, rules)
  if (fault !== undefined && exchange.scope === undefined && admitAsPublic(exchange, rules)) return undefined
  // Refused requests are recorded with their grant, too.
  exchange.grant = grant
  return fault
}

/** The refusal for a missing or invalid token. A login at `/oauth/token/` or `//oauth/token` learns where tokens are issued. */
function unauthorized({ head, classified: { target } }: JudgedExchange, cause: AuthFailure): Refusal {
  const isMisplaced = head.method === 'POST' && loosePathOf(target) === OWN_PATHS.token
  return { kind: 'unauthorized', cause, ...(isMisplaced ? { misplaced: true } : {}) }
}

/** Whether the path of a request is public, and the path of its `Destination`, if there is one. Then marks the request as confined. */
function admitAsPublic(exchange: JudgedExchange, rules: CredentialRules): boolean {
  if (!isPublic(exchange, rules)) return false
  exchange.confined = true
  return true
}

function isPublic(exchange: JudgedExchange, { findPublic }: CredentialRules): boolean {
  if (findPublic(exchange.classified.target) === undefined) return false
  const destination = destinationOf(exchange)
  return destination === undefined || findPublic(destination) !== undefined
}

/**
 * Why the name of a grant may not make the request. Writes the scope into the exchange if the name may make it, or if its `allow` is on
 * trial: `gate/admit.ts` then only notes the refusal.
 */
function scopeFault(
  exchange: JudgedExchange,
  grant: string,
  scopes: Scopes,
  rules: CredentialRules,
): Refusal | undefined {
  const scope = scopes.get(nameOfGrant(grant))
  // A reload has removed the name.
  if (scope === undefined) return REVOKED
  const { allows, onTrial } = scope
  const fault = allows === undefined || isAllowed(exchange, allows) ? undefined : OUT_OF_SCOPE
  if (fault !== undefined && !onTrial) return fault
  exchange.scope = scope
  exchange.confined = allows !== undefined && !onTrial
  if (allows === undefined || !onTrial) return undefined
  if (fault !== undefined && !isPublic(exchange, rules)) return fault
  return hasOverride(exchange.head.fields) ? HELD_BACK : undefined
}

/** Whether `allow` admits the request, and its method for the path of its `Destination`, too. */
function isAllowed(exchange: JudgedExchange, allows: Allows): boolean {
  const { head, classified } = exchange
  const method = head.upgrade ? UPGRADE : head.method
  if (!allows(method, classified.target)) return false
  const destination = destinationOf(exchange)
  return destination === undefined || (destination !== '' && allows(method, destination))
}

const OUT_OF_SCOPE: Refusal = { kind: 'insufficient-scope' }

/** `allow` admits the request, but the request has a field that names another path, method or host. */
export const HELD_BACK: Refusal = { kind: 'insufficient-scope', override: true }

/**
 * The fault of a request to an own endpoint, which finds its credential in the body of a POST. Login and logout also have a page, for GET,
 * and their POST must come from that page (login CSRF).
 */
function ownEndpointFault(exchange: JudgedExchange, endpoint: OwnEndpoint): Refusal | undefined {
  const { method } = exchange.head
  if (endpoint === 'preflight' || endpoint === 'redirect') return undefined
  const hasPage = endpoint === 'login' || endpoint === 'logout'
  if (method !== 'POST') {
    if (hasPage && isRead(method)) return undefined
    return { kind: 'method-not-allowed', allow: hasPage ? 'GET, HEAD, POST' : 'POST' }
  }
  return !hasPage || isOfThisOrigin(exchange, { typed: false, silent: false })
    ? undefined
    : { kind: 'cross-origin' }
}
