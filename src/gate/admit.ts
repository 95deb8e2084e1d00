import type { Admission, Endpoint, Forward, TokenRequest } from '../http/admission.ts'
import type { RequestHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { AuthFailure, Refusal } from '../http/refusal.ts'
import { ietfLimitFields, limitFields, secondsToReset } from '../limits/limit-fields.ts'
import type { LimitDecision, WindowPolicy, Windows } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { readBearer } from './bearer.ts'
import { type Classified, type ClassifyRules, classify } from './classify.ts'
import type { Client, ClientOf } from './client-address.ts'
import type { IsPublic } from './public-paths.ts'
import { requestIdOf } from './request-id.ts'

/** Which requests share a window: those of one client, of one grant, or all (C17). */
export type Per = 'client' | 'grant' | 'device'

interface EndpointLimit extends WindowPolicy {
  readonly per: Per
}

export interface GateSettings extends ClassifyRules {
  readonly limits: Readonly<Record<Endpoint, EndpointLimit>>
  readonly ietfHeaders: boolean
  readonly isPublic: IsPublic
  /** False: the gate only observes. It forwards and records what it would refuse for its token or its rate. */
  readonly enforce: boolean
}

export interface GateDependencies {
  readonly clock: Clock
  readonly tables: Readonly<Record<Endpoint, Windows>>
  readonly clientOf: ClientOf
  readonly identify: Identify
  readonly newRequestId: () => string
  readonly settings: () => GateSettings
}

type Identify = Tokens['identify']

/** The grant of a request's token, or why the token is refused. */
type Identified =
  | { readonly kind: 'valid'; readonly grant: string }
  | { readonly kind: 'refused'; readonly cause: AuthFailure }

/** A value that is there at once, or a promise if another process has to be asked. */
type Later<T> = T | Promise<T>

/** Decides about a request. Returns a promise only if the token lookup or the rate-limit table does. */
export type Admit = (head: RequestHead) => Later<Admission>

/** A classified request, and the settings at its arrival, by which it is judged. */
interface Asked {
  readonly head: RequestHead
  readonly request: Classified
  readonly client: Client
  readonly now: GateSettings
  /** Set if the limit counts by grant and so needs the grant first. */
  readonly who: Identified | undefined
}

/**
 * The gate: classify, identify, limit, authorize, in this order.
 *
 * - Identify refuses nothing. It comes before the limit only if the limit counts by grant; otherwise it comes after, so that a
 *   flood costs no token hash.
 * - The limit comes before every refusal, so each request counts (C13), and before any body is read (C15).
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
    const now = settings()
    const request = classify(head, now)
    const client = clientOf(head.peer, head.survey.forwardedFor)
    const asked: Asked = { head, request, client, now, who: undefined }
    if (now.limits[request.endpoint].per !== 'grant') return limit(asked)
    const known = identifyBearer(head.survey.authorization, identify)
    return known instanceof Promise ? later(asked, known, limitKnown) : limitKnown(asked, known)
  }

  function limitKnown(asked: Asked, who: Identified): Later<Admission> {
    return limit({ ...asked, who })
  }

  function limit(asked: Asked): Later<Admission> {
    const { request, client, now, who } = asked
    const { endpoint } = request
    const decision = tables[endpoint].count(windowKey(now.limits[endpoint].per, client, who))
    return decision instanceof Promise ? later(asked, decision, judge) : judge(asked, decision)
  }

  function judge(asked: Asked, decision: LimitDecision): Later<Admission> {
    const { head, request, client, now, who } = asked
    const { endpoint, framing } = request
    const passed = {
      requestId: requestIdOf(head.survey.requestId, client.peerTrusted, newRequestId),
      endpoint,
      client: client.address,
      limitFields: fieldsFor(endpoint, decision, now),
      framing,
    }
    const limited = decision.admitted ? undefined : rateLimited(decision)
    if (limited !== undefined && isFinal(limited, request, now)) return refused(passed, limited, request)
    const counted = { asked, passed, limited }
    const known = who ?? identifyBearer(head.survey.authorization, identify)
    return known instanceof Promise ? later(counted, known, authorize) : authorize(counted, known)
  }

  function fieldsFor(
    endpoint: Endpoint,
    decision: LimitDecision,
    { limits, ietfHeaders }: GateSettings,
  ): Fields {
    const fields = limitFields(decision, clock.wall())
    return ietfHeaders ? [...fields, ...ietfLimitFields(endpoint, decision, limits[endpoint])] : fields
  }

  return admit
}

/**
 * Continues with `step` when the promise is fulfilled. It stands apart from the steps because V8 allocates a context on every
 * call of a function whose variables a closure captures, even if the closure is never made.
 */
function later<S, T>(
  state: S,
  pending: Promise<T>,
  step: (state: S, value: T) => Later<Admission>,
): Promise<Admission> {
  return pending.then((value) => step(state, value))
}

function identifyBearer(authorization: readonly string[], identify: Identify): Later<Identified> {
  const presented = readBearer(authorization)
  return presented.kind === 'token' ? identify(presented.token) : { kind: 'refused', cause: presented.cause }
}

/** The key of a window. Grants and clients share one table; the prefix keeps a grant's id apart from every address. */
function windowKey(per: Per, client: Client, who: Identified | undefined): string {
  switch (per) {
    case 'device':
      return '*'
    case 'grant':
      return who?.kind === 'valid' ? `grant ${who.grant}` : client.key
    case 'client':
      return client.key
  }
}

/** A request that the limit has counted. */
interface Counted {
  readonly asked: Asked
  readonly passed: Passed
  /** Set if the limit is exceeded and the gate only observes. */
  readonly limited: Refusal | undefined
}

/** The last step: refuses a request for the limit, for its own fault or for its token, and admits every other one. */
function authorize({ asked, passed, limited }: Counted, who: Identified): Admission {
  const { request, client, now } = asked
  const refusal = limited ?? request.fault ?? credentialFault(asked, who)
  if (refusal !== undefined && isFinal(refusal, request, now)) return refused(passed, refusal, request)
  if (request.ownEndpoint !== undefined)
    return { ...passed, kind: 'token-endpoint', ownEndpoint: request.ownEndpoint }
  return forward(passed, request, who, client, refusal)
}

/** The sidecar's own endpoints take POST and find the credential in the body. Every other path needs a valid token. */
function credentialFault({ head, request, now }: Asked, who: Identified): Refusal | undefined {
  if (request.ownEndpoint !== undefined) {
    return head.method === 'POST' ? undefined : { kind: 'method-not-allowed', allow: 'POST' }
  }
  if (who.kind === 'valid' || now.isPublic(request.target)) return undefined
  return { kind: 'unauthorized', cause: who.cause }
}

function rateLimited(decision: LimitDecision): Refusal {
  return { kind: 'rate-limited', retryAfter: secondsToReset(decision) }
}

/**
 * Whether a refusal is sent. A gate that only observes forwards a request to the device despite its token or its rate, but
 * never a malformed request, nor one to the sidecar's own endpoints.
 */
function isFinal(refusal: Refusal, request: Classified, { enforce }: GateSettings): boolean {
  if (enforce || request.ownEndpoint !== undefined || request.fault !== undefined) return true
  return refusal.kind !== 'unauthorized' && refusal.kind !== 'rate-limited'
}

/** What every admission knows. */
type Passed = Omit<TokenRequest, 'kind' | 'ownEndpoint'>

/** Closes the connection behind an ambiguous request. */
function refused(passed: Passed, refusal: Refusal, { ambiguous }: Classified): Admission {
  return { ...passed, kind: 'refused', refusal, close: ambiguous }
}

function forward(
  passed: Passed,
  request: Classified,
  who: Identified,
  client: Client,
  wouldRefuse: Refusal | undefined,
): Admission {
  const admission = {
    ...passed,
    kind: 'forward' as const,
    grant: who.kind === 'valid' ? who.grant : undefined,
    wouldRefuse,
    peerTrusted: client.peerTrusted,
    target: request.target,
    host: request.host,
  }
  // The brand of `Forward` exists only for the compiler. This function alone gives it, after the limit and the token check.
  return admission as unknown as Forward
}
