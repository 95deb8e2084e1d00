import { STATUS_CODES } from 'node:http'
import type { Refusal } from '../http/refusal.ts'
import type { Series } from './histogram.ts'

/** Sums since the start, to be read at any time at no cost. The arrays and the record are live: they go on counting. */
export interface Totals {
  /** Ended requests by duration, of each endpoint type. The buckets are those of `BOUNDS`. */
  readonly requests: readonly Series['counts'][]
  /** The device's response heads by duration. */
  readonly device: Series['counts']
  readonly refusals: Readonly<Record<RefusalReason, number>>
  /** Ended requests with a status of 500 and above, the device's or Postern's own. */
  readonly serverErrors: number
  /** At present. */
  readonly connections: number
  readonly tunnels: number
}

type Labels = readonly [endpoint: string, method: string, code: string]

/** Counts requests without building a key from their labels. The registry gets the sums on each scrape. */
export interface Tally {
  add(endpoint: string, method: string, status: number): void
  /** Passes on the counts since the last call. */
  drain(take: (labels: Labels, amount: number) => void): void
}

/** The methods that are counted by name; all others are `other`, so that clients cannot create series. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

type Counts = Map<number, number>

export function createTally(): Tally {
  const byEndpoint = new Map<
    string,
    { readonly named: ReadonlyMap<string, Counts>; readonly other: Counts }
  >()

  function open(endpoint: string) {
    const opened = { named: new Map(METHODS.map((method) => [method, new Map()])), other: new Map() }
    byEndpoint.set(endpoint, opened)
    return opened
  }

  return {
    add(endpoint, method, status) {
      const { named, other } = byEndpoint.get(endpoint) ?? open(endpoint)
      const counts: Counts = named.get(method) ?? other
      counts.set(status, (counts.get(status) ?? 0) + 1)
    },
    drain(take) {
      for (const [endpoint, { named, other }] of byEndpoint)
        for (const [method, counts] of [...named, ['other', other] as const]) {
          for (const [status, amount] of counts) take([endpoint, method, codeLabel(status)], amount)
          counts.clear()
        }
    },
  }
}

/** A registered status by number, `other` for an unregistered one, `none` for no response (the client left). */
function codeLabel(status: number): string {
  if (status === 0) return 'none'
  return STATUS_CODES[status] === undefined ? 'other' : String(status)
}

/** Passes on the counts since the last call. Counting in the registry is slower, because it looks up the labels. */
export function drain<K extends string>(
  counts: Record<K, number>,
  take: (label: K, amount: number) => void,
): void {
  for (const label in counts) {
    take(label, counts[label])
    counts[label] = 0
  }
}

type Underscored<Kind extends string> = Kind extends `${infer Head}-${infer Tail}`
  ? `${Head}_${Underscored<Tail>}`
  : Kind

/** A value of the `reason` label of `postern_refusals_total`: a kind of refusal, with underscores. */
export type RefusalReason = Underscored<Refusal['kind']>

/** The compiler demands that each kind of refusal is here, with its own name. */
const REASONS: { readonly [Kind in Refusal['kind']]: Underscored<Kind> } = {
  malformed: 'malformed',
  'invalid-request': 'invalid_request',
  'invalid-grant': 'invalid_grant',
  'unsupported-grant-type': 'unsupported_grant_type',
  'method-not-allowed': 'method_not_allowed',
  'unsupported-media-type': 'unsupported_media_type',
  'content-too-large': 'content_too_large',
  'length-required': 'length_required',
  'request-timeout': 'request_timeout',
  'expectation-failed': 'expectation_failed',
  'header-too-large': 'header_too_large',
  unauthorized: 'unauthorized',
  'cross-origin': 'cross_origin',
  'insufficient-scope': 'insufficient_scope',
  'rate-limited': 'rate_limited',
  'wrong-passwords': 'wrong_passwords',
  'address-denied': 'address_denied',
  overloaded: 'overloaded',
  upstream: 'upstream',
  'store-unavailable': 'store_unavailable',
  'server-error': 'server_error',
}

export const REFUSAL_REASONS: readonly RefusalReason[] = Object.values(REASONS)

/** Counts refusals since the start. */
export interface RefusalCounts {
  /** Has every reason from the start, and goes on counting. */
  readonly counts: Readonly<Record<RefusalReason, number>>
  add(refusal: Refusal): void
}

export function createRefusalCounts(): RefusalCounts {
  // Proof of the cast: the keys are all reasons.
  const counts = Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, 0])) as Record<
    RefusalReason,
    number
  >
  return {
    counts,
    add({ kind }) {
      counts[REASONS[kind]] += 1
    },
  }
}
