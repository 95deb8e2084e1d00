import type { Admission, Endpoint, Forward, TokenRequest } from '../http/admission.ts'
import type { Clock } from '../http/clock.ts'
import type { RequestHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { AuthFailure, Refusal } from '../http/refusal.ts'
import { ietfLimitFields, limitFields, secondsToReset } from '../limits/limit-fields.ts'
import type { Verdict, WindowPolicy } from '../limits/window.ts'
import type { WindowTable } from '../limits/window-table.ts'
import { readBearer } from './bearer.ts'
import { type Classified, type ClassifyRules, classify } from './classify.ts'
import type { Client } from './client-address.ts'
import type { IsPublic } from './public-paths.ts'
import { requestIdOf } from './request-id.ts'
import { surveyFields } from './survey.ts'

/** Whose requests share a window (C17). */
export type Per = 'client' | 'grant' | 'device'

export interface EndpointLimit extends WindowPolicy {
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
  readonly tables: Readonly<Record<Endpoint, WindowTable>>
  readonly clientOf: (peer: string, forwardedFor: readonly string[]) => Client
  readonly identify: (token: string) => Identified
  readonly newRequestId: () => string
  readonly settings: () => GateSettings
}

/** Whom the token of a request stands for. */
export type Identified =
  | { readonly kind: 'valid'; readonly grant: string }
  | { readonly kind: 'refused'; readonly cause: AuthFailure }

export type Admit = (head: RequestHead) => Admission

/**
 * The gate: classify, identify, limit, authorize, in this order and nowhere else. Identifying refuses nothing; it
 * only lets the limit count by grant, and where that is not how it counts it waits until the limit has let the request
 * through, so that a flood costs no hash. The limit comes before every refusal, so that each request counts, whatever
 * becomes of it (C13), and before any body is read (C15).
 */
export function createGate({
  clock,
  tables,
  clientOf,
  identify,
  newRequestId,
  settings,
}: GateDependencies): Admit {
  function fieldsFor(endpoint: Endpoint, verdict: Verdict, { limits, ietfHeaders }: GateSettings): Fields {
    const fields = limitFields(verdict, clock.wall())
    return ietfHeaders ? [...fields, ...ietfLimitFields(endpoint, verdict, limits[endpoint])] : fields
  }

  return function admit(head) {
    const now = settings()
    const survey = surveyFields(head.fields)
    const request = classify(head, survey, now)
    const client = clientOf(head.peer, survey.forwardedFor)
    const { per } = now.limits[request.endpoint]
    const counted = per === 'grant' ? identifyBearer(survey.authorization, identify) : undefined
    const verdict = tables[request.endpoint].count(windowKey(per, client, counted))
    const passed = {
      requestId: requestIdOf(survey.requestId, client.peerTrusted, newRequestId),
      endpoint: request.endpoint,
      client: client.address,
      limitFields: fieldsFor(request.endpoint, verdict, now),
      framing: request.framing,
    }

    const limited = verdict.admitted ? undefined : rateLimited(verdict)
    if (limited !== undefined && isFinal(limited, request, now)) return refused(passed, limited, request)

    const who = counted ?? identifyBearer(survey.authorization, identify)
    const refusal = limited ?? request.fault ?? authorize(head, request, who, now)
    if (refusal !== undefined && isFinal(refusal, request, now)) return refused(passed, refusal, request)
    if (request.service !== undefined) return { ...passed, kind: 'token-endpoint', service: request.service }
    return forward(passed, request, who, client, refusal)
  }
}

function identifyBearer(
  authorization: readonly string[],
  identify: (token: string) => Identified,
): Identified {
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

/** The token endpoint takes the credential in the body, and only by POST; everything else needs a live token. */
function authorize(
  head: RequestHead,
  request: Classified,
  who: Identified,
  { isPublic }: GateSettings,
): Refusal | undefined {
  if (request.service !== undefined) {
    return head.method === 'POST' ? undefined : { kind: 'method-not-allowed', allow: 'POST' }
  }
  if (who.kind === 'valid' || isPublic(request.target)) return undefined
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
