import {
  type Identity,
  type LimitDecision,
  type Per,
  type WindowType,
  windowTypeOf,
} from '../http/admission.ts'
import type { Admission, Exchange, Forward } from '../http/exchange.ts'
import { ietfLimitFields, resetTime, secondsToReset } from '../http/limit-fields.ts'
import type { Refusal } from '../http/refusal.ts'
import type { WindowPolicy, WindowTable } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { Later } from '../tokens/state.ts'
import { type ClassifyRules, classify, readsSignedIn } from './classify.ts'
import { type ClientOf, windowKey } from './client-address.ts'
import { corsFields } from './cors.ts'
import {
  type CredentialRules,
  type CredentialStores,
  credentialAnew,
  credentialFault,
  identifyCredential,
  isOfSession,
  type Judged,
} from './credential.ts'
import { atGate, type GateExchange } from './gate-exchange.ts'
import { requestIdOf } from './request-id.ts'

export interface GateRules extends ClassifyRules, CredentialRules {
  readonly limits: Readonly<Record<WindowType, WindowPolicy & { readonly per: Per }>>
  readonly ietfHeaders: boolean
  /** False: the gate only observes. It forwards requests that exceed the limit or lack a valid token, and records them. */
  readonly enforce: boolean
}

/** What a reload replaces, all in one step. A request keeps the rules of its arrival. */
export interface GateSettings {
  readonly gate: GateRules
  readonly clientOf: ClientOf
}

export interface GateDependencies extends CredentialStores {
  readonly clock: Clock
  readonly tables: Readonly<Record<WindowType, Pick<WindowTable, 'count'>>>
  readonly settings: GateSettings
}

/** Decides whether a request is admitted. Returns a promise only if the token lookup or the rate-limit table returns one. */
export type Admit = <E extends Exchange>(exchange: E) => Later<Admission<E>>

type Decided = Later<Admission<GateExchange>>

/**
 * The gate: classify, limit, identify, authorize, in this order. Each step writes what it finds out into the exchange.
 *
 * - The limit comes before every refusal of the gate, so each request of a client that may connect counts (C13), and before any
 *   body is read (C15). The HTTP/1 intake refuses a head that is too large or whose end is uncertain: it counts in no window.
 * - A client that may not connect is refused before the limit, and counts nowhere.
 * - Identify comes after the limit, so that a flood costs no token hashes. If the limit counts by grant or
 *   name, identify comes before the limit. It refuses nothing.
 */
export function createGate(deps: GateDependencies): Admit {
  const { clock, tables, settings } = deps

  function admit(exchange: GateExchange): Decided {
    const { gate: rules, clientOf } = settings
    const { head } = exchange
    exchange.classified = classify(head, rules)
    exchange.client = clientOf(head.peer, head.survey.forwardedFor)
    if (!exchange.client.admitted) return deny(exchange, rules)
    exchange.endpoint =
      rules.browser && isOfSession(exchange, deps) ? 'browser' : exchange.classified.endpoint
    exchange.per = rules.limits[exchange.endpoint].per
    if (exchange.per !== 'grant' && exchange.per !== 'name') return limit(exchange, rules, undefined)
    const known = identifyCredential(exchange, rules, deps)
    return known instanceof Promise ? later(exchange, rules, known, limit) : limit(exchange, rules, known)
  }

  function limit(exchange: GateExchange, rules: GateRules, identity: Identity | undefined): Decided {
    exchange.identity = identity
    const key = windowKey(exchange.per, exchange.client, identity)
    const decision = tables[exchange.endpoint].count(key)
    const step = countsTwice(exchange, rules) ? countInApi : judge
    return decision instanceof Promise
      ? later(exchange, rules, decision, step)
      : step(exchange, rules, decision)
  }

  /** Counts a request with a session in a window of the API, too, unless the window of its session refuses it. */
  function countInApi(exchange: GateExchange, rules: GateRules, ofSession: LimitDecision): Decided {
    if (!ofSession.admitted) return judge(exchange, rules, ofSession)
    exchange.decision = ofSession
    const key = windowKey(rules.limits.api.per, exchange.client, exchange.identity)
    const decision = tables.api.count(key)
    return decision instanceof Promise
      ? later(exchange, rules, decision, judgeByLess)
      : judgeByLess(exchange, rules, decision)
  }

  /** Of the two windows of a request with a session, the one with less left decides. */
  function judgeByLess(exchange: GateExchange, rules: GateRules, ofApi: LimitDecision): Decided {
    const ofSession = exchange.decision
    if (ofApi.admitted && ofApi.remaining >= ofSession.remaining) return judge(exchange, rules, ofSession)
    exchange.per = rules.limits.api.per
    return judge(exchange, rules, ofApi)
  }

  /** Writes the decision into the exchange, and the fields that every response gets. */
  function note(exchange: GateExchange, rules: GateRules, decision: LimitDecision): void {
    const { head, client } = exchange
    exchange.requestId = requestIdOf(head.survey.requestId, client.peerTrusted)
    exchange.decision = decision
    exchange.resetAt = resetTime(decision, clock.wall())
    if (rules.ietfHeaders) {
      const type = windowTypeOf(exchange)
      exchange.ownFields = ietfLimitFields(type, decision, rules.limits[type])
    }
    if (rules.cors !== undefined)
      exchange.ownFields = [...exchange.ownFields, ...corsFields(head, rules.cors)]
  }

  /** A client that may not connect counts nowhere. Its rate-limit fields are those of a window without a request (C16). */
  function deny(exchange: GateExchange, rules: GateRules): Admission<GateExchange> {
    exchange.endpoint = exchange.classified.endpoint
    const { requests, window, per } = rules.limits[exchange.endpoint]
    exchange.per = per
    note(exchange, rules, { admitted: true, limit: requests, remaining: requests, closesIn: window })
    return refused(exchange, ADDRESS_DENIED)
  }

  function judge(exchange: GateExchange, rules: GateRules, decision: LimitDecision): Decided {
    const { classified, identity } = exchange
    note(exchange, rules, decision)
    if (!decision.admitted) {
      const limited: Refusal = { kind: 'rate-limited', retryAfter: secondsToReset(decision) }
      if (isFinal(limited, exchange, rules)) return refused(exchange, limited)
      exchange.wouldRefuse = limited
    }
    if (exchange.overMemory) return refused(exchange, OVER_MEMORY)
    // The endpoints of the sidecar ignore `Authorization`.
    const known =
      identity ??
      (classified.ownEndpoint === undefined ? identifyCredential(exchange, rules, deps) : undefined)
    return known instanceof Promise
      ? later(exchange, rules, known, authorize)
      : authorize(exchange, rules, known)
  }

  // Proof of the cast: each step returns the exchange that it gets.
  return atGate(admit) as Admit
}

