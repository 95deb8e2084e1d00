import type { Endpoint, GateFacts, Identity, LimitDecision, Per } from '../http/admission.ts'
import type { Admission, Exchange, Forward } from '../http/exchange.ts'
import { ietfLimitFields, resetTime, secondsToReset } from '../http/limit-fields.ts'
import type { Refusal } from '../http/refusal.ts'
import type { WindowPolicy, Windows } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { identifyBearer } from './bearer.ts'
import { type ClassifyRules, classify, type IsPublic } from './classify.ts'
import { type ClientOf, windowKey } from './client-address.ts'
import { requestIdOf } from './request-id.ts'

interface EndpointLimit extends WindowPolicy {
  readonly per: Per
}

export interface GateRules extends ClassifyRules {
  readonly limits: Readonly<Record<Endpoint, EndpointLimit>>
  readonly ietfHeaders: boolean
  readonly isPublic: IsPublic
  /** False: the gate only observes. It forwards requests that exceed the limit or lack a valid token, and records them. */
  readonly enforce: boolean
}

/** What a reload replaces, all in one step. A request keeps the rules of its arrival. */
export interface GateSettings {
  readonly gate: GateRules
  readonly clientOf: ClientOf
}

export interface GateDependencies {
  readonly clock: Clock
  readonly tables: Readonly<Record<Endpoint, Windows>>
  readonly identify: Tokens['identify']
  readonly newRequestId: () => string
  readonly settings: GateSettings
}

/** A value, or a promise of it if another process provides it. */
type Later<T> = T | Promise<T>

/** Decides whether a request is admitted. Returns a promise only if the token lookup or the rate-limit table returns one. */
export type Admit = <E extends Exchange>(exchange: E) => Later<Admission<E>>

type Decided = Later<Admission>

/**
 * The gate: classify, limit, identify, authorize, in this order. Each step writes what it finds out into the exchange.
 *
 * - The limit comes before every refusal of the gate, so each request that reaches the gate counts (C13), and before any body
 *   is read (C15). The HTTP/1 intake refuses a head that is too large or whose end is uncertain: it counts in no window.
 * - Identify comes after the limit, so that a flood costs no token hashes. If the limit counts by grant, identify comes before
 *   the limit. It refuses nothing.
 */
export function createGate({ clock, tables, identify, newRequestId, settings }: GateDependencies): Admit {
  function admit(exchange: Exchange): Decided {
    const { gate: rules, clientOf } = settings
    const { head } = exchange
    const facts: GateFacts = exchange
    facts.classified = classify(head, rules)
    facts.client = clientOf(head.peer, head.survey.forwardedFor)
    facts.per = rules.limits[exchange.classified.endpoint].per
    if (exchange.per !== 'grant') return limit(exchange, rules, undefined)
    const known = identifyBearer(head, exchange.client, identify)
    return known instanceof Promise ? later(exchange, rules, known, limit) : limit(exchange, rules, known)
  }

  function limit(exchange: Exchange, rules: GateRules, identity: Identity | undefined): Decided {
    const facts: GateFacts = exchange
    facts.identity = identity
    const key = windowKey(exchange.per, exchange.client, identity)
    const decision = tables[exchange.classified.endpoint].count(key)
    return decision instanceof Promise
      ? later(exchange, rules, decision, judge)
      : judge(exchange, rules, decision)
  }

  function judge(exchange: Exchange, rules: GateRules, decision: LimitDecision): Decided {
    const { head, classified, client, identity } = exchange
    const facts: GateFacts = exchange
    facts.requestId = requestIdOf(head.survey.requestId, client.peerTrusted, newRequestId)
    facts.decision = decision
    facts.resetAt = resetTime(decision, clock.wall())
    const { endpoint } = classified
    if (rules.ietfHeaders) facts.ietfFields = ietfLimitFields(endpoint, decision, rules.limits[endpoint])
    if (!decision.admitted) {
      const limited: Refusal = { kind: 'rate-limited', retryAfter: secondsToReset(decision) }
      if (isFinal(limited, exchange, rules)) return refused(exchange, limited)
      facts.wouldRefuse = limited
    }
    // The endpoints of the sidecar ignore `Authorization`.
    const known =
      identity ??
      (classified.ownEndpoint === undefined ? identifyBearer(head, exchange.client, identify) : undefined)
    return known instanceof Promise
      ? later(exchange, rules, known, authorize)
      : authorize(exchange, rules, known)
  }

  // Proof of the cast: each step returns the exchange that it gets.
  return admit as Admit
}

/**
 * Continues with `step` when the promise is fulfilled. It is a function of its own because V8 allocates a context on every call
 * of a function whose variables a closure captures, even if the call never creates the closure.
 */
function later<T>(
  exchange: Exchange,
  rules: GateRules,
  pending: Promise<T>,
  step: (exchange: Exchange, rules: GateRules, value: T) => Decided,
): Promise<Admission> {
  return pending.then((value) => step(exchange, rules, value))
}

/** The last step. Refuses a request that exceeds the limit, is faulty or has no valid token, and admits every other one. */
function authorize(exchange: Exchange, rules: GateRules, identity: Identity | undefined): Admission {
  const { classified, wouldRefuse: limited } = exchange
  const facts: GateFacts = exchange
  facts.identity = identity
  const refusal = limited ?? classified.fault ?? credentialFault(exchange, rules)
  if (refusal !== undefined && isFinal(refusal, exchange, rules)) return refused(exchange, refusal)
  if (classified.ownEndpoint !== undefined) {
    facts.kind = 'own-endpoint'
    // Proof of the cast: the line above.
    return exchange as Admission
  }
  facts.wouldRefuse = refusal
  facts.kind = 'forward'
  if (identity?.kind === 'valid') facts.grant = identity.grant
  // The mark of `Forward` exists only for the compiler. Only this line sets it, after the limit and the token check.
  return exchange as Forward
}

/** The sidecar's own endpoints take POST and find the credential in the body. Every other path needs a valid token. */
function credentialFault(
  { head, classified, identity }: Exchange,
  { isPublic }: GateRules,
): Refusal | undefined {
  if (classified.ownEndpoint !== undefined)
    return head.method === 'POST' ? undefined : { kind: 'method-not-allowed', allow: 'POST' }
  if (identity?.kind === 'valid' || isPublic(classified.target)) return undefined
  if (identity?.kind === 'unavailable') return { kind: 'store-unavailable' }
  return { kind: 'unauthorized', cause: identity?.cause ?? 'missing' }
}

/**
 * Whether a refusal is sent. A gate that only observes also forwards requests that exceed the limit or have no valid token. It
 * never forwards a faulty request, nor one to the sidecar's own endpoints.
 */
function isFinal({ kind }: Refusal, { classified }: Exchange, { enforce }: GateRules): boolean {
  if (enforce || classified.ownEndpoint !== undefined || classified.fault !== undefined) return true
  return kind !== 'unauthorized' && kind !== 'rate-limited' && kind !== 'store-unavailable'
}

function refused(exchange: Exchange, refusal: Refusal): Admission {
  const facts: GateFacts = exchange
  facts.kind = 'refused'
  facts.refusal = refusal
  // Proof of the cast: the lines above.
  return exchange as Admission
}
