import type { Endpoint } from '../http/admission.ts'
import type { Fields } from '../http/fields.ts'
import type { Verdict, WindowPolicy } from './window.ts'

/** The names that only the sidecar sets: the device's own are replaced (C16). */
export const LIMIT_FIELD_NAMES: readonly string[] = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]

/** The names of draft-ietf-httpapi-ratelimit-headers, replaced likewise where they are switched on. */
export const IETF_FIELD_NAMES: readonly string[] = ['ratelimit', 'ratelimit-policy']

/**
 * The rate-limit fields of every response. `X-RateLimit-Reset` is Unix time in whole seconds, rounded up, so that
 * a client that waits for it is never early; the wall clock only labels the instant that the monotonic one fixed.
 *
 * @param now on the wall clock
 */
export function limitFields(verdict: Verdict, now: number): Fields {
  const resetAt = now + verdict.closesIn
  return [
    'X-RateLimit-Limit',
    String(verdict.limit),
    'X-RateLimit-Remaining',
    String(verdict.remaining),
    'X-RateLimit-Reset',
    String(Math.ceil(resetAt / 1000)),
  ]
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), named after the endpoint type. */
export function ietfLimitFields(endpoint: Endpoint, verdict: Verdict, policy: WindowPolicy): Fields {
  return [
    'RateLimit-Policy',
    `"${endpoint}";q=${policy.requests};w=${Math.ceil(policy.window / 1000)}`,
    'RateLimit',
    `"${endpoint}";r=${verdict.remaining};t=${secondsToReset(verdict)}`,
  ]
}

/** Whole seconds until the window has closed: never early, and at least 1 (C15). */
export function secondsToReset(verdict: Verdict): number {
  return Math.max(1, Math.ceil(verdict.closesIn / 1000))
}
