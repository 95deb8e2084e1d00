import type {
  Admission,
  Endpoint,
  Forward,
  Identity,
  LimitDecision,
  Per,
  Refused,
} from '../http/admission.ts'
import { DeviceTrace } from '../http/device-trace.ts'
import type { RequestHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { Refusal } from '../http/refusal.ts'
import { ietfLimitFields, limitFields, secondsToReset } from '../limits/limit-fields.ts'
import type { WindowPolicy, Windows } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { identifyBearer } from './bearer.ts'
import { type Classified, type ClassifyRules, classify } from './classify.ts'
import { type Client, type ClientOf, windowKey } from './client-address.ts'
import type { IsPublic } from './public-paths.ts'
import { requestIdOf } from './request-id.ts'

interface EndpointLimit extends WindowPolicy {
  readonly per: Per
}

export interface GateSettings extends ClassifyRules {
  readonly limits: Readonly<Record<Endpoint, EndpointLimit>>
  readonly ietfHeaders: boolean
  readonly isPublic: IsPublic
  /** False: the gate only observes. It forwards requests that exceed the limit or lack a valid token, and records them. */
  readonly enforce: boolean
}

export interface GateDependencies {
  readonly clock: Clock
  readonly tables: Readonly<Record<Endpoint, Windows>>
  readonly clientOf: ClientOf
  readonly identify: Tokens['identify']
  readonly newRequestId: () => string
  readonly settings: () => GateSettings
}

/** A value, or a promise of it if another process provides it. */
type Later<T> = T | Promise<T>

/** Decides whether a request is admitted. Returns a promise only if the token lookup or the rate-limit table returns one. */
export type Admit = (head: RequestHead) => Later<Admission>

/** A classified request, and the settings at its arrival. A reload does not change them for this request. */
interface GateRequest {
  readonly head: RequestHead
  readonly classified: Classified
  readonly client: Client
  readonly rules: GateSettings
  /** Set if the limit counts by grant and so needs the grant first. */
  readonly identity: Identity | undefined
}

/**
 * The gate: classify, limit, identify, authorize, in this order.
 *
 * - The limit comes before every refusal of the gate, so each request that reaches the gate counts (C13), and before any body
 *   is read (C15). The HTTP/1 intake refuses a head that is too large or whose end is uncertain: it counts in no window.
 * - Identify comes after the limit, so that a flood costs no token hashes. If the limit counts by grant, identify comes before
 *   the limit. It refuses nothing.
 */
export function createGate({
  clock,
  tables,
  clientOf,
  identify,
  newRequestId,
  settings,
}: GateDependencies): Admit {
  function admit(head: RequestHead): Later<Admission> {
    const rules = settings()
    const classified = classify(head, rules)
    const client = clientOf(head.peer, head.survey.forwardedFor)
    const incoming: GateRequest = { head, classified, client, rules, identity: undefined }
    if (rules.limits[classified.endpoint].per !== 'grant') return limit(incoming)
    const known = identifyBearer(head, client, identify)
    return known instanceof Promise ? later(incoming, known, limitKnown) : limitKnown(incoming, known)
  }

  function limitKnown(incoming: GateRequest, identity: Identity): Later<Admission> {
    return limit({ ...incoming, identity })
  }

  function limit(incoming: GateRequest): Later<Admission> {
    const { classified, client, rules, identity } = incoming
    const { endpoint } = classified
    const decision = tables[endpoint].count(windowKey(rules.limits[endpoint].per, client, identity))
    return decision instanceof Promise ? later(incoming, decision, judge) : judge(incoming, decision)
  }

  function judge(incoming: GateRequest, decision: LimitDecision): Later<Admission> {
    const { head, classified, client, rules, identity } = incoming
    const { endpoint, ownEndpoint, framing } = classified
    const common = {
      requestId: requestIdOf(head.survey.requestId, client.peerTrusted, newRequestId),
      endpoint,
      ownEndpoint,
      client: client.address,
      peerTrusted: client.peerTrusted,
      per: rules.limits[endpoint].per,
      decision,
      limitFields: fieldsFor(endpoint, decision, rules),
      framing,
    }
    const limited = decision.admitted ? undefined : rateLimited(decision)
    if (limited !== undefined && isFinal(limited, classified, rules))
      return refused(common, identity, limited, classified)
    const counted = { incoming, common, limited }
    // The endpoints of the sidecar ignore `Authorization`.
    const known = identity ?? (ownEndpoint === undefined ? identifyBearer(head, client, identify) : undefined)
    return known instanceof Promise ? later(counted, known, authorize) : authorize(counted, known)
  }

  function fieldsFor(endpoint: Endpoint, decision: LimitDecision, rules: GateSettings): Fields {
    const fields = limitFields(decision, clock.wall())
    if (!rules.ietfHeaders) return fields
    return [...fields, ...ietfLimitFields(endpoint, decision, rules.limits[endpoint])]
  }

  return admit
}

/**
 * Continues with `step` when the promise is fulfilled. It is a function of its own because V8 allocates a context on every call
 * of a function whose variables a closure captures, even if the call never creates the closure.
 */
function later<S, T>(
  state: S,
  pending: Promise<T>,
  step: (state: S, value: T) => Later<Admission>,
): Promise<Admission> {
  return pending.then((value) => step(state, value))
}

/** A request that counts in its window. */
interface CountedRequest {
  readonly incoming: GateRequest
  readonly common: CommonFacts
  /** Set if the limit is exceeded and the gate only observes. */
  readonly limited: Refusal | undefined
}

/** The last step. Refuses a request that exceeds the limit, is faulty or has no valid token, and admits every other one. */
function authorize({ incoming, common, limited }: CountedRequest, identity: Identity | undefined): Admission {
  const { classified, rules } = incoming
  const refusal = limited ?? classified.fault ?? credentialFault(incoming, identity)
  if (refusal !== undefined && isFinal(refusal, classified, rules))
    return refused(common, identity, refusal, classified)
  if (classified.ownEndpoint !== undefined)
    return { ...common, identity, kind: 'own-endpoint', ownEndpoint: classified.ownEndpoint }
  return forward(common, classified, identity, refusal)
}

/** The sidecar's own endpoints take POST and find the credential in the body. Every other path needs a valid token. */
function credentialFault(
  { head, classified, rules }: GateRequest,
  identity: Identity | undefined,
): Refusal | undefined {
  if (classified.ownEndpoint !== undefined) {
    return head.method === 'POST' ? undefined : { kind: 'method-not-allowed', allow: 'POST' }
  }
  if (identity?.kind === 'valid' || rules.isPublic(classified.target)) return undefined
  if (identity?.kind === 'unavailable') return { kind: 'store-unavailable' }
  return { kind: 'unauthorized', cause: identity?.cause ?? 'missing' }
}

function rateLimited(decision: LimitDecision): Refusal {
  return { kind: 'rate-limited', retryAfter: secondsToReset(decision) }
}

/**
 * Whether a refusal is sent. A gate that only observes also forwards requests that exceed the limit or have no valid token. It
 * never forwards a faulty request, nor one to the sidecar's own endpoints.
 */
function isFinal(refusal: Refusal, classified: Classified, { enforce }: GateSettings): boolean {
  if (enforce || classified.ownEndpoint !== undefined || classified.fault !== undefined) return true
  return (
    refusal.kind !== 'unauthorized' && refusal.kind !== 'rate-limited' && refusal.kind !== 'store-unavailable'
  )
}

/** The properties of every admission. They are copied one by one: a spread would make V8 extend the object several times. */
type CommonFacts = Omit<Refused, 'kind' | 'identity' | 'refusal' | 'close'>

/** The connection of an ambiguous request closes: its next bytes could belong to this request or to another one. */
function refused(
  common: CommonFacts,
  identity: Identity | undefined,
  refusal: Refusal,
  { ambiguous }: Classified,
): Admission {
  const { requestId, endpoint, ownEndpoint, client, peerTrusted, per, decision, limitFields, framing } =
    common
  return {
    requestId,
    endpoint,
    ownEndpoint,
    client,
    peerTrusted,
    per,
    decision,
    limitFields,
    framing,
    identity,
    kind: 'refused',
    refusal,
    close: ambiguous,
  }
}

function forward(
  common: CommonFacts,
  classified: Classified,
  identity: Identity | undefined,
  wouldRefuse: Refusal | undefined,
): Admission {
  const { requestId, endpoint, ownEndpoint, client, peerTrusted, per, decision, limitFields, framing } =
    common
  const admission = {
    requestId,
    endpoint,
    ownEndpoint,
    client,
    peerTrusted,
    per,
    decision,
    limitFields,
    framing,
    kind: 'forward' as const,
    identity,
    grant: identity?.kind === 'valid' ? identity.grant : undefined,
    wouldRefuse,
    trace: new DeviceTrace(),
    target: classified.target,
    host: classified.host,
  }
  // The brand of `Forward` exists only for the compiler. Only this function sets it, after the limit and the token check.
  return admission as unknown as Forward
}
