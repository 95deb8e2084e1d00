import type { Admission, Endpoint, Forward, TokenRequest } from '../http/admission.ts'
import type { RequestHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { AuthFailure, Refusal } from '../http/refusal.ts'
import { ietfLimitFields, limitFields, secondsToReset } from '../limits/limit-fields.ts'
import type { Verdict, WindowPolicy, Windows } from '../limits/window.ts'
import type { Clock } from '../system/clock.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { readBearer } from './bearer.ts'
import { type Classified, type ClassifyRules, classify } from './classify.ts'
import type { Client, ClientOf } from './client-address.ts'
import type { IsPublic } from './public-paths.ts'
import { requestIdOf } from './request-id.ts'

/** Whose requests share a window (C17). */
export type Per = 'client' | 'grant' | 'device'

interface EndpointLimit extends WindowPolicy {
  readonly per: Per
}

export interface GateSettings extends ClassifyRules {
  readonly limits: Readonly<Record<Endpoint, EndpointLimit>>
  readonly ietfHeaders: boolean
  readonly isPublic: IsPublic
  /** False to let through, and only record, what would be refused for its token or its rate. */
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

/** Whom the token of a request stands for. */
type Identified =
  | { readonly kind: 'valid'; readonly grant: string }
  | { readonly kind: 'refused'; readonly cause: AuthFailure }

/** What may have to be asked elsewhere: a promise only then. */
type Later<T> = T | Promise<T>

/** Decides about a request. Gives a promise only where the tokens or the windows give one. */
export type Admit = (head: RequestHead) => Later<Admission>

/** A request that is classified, and what it is held against: the settings of the moment at which it came. */
interface Asked {
  readonly head: RequestHead
  readonly request: Classified
  readonly client: Client
  readonly now: GateSettings
  /** Set where the limit counts by grant, and so has to know it first. */
  readonly who: Identified | undefined
}

/**
 * The gate: classify, identify, limit, authorize, in this order and nowhere else; each step takes what the one before it
 * gives. Identifying refuses nothing; it only lets the limit count by grant, and where that is not how it counts it waits
 * until the limit has let the request through, so that a flood costs no hash. The limit comes before every refusal, so that
 * each request counts, whatever becomes of it (C13), and before any body is read (C15).
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
    const verdict = tables[endpoint].count(windowKey(now.limits[endpoint].per, client, who))
    return verdict instanceof Promise ? later(asked, verdict, judge) : judge(asked, verdict)
  }

  function judge(asked: Asked, verdict: Verdict): Later<Admission> {
    const { head, request, client, now, who } = asked
    const { endpoint, framing } = request
    const passed = {
      requestId: requestIdOf(head.survey.requestId, client.peerTrusted, newRequestId),
      endpoint,
      client: client.address,
      limitFields: fieldsFor(endpoint, verdict, now),
      framing,
    }
    const limited = verdict.admitted ? undefined : rateLimited(verdict)
    if (limited !== undefined && isFinal(limited, request, now)) return refused(passed, limited, request)
    const counted = { asked, passed, limited }
    const known = who ?? identifyBearer(head.survey.authorization, identify)
    return known instanceof Promise ? later(counted, known, authorize) : authorize(counted, known)
  }

  function fieldsFor(endpoint: Endpoint, verdict: Verdict, { limits, ietfHeaders }: GateSettings): Fields {
    const fields = limitFields(verdict, clock.wall())
    return ietfHeaders ? [...fields, ...ietfLimitFields(endpoint, verdict, limits[endpoint])] : fields
  }

  return admit
}

/**
 * Takes the next step when the answer from elsewhere is there. Apart from the steps, because a function that contains a
 * closure makes room for it with every call.
 */
function later<S, T>(
  state: S,
  answer: Promise<T>,
  step: (state: S, answer: T) => Later<Admission>,
): Promise<Admission> {
  return answer.then((known) => step(state, known))
}

function identifyBearer(authorization: readonly string[], identify: Identify): Later<Identified> {
  const presented = readBearer(authorization)
  return presented.kind === 'token' ? identify(presented.token) : { kind: 'refused', cause: presented.cause }
}

/** Grants and clients live in one table; the prefix keeps a grant's id from ever being a client's address. */
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
  /** Set past the limit, where the gate only observes. */
  readonly limited: Refusal | undefined
}

/** The last step: what is refused for the limit, for itself or for its token is, and everything else may go on. */
function authorize({ asked, passed, limited }: Counted, who: Identified): Admission {
  const { request, client, now } = asked
  const refusal = limited ?? request.fault ?? credentialFault(asked, who)
  if (refusal !== undefined && isFinal(refusal, request, now)) return refused(passed, refusal, request)
  if (request.service !== undefined) return { ...passed, kind: 'token-endpoint', service: request.service }
  return forward(passed, request, who, client, refusal)
}

/** The token endpoint takes the credential in the body, and only by POST; everything else needs a live token. */
function credentialFault({ head, request, now }: Asked, who: Identified): Refusal | undefined {
  if (request.service !== undefined) {
    return head.method === 'POST' ? undefined : { kind: 'method-not-allowed', allow: 'POST' }
  }
  if (who.kind === 'valid' || now.isPublic(request.target)) return undefined
  return { kind: 'unauthorized', cause: who.cause }
}

function rateLimited(verdict: Verdict): Refusal {
  return { kind: 'rate-limited', retryAfter: secondsToReset(verdict) }
}

/**
 * Whether a refusal stands. Observing lets through what is a matter of tokens or rates towards the device; what is
 * malformed, or meant for the sidecar itself, is never waved through.
 */
function isFinal(refusal: Refusal, request: Classified, { enforce }: GateSettings): boolean {
  if (enforce || request.service !== undefined || request.fault !== undefined) return true
  return refusal.kind !== 'unauthorized' && refusal.kind !== 'rate-limited'
}

/** What every admission knows. */
type Passed = Omit<TokenRequest, 'kind' | 'service'>

/** Closes the connection where two readers could disagree about the request: they would about the next one, too. */
function refused(passed: Passed, refusal: Refusal, { fault }: Classified): Admission {
  const close = fault?.kind === 'malformed' || fault?.kind === 'method-not-allowed'
  return { ...passed, kind: 'refused', refusal, close }
}

function forward(
  passed: Passed,
  request: Classified,
  who: Identified,
  client: Client,
  wouldRefuse: Refusal | undefined,
): Admission {
  const leave = {
    ...passed,
    kind: 'forward' as const,
    grant: who.kind === 'valid' ? who.grant : undefined,
    wouldRefuse,
    peerTrusted: client.peerTrusted,
    target: request.target,
    host: request.host,
  }
  // The brand exists for the compiler only; this function, reached past the limit and the token check, is where it is given.
  return leave as unknown as Forward
}
