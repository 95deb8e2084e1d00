import {
  type Client,
  type Identity,
  type LimitDecision,
  type Per,
  type WindowType,
  windowTypeOf,
} from '../http/admission.ts'
import type { Admission, Exchange, Forward } from '../http/exchange.ts'
import { ietfLimitFields, resetTime, secondsToReset } from '../http/limit-fields.ts'
import { hasOverride } from '../http/overrides.ts'
import type { Refusal } from '../http/refusal.ts'
import { nameOfGrant, windowOfName } from '../http/scope.ts'
import type { LimitPolicy } from '../limits/own-windows.ts'
import type { WindowPolicy, WindowTable } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { Later } from '../system/later.ts'
import { type ClassifyRules, classify, readsSignedIn } from './classify.ts'
import type { ClientOf } from './client-address.ts'
import { corsFields } from './cors.ts'
import {
  type CredentialRules,
  type CredentialStores,
  credentialAnew,
  credentialFault,
  HELD_BACK,
  identifyCredential,
  isOfSession,
  type JudgedExchange,
} from './credential.ts'
import { atGate, type GateExchange } from './gate-exchange.ts'

export interface GateRules extends ClassifyRules, CredentialRules {
  readonly limits: Readonly<Record<WindowType, LimitPolicy & { readonly per: Per }>>
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

/** A step of the gate: a fact about the request, and what follows from it. */
interface Step<Fact> {
  /** Returns a promise if another process has to be asked. */
  readonly find: (exchange: GateExchange, rules: GateRules) => Later<Fact>
  /** Writes what the step finds out into the exchange. Returns why the request is refused; undefined if it goes on to the next step. */
  readonly judge: (exchange: GateExchange, rules: GateRules, fact: Fact) => Refusal | undefined
}

type Steps = readonly (
  | Step<LimitDecision>
  | Step<LimitDecision | undefined>
  | Step<Identity | undefined>
  | Step<unknown>
)[]

/**
 * The gate: classify, limit, identify, authorize, in this order.
 *
 * - The limit comes before every refusal of the gate, so each request of a client that may connect counts (C13), and before any
 *   body is read (C15). The HTTP/1 intake refuses a head that is too large or whose end is uncertain: it counts in no window.
 * - Identify comes after the limit, so that a flood costs no token hashes.
 */
export function createGate(deps: GateDependencies): Admit {
  const { clock, tables, settings } = deps

  const limitFirst: Steps = [
    { find: count, judge: limit },
    { find: identify, judge: authorize },
  ]

  /**
   * A limit per grant or name, as every session has, needs the identity first. Even so, a missing or invalid token is refused only after
   * the limit.
   */
  const identityFirst: Steps = [
    { find: identifyForLimit, judge: keepIdentity },
    { find: count, judge: keepDecision },
    { find: countInApi, judge: limitByLess },
    { find: knownIdentity, judge: authorize },
  ]

  /** A client that may not connect counts in no window. `limit` refuses it. */
  const denied: Steps = [{ find: unusedWindow, judge: limit }]

  function admit(exchange: GateExchange): Decided {
    const { gate: rules } = settings
    const { head } = exchange
    exchange.start = clock.monotonic()
    const { classified, client } = head
    const isKnown = classified?.rules === rules && client !== undefined
    exchange.classified = isKnown ? classified : classify(head, rules)
    exchange.client = isKnown ? client : clientIn(head, settings)
    const { admitted } = exchange.client
    const bySession = admitted && rules.browser && isOfSession(exchange, deps)
    exchange.endpoint = bySession ? 'browser' : exchange.classified.endpoint
    exchange.per = rules.limits[exchange.endpoint].per
    if (!admitted) return takeSteps(denied, exchange, rules)
    const byIdentity = exchange.per === 'grant' || exchange.per === 'name'
    return takeSteps(byIdentity ? identityFirst : limitFirst, exchange, rules)
  }

  /** Counts the request in the window of its endpoint type or session. */
  function count({ endpoint, per, client, identity, start }: GateExchange): Later<LimitDecision> {
    return tables[endpoint].count(windowKey(per, client, identity), start)
  }

  /**
   * Counts a request with a session in a window of the API, too. A session has a window of its own, but must not pass a limit on all
   * requests to the device, or on all of a name. Undefined if there is no such limit, or if the window of the session already refuses the
   * request.
   */
  function countInApi(
    { endpoint, client, identity, decision }: GateExchange,
    { limits: { api } }: GateRules,
  ): Later<LimitDecision | undefined> {
    const countsTwice = endpoint === 'browser' && (api.per === 'device' || api.per === 'name')
    if (!countsTwice || !decision.admitted) return undefined
    return tables.api.count(windowKey(api.per, client, identity))
  }

  /** Decides by the one of the two windows of a request with a session that has less left. */
  function limitByLess(
    exchange: GateExchange,
    rules: GateRules,
    ofApi: LimitDecision | undefined,
  ): Refusal | undefined {
    const ofSession = exchange.decision
    if (ofApi === undefined || (ofApi.admitted && ofApi.remaining >= ofSession.remaining))
      return limit(exchange, rules, ofSession)
    exchange.per = rules.limits.api.per
    return limit(exchange, rules, ofApi)
  }

  /**
   * Writes the decision, and the fields that every response gets. Refuses a request whose client may not connect, exceeds the limit, or
   * holds too much memory.
   */
  function limit(exchange: GateExchange, rules: GateRules, decision: LimitDecision): Refusal | undefined {
    exchange.decision = decision
    exchange.resetAt = resetTime(decision, clock.wall())
    if (rules.ietfHeaders) {
      const type = windowTypeOf(exchange)
      exchange.ownFields = ietfLimitFields(type, decision, policyOf(exchange, rules.limits[type]))
    }
    if (rules.cors !== undefined)
      exchange.ownFields = [...exchange.ownFields, ...corsFields(exchange.head, rules.cors)]
    if (!exchange.client.admitted) return ADDRESS_DENIED
    if (decision.admitted) return exchange.overMemory ? OVER_MEMORY : undefined
    const limited: Refusal = { kind: 'rate-limited', retryAfter: secondsToReset(decision.closesIn) }
    if (!exchange.overMemory || isFinal(limited, exchange, rules)) return limited
    // A gate that only observes forwards past the limit, but not past the memory.
    exchange.wouldRefuse = limited
    return OVER_MEMORY
  }

  /** The identity of a request; undefined for the sidecar's own endpoints, which ignore `Authorization`. */
  function identify(exchange: GateExchange, rules: GateRules): Later<Identity | undefined> {
    if (exchange.classified.ownEndpoint !== undefined) return undefined
    return identifyCredential(exchange, rules, deps)
  }

  function identifyForLimit(exchange: GateExchange, rules: GateRules): Later<Identity | undefined> {
    return identifyCredential(exchange, rules, deps)
  }

  // Proof of the cast: each step returns the exchange that it gets.
  return atGate(admit) as Admit
}

/**
 * Takes one step after the other, until one refuses the request. A gate that only observes goes on and notes the refusal. Here alone
 * the gate waits for another process.
 */
function takeSteps(steps: Steps, exchange: GateExchange, rules: GateRules): Decided {
  for (let at = 0; at < steps.length; at += 1) {
    // Proof of the cast: `find` and `judge` of one step agree about the fact.
    const { find, judge } = steps[at] as Step<unknown>
    const fact = find(exchange, rules)
    if (fact instanceof Promise) return takeStepsLater(fact, judge, steps.slice(at + 1), exchange, rules)
    const refusal = judge(exchange, rules, fact)
    if (refusal === undefined) continue
    if (isFinal(refusal, exchange, rules)) {
      exchange.kind = 'refused'
      exchange.refusal = refusal
      // Proof of the cast: the lines above.
      return exchange as Admission<GateExchange>
    }
    // With `enforce: false` the limit only notes its refusal, while an `allow` in force refuses. So the refusal of an `allow` on trial
    // tells more than that of the limit, and replaces it.
    if (exchange.wouldRefuse === undefined || refusal.kind === 'insufficient-scope')
      exchange.wouldRefuse = refusal
  }
  if (exchange.classified.ownEndpoint !== undefined) {
    exchange.kind = 'own-endpoint'
    // Proof of the cast: the line above.
    return exchange as Admission<GateExchange>
  }
  exchange.kind = 'forward'
  exchange.signedIn = isSignedIn(exchange, rules)
  // The mark of `Forward` exists only for the compiler. Only this line sets it, after the limit and the token check.
  return exchange as Forward<GateExchange>
}

/** Goes on when the fact for `judge` is known. */
async function takeStepsLater(
  pending: Promise<unknown>,
  judge: Step<unknown>['judge'],
  others: Steps,
  exchange: GateExchange,
  rules: GateRules,
): Promise<Admission<GateExchange>> {
  const fact = await pending
  return takeSteps([{ find: () => fact, judge }, ...others], exchange, rules)
}

/** The client, or all clients together, hold too much memory (C26). There is room again when less is held. */
const OVER_MEMORY: Refusal = { kind: 'overloaded', retryAfter: 1 }

/** The rate-limit fields of a client that counts nowhere are those of a window without a request (C16). */
function unusedWindow({ endpoint }: GateExchange, { limits }: GateRules): LimitDecision {
  const { requests, window } = limits[endpoint]
  return { admitted: true, limit: requests, remaining: requests, closesIn: window }
}

/** The key of a window. Grants, names and clients share one table, so the prefix distinguishes them. */
export function windowKey(per: Per, client: Client, identity: Identity | undefined): string {
  switch (per) {
    case 'device':
      return '*'
    case 'grant':
      return identity?.kind === 'valid' ? `grant ${identity.grant}` : client.key
    case 'name':
      return identity?.kind === 'valid' ? windowOfName(nameOfGrant(identity.grant)) : client.key
    case 'client':
      return client.key
  }
}

/** The policy of the window that decided about a request. */
function policyOf({ per, client, identity }: GateExchange, limit: LimitPolicy): WindowPolicy {
  return limit.own?.get(windowKey(per, client, identity)) ?? limit
}

function keepIdentity(exchange: GateExchange, _rules: GateRules, identity: Identity | undefined): undefined {
  exchange.identity = identity
}

function keepDecision(exchange: GateExchange, _rules: GateRules, decision: LimitDecision): undefined {
  exchange.decision = decision
}

function knownIdentity({ identity }: GateExchange): Identity | undefined {
  return identity
}

/** Refuses a request that is faulty, has no valid token, or that the name of its token may not make. */
function authorize(
  exchange: GateExchange,
  rules: GateRules,
  identity: Identity | undefined,
): Refusal | undefined {
  exchange.identity = identity
  return exchange.classified.fault ?? credentialFault(exchange, rules)
}

function isSignedIn(exchange: JudgedExchange, { findPublic }: GateRules): boolean {
  return exchange.grant !== undefined || readsSignedIn(exchange, findPublic)
}

/** The client of a request. It is kept with the head, beside what `classify` finds. */
function clientIn(head: GateExchange['head'], { clientOf }: GateSettings): Client {
  const client = clientOf(head.peer, head.survey.forwardedFor)
  head.client = client
  return client
}

const ADDRESS_DENIED: Refusal = { kind: 'address-denied' }
const NOT_SIGNED_IN: Refusal = { kind: 'unauthorized', cause: 'missing' }

/**
 * Judges an admitted exchange in flight by the present settings: by each step of the gate but the limit, which counted it at its arrival.
 * Returns the refusal. Undefined if the exchange stays admitted: it then gets the present scope.
 */
export function judgeAnew(exchange: GateExchange, settings: GateSettings): Refusal | undefined {
  const { gate: rules } = settings
  const { head, identity, grant } = exchange
  const classified = classify(head, rules)
  const client = clientIn(head, settings)
  // The record keeps the facts of the arrival.
  const anew: JudgedExchange = {
    head,
    classified,
    client,
    identity,
    grant,
    scope: undefined,
    confined: false,
  }
  if (!client.admitted) return ADDRESS_DENIED
  anew.identity = credentialAnew(anew, rules)
  anew.grant = undefined
  const refusal = classified.fault ?? credentialFault(anew, rules)
  if (refusal !== undefined && isFinal(refusal, anew, rules)) return refusal
  // The request was forwarded with the sidecar's own login, to which it no longer has a right.
  if (exchange.signedIn && !isSignedIn(anew, rules)) return NOT_SIGNED_IN
  // The request was forwarded with fields that its name, or a public path, may no longer send.
  if (anew.confined && !exchange.confined && hasOverride(head.fields))
    return anew.grant === undefined ? NOT_SIGNED_IN : HELD_BACK
  exchange.scope = anew.scope
  return undefined
}

/**
 * Whether a refusal is sent. A gate that only observes forwards a request over the limit or without a valid token. An `allow` on trial
 * forwards what it would refuse. A faulty request, and one to the sidecar's own endpoints, is always refused.
 */
function isFinal(
  { kind }: Refusal,
  { classified, scope }: Pick<JudgedExchange, 'classified' | 'scope'>,
  { enforce }: GateRules,
): boolean {
  if (classified.ownEndpoint !== undefined || classified.fault !== undefined) return true
  if (kind === 'insufficient-scope') return scope?.onTrial !== true
  return enforce || !OBSERVED.has(kind)
}

const OBSERVED: ReadonlySet<Refusal['kind']> = new Set([
  'unauthorized',
  'rate-limited',
  'store-unavailable',
  'cross-origin',
])
