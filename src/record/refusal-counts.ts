import type { Refusal } from '../http/refusal.ts'

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
  'request-timeout': 'request_timeout',
  'expectation-failed': 'expectation_failed',
  'header-too-large': 'header_too_large',
  unauthorized: 'unauthorized',
  'rate-limited': 'rate_limited',
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
