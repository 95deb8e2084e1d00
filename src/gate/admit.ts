import type {
  Client,
  Endpoint,
  GateFacts,
  Identity,
  LimitDecision,
  Per,
  Presented,
} from '../http/admission.ts'
import type { Admission, Exchange, Forward, RequestHead } from '../http/exchange.ts'
import { ietfLimitFields, resetTime, secondsToReset } from '../http/limit-fields.ts'
import type { Refusal } from '../http/refusal.ts'
import type { WindowPolicy, Windows } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import type { RandomBytes } from '../tokens/mint.ts'
import type { Tokens } from '../tokens/token-contract.ts'
import { type ClassifyRules, classify, type FindPublic, readsSignedIn } from './classify.ts'
import { type ClientOf, windowKey } from './client-address.ts'

interface EndpointLimit extends WindowPolicy {
  readonly per: Per
}

export interface GateRules extends ClassifyRules {
  readonly limits: Readonly<Record<Endpoint, EndpointLimit>>
  readonly ietfHeaders: boolean
  readonly findPublic: FindPublic
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
    if (!client.admitted) return refused(exchange, { kind: 'address-denied' })
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
  facts.signedIn = exchange.grant !== undefined || readsSignedIn(exchange, rules.findPublic)
  // The mark of `Forward` exists only for the compiler. Only this line sets it, after the limit and the token check.
  return exchange as Forward
}

/** The sidecar's own endpoints take POST and find the credential in the body. Every other path needs a valid token. */
function credentialFault({ head, classified, identity }: Exchange, rules: GateRules): Refusal | undefined {
  if (classified.ownEndpoint !== undefined)
    return head.method === 'POST' ? undefined : { kind: 'method-not-allowed', allow: 'POST' }
  if (identity?.kind === 'valid' || rules.findPublic(classified.target) !== undefined) return undefined
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

/** Upper bound on a presented token (bytes): longer than any minted one, and it caps the cost of hashing garbage. */
const LONGEST_TOKEN = 512

/**
 * RFC 6750 §2.1, with the scheme in any letter case and one or more spaces (RFC 9110 §11.4). There are no blanks around the
 * value: the HTTP/1 reader strips them, and HTTP/2 forbids them (RFC 9113 §8.2.1).
 */
const BEARER = /^bearer +[A-Za-z0-9\-._~+/]+=*$/i

const BEARER_SCHEME_ONLY = /^bearer *$/i
const BEARER_SCHEME = /^bearer[\t ,]/i

/**
 * Reads the token from the `Authorization` fields. `missing`: the request shows no bearer token, because it has no field, another
 * scheme, or the scheme alone. The challenge then carries no error code (RFC 6750 §3.1).
 */
export function readBearer(fields: readonly string[]): Presented {
  const value = fields[0]
  if (value === undefined) return { kind: 'none', cause: 'missing' }
  if (fields.length > 1) return { kind: 'none', cause: 'malformed' }
  if (BEARER.test(value)) {
    const token = value.slice(value.lastIndexOf(' ') + 1)
    return token.length > LONGEST_TOKEN ? { kind: 'none', cause: 'malformed' } : { kind: 'token', token }
  }
  const shown = BEARER_SCHEME.test(value) && !BEARER_SCHEME_ONLY.test(value)
  return { kind: 'none', cause: shown ? 'malformed' : 'missing' }
}

/** The grant of the token in the `Authorization` fields; a promise if the token store returns one. */
function identifyBearer(
  head: RequestHead,
  client: Pick<Client, 'key'>,
  identify: Tokens['identify'],
): Identity | Promise<Identity> {
  head.presented ??= readBearer(head.survey.authorization)
  const { presented } = head
  return presented.kind === 'token'
    ? identify(presented.token, client.key)
    : { kind: 'refused', cause: presented.cause }
}

/** How many ids are generated at once. */
const BATCH = 64
/** The size of an id (bytes): with 128 random bits a collision is practically impossible. */
const BYTES = 16
const DIGITS = 2 * BYTES

/** An id of a client is kept up to this length. */
export const LONGEST_ID = 128
/** Short visible ASCII: other characters could forge log lines in the programs behind the sidecar. */
const WELL_FORMED = new RegExp(`^[\\w.:/+=@-]{1,${LONGEST_ID}}$`)

/**
 * The id of one request (C22). It stands in the access log, and as `X-Request-Id` in the request to the device and in the
 * sidecar's own responses. The id of a trusted peer is kept if it is a single well-formed value, so that the logs of both can be
 * joined. Otherwise `mint` creates one.
 */
export function requestIdOf(presented: readonly string[], peerTrusted: boolean, mint: () => string): string {
  const [id] = presented
  const kept = peerTrusted && presented.length === 1 && id !== undefined && WELL_FORMED.test(id)
  return kept ? id : mint()
}

/**
 * Each call of the returned function gives a new request id: 32 hexadecimal digits, a slice of the text of a batch. A UUID costs
 * five times as much, because it is concatenated digit by digit and flattened again when it is sent.
 */
export function createRequestIds(random: RandomBytes): () => string {
  let digits = ''
  let used = 0
  return () => {
    if (used === digits.length) {
      digits = random(BATCH * BYTES).toString('hex')
      used = 0
    }
    used += DIGITS
    return digits.slice(used - DIGITS, used)
  }
}
