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
  readonly settings: () => GateSettings
}

/** Whom the token of a request stands for. */
export type Identified =
  | { readonly kind: 'valid'; readonly grant: string }
  | { readonly kind: 'refused'; readonly cause: AuthFailure }

export type Admit = (head: RequestHead) => Admission

/** Looks the shown token up, once, when somebody wants to know. */
type Identify = () => Identified

/**
 * The gate: classify, limit, authorize, in this order and nowhere else. Whose token was shown is looked up as soon as
 * it matters: for a limit that counts by grant, otherwise behind it, so that a flood past it costs no hash. That refuses
 * nothing by itself. The limit comes before every refusal, so that each request counts, whatever becomes of it (C13),
 * and before any body is read (C15).
 */
export function createGate({ clock, tables, clientOf, identify, settings }: GateDependencies): Admit {
  function count(endpoint: Endpoint, client: Client, who: Identify, { limits }: GateSettings): Verdict {
    const { per } = limits[endpoint]
    return tables[endpoint].count(windowKey(per, client, who))
  }

  function fieldsFor(endpoint: Endpoint, verdict: Verdict, { limits, ietfHeaders }: GateSettings): Fields {
    const fields = limitFields(verdict, clock)
    return ietfHeaders ? [...fields, ...ietfLimitFields(endpoint, verdict, limits[endpoint], clock)] : fields
  }

  return function admit(head) {
    const now = settings()
    const survey = surveyFields(head.fields)
    const request = classify(head, survey, now)
    const client = clientOf(head.peer, survey.forwardedFor)
    let identified: Identified | undefined
    const who: Identify = () => {
      identified ??= identifyBearer(survey.authorization, identify)
      return identified
    }
    const verdict = count(request.endpoint, client, who, now)
    const passed = {
      endpoint: request.endpoint,
      client: client.address,
      limitFields: fieldsFor(request.endpoint, verdict, now),
      framing: request.framing,
    }

    const refusal = verdict.admitted
      ? (request.fault ?? authorize(head, request, who, now))
      : ({ kind: 'rate-limited', retryAfter: secondsToReset(verdict, clock) } as const)
    if (refusal !== undefined && (now.enforce || !isPolicy(refusal, request))) {
      return { ...passed, kind: 'refused', refusal, close: request.fault?.kind === 'malformed' }
    }
    if (request.service !== undefined) return { ...passed, kind: 'token-endpoint', service: request.service }
    return forward(passed, request, who(), client, refusal)
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
function windowKey(per: Per, client: Client, who: Identify): string {
  switch (per) {
    case 'device':
      return '*'
    case 'grant': {
      const identified = who()
      return identified.kind === 'valid' ? `grant ${identified.grant}` : client.key
    }
    case 'client':
      return client.key
  }
}

/** The token endpoint takes the credential in the body, and only by POST; everything else needs a live token. */
function authorize(
  head: RequestHead,
  request: Classified,
  who: Identify,
  { isPublic }: GateSettings,
): Refusal | undefined {
  if (request.service !== undefined) {
    return head.method === 'POST' ? undefined : { kind: 'method-not-allowed', allow: 'POST' }
  }
  const identified = who()
  if (identified.kind === 'valid' || isPublic(request.target)) return undefined
  return { kind: 'unauthorized', cause: identified.cause }
}

/**
 * Whether observing may let this through: a matter of tokens or rates towards the device. What is malformed, or meant
 * for the sidecar itself, is never waved through.
 */
function isPolicy(refusal: Refusal, request: Classified): boolean {
  if (request.service !== undefined || request.fault !== undefined) return false
  return refusal.kind === 'unauthorized' || refusal.kind === 'rate-limited'
}

function forward(
  passed: Omit<TokenRequest, 'kind' | 'service'>,
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