/** There is room again when this client or others hold less. */
const OVER_MEMORY: Refusal = { kind: 'overloaded', retryAfter: 1 }

/**
 * Whether a request counts in a window of the API, too. A session has a window of its own, but must not pass a limit on all requests to
 * the device, or on all of a name.
 */
function countsTwice({ endpoint }: GateExchange, { limits: { api } }: GateRules): boolean {
  return endpoint === 'browser' && (api.per === 'device' || api.per === 'name')
}

/**
 * Continues with `step` when the promise is fulfilled. It is a function of its own because V8 allocates a context on every call
 * of a function whose variables a closure captures, even if the call never creates the closure.
 */
function later<T>(
  exchange: GateExchange,
  rules: GateRules,
  pending: Promise<T>,
  step: (exchange: GateExchange, rules: GateRules, value: T) => Decided,
): Promise<Admission<GateExchange>> {
  return pending.then((value) => step(exchange, rules, value))
}

/**
 * The last step. Refuses a request that exceeds the limit, is faulty, has no valid token, or is one that the name of its token may not
 * make. Admits every other one.
 */
function authorize(
  exchange: GateExchange,
  rules: GateRules,
  identity: Identity | undefined,
): Admission<GateExchange> {
  const { classified, wouldRefuse: limited } = exchange
  exchange.identity = identity
  const fault = classified.fault ?? credentialFault(exchange, rules)
  // A request that exceeds the limit gets here only if the gate observes. What its name may not do is refused even then.
  const refusal = fault?.kind === 'insufficient-scope' ? fault : (limited ?? fault)
  if (refusal !== undefined && isFinal(refusal, exchange, rules)) return refused(exchange, refusal)
  if (classified.ownEndpoint !== undefined) {
    exchange.kind = 'own-endpoint'
    // Proof of the cast: the line above.
    return exchange as Admission<GateExchange>
  }
  exchange.wouldRefuse = refusal
  exchange.kind = 'forward'
  exchange.signedIn = isSignedIn(exchange, rules)
  // The mark of `Forward` exists only for the compiler. Only this line sets it, after the limit and the token check.
  return exchange as Forward<GateExchange>
}

function isSignedIn(request: Judged, { findPublic }: GateRules): boolean {
  return request.grant !== undefined || readsSignedIn(request, findPublic)
}

const ADDRESS_DENIED: Refusal = { kind: 'address-denied' }
const NOT_SIGNED_IN: Refusal = { kind: 'unauthorized', cause: 'missing' }

/**
 * Judges a forwarded exchange in flight by the present settings: by each step of the gate but the limit, which counted it at its arrival.
 * Returns the refusal. Undefined if the exchange stays admitted: it then has the present scope.
 */
export function judgeAnew(
  exchange: GateExchange,
  { gate: rules, clientOf }: GateSettings,
): Refusal | undefined {
  const { head, identity, grant } = exchange
  const classified = classify(head, rules)
  const client = clientOf(head.peer, head.survey.forwardedFor)
  // The record keeps the facts of the arrival.
  const anew: Judged = { head, classified, client, identity, grant, scope: undefined, confined: false }
  if (!client.admitted) return ADDRESS_DENIED
  anew.identity = credentialAnew(anew, rules)
  anew.grant = undefined
  const refusal = classified.fault ?? credentialFault(anew, rules)
  if (refusal !== undefined && isFinal(refusal, anew, rules)) return refusal
  // It was forwarded with the sidecar's own login, to which it has no right any more.
  if (exchange.signedIn && !isSignedIn(anew, rules)) return NOT_SIGNED_IN
  exchange.scope = anew.scope
  return undefined
}

/**
 * Whether a refusal is sent. A gate that only observes also forwards requests that exceed the limit or have no valid token. It
 * never forwards a faulty request, nor one that its name may not make, nor one to the sidecar's own endpoints.
 */
function isFinal(
  { kind }: Refusal,
  { classified }: Pick<Judged, 'classified'>,
  { enforce }: GateRules,
): boolean {
  if (enforce || classified.ownEndpoint !== undefined || classified.fault !== undefined) return true
  return !OBSERVED.has(kind)
}

const OBSERVED: ReadonlySet<Refusal['kind']> = new Set([
  'unauthorized',
  'rate-limited',
  'store-unavailable',
  'cross-origin',
])

function refused(exchange: GateExchange, refusal: Refusal): Admission<GateExchange> {
  exchange.kind = 'refused'
  exchange.refusal = refusal
  // Proof of the cast: the lines above.
  return exchange as Admission<GateExchange>
}
