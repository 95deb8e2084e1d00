import type { Endpoint, LimitDecision } from '../http/admission.ts'
import type { Fields } from '../http/fields.ts'
import type { WindowPolicy } from './window-table.ts'

/** Fields that the sidecar sets. They replace those of the device (C16). */
export const LIMIT_FIELD_NAMES: readonly string[] = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]

/** The fields of draft-ietf-httpapi-ratelimit-headers. They replace those of the device where they are switched on. */
export const IETF_FIELD_NAMES: readonly string[] = ['ratelimit', 'ratelimit-policy']

/**
 * The rate-limit fields of every response. `X-RateLimit-Reset` is Unix time in whole seconds, rounded up, so that a client that
 * waits until then is never early. The window closes by the monotonic clock; the wall clock only serves to print that time.
 *
 * @param now on the wall clock (ms)
 */
export function limitFields(decision: LimitDecision, now: number): Fields {
  const resetAt = now + decision.closesIn
  return [
    'X-RateLimit-Limit',
    String(decision.limit),
    'X-RateLimit-Remaining',
    String(decision.remaining),
    'X-RateLimit-Reset',
    String(Math.ceil(resetAt / 1000)),
  ]
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), named after the endpoint type. */
export function ietfLimitFields(endpoint: Endpoint, decision: LimitDecision, policy: WindowPolicy): Fields {
  return [
    'RateLimit-Policy',
    `"${endpoint}";q=${policy.requests};w=${Math.ceil(policy.window / 1000)}`,
    'RateLimit',
    `"${endpoint}";r=${decision.remaining};t=${secondsToReset(decision)}`,
  ]
}

/** Whole seconds until the window closes, rounded up, at least 1 (C15). */
export function secondsToReset(decision: LimitDecision): number {
  return Math.max(1, Math.ceil(decision.closesIn / 1000))
}
