import type { LimitDecision, WindowType } from './admission.ts'
import { type Fields, fieldLines } from './fields.ts'

/** Fields that the sidecar sets. They replace those of the device (C16). */
export const LIMIT_FIELD_NAMES = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'] as const
const WRITTEN_NAMES = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

/** The fields of draft-ietf-httpapi-ratelimit-headers. They replace those of the device where they are switched on. */
export const IETF_FIELD_NAMES: readonly string[] = ['ratelimit', 'ratelimit-policy']

/** What an exchange knows of its window. */
interface Counted {
  readonly decision: LimitDecision
  /** Unix time (s); 0 for a request that no window counted. */
  readonly resetAt: number
  readonly ownFields: Fields
  readonly head: { readonly version: string }
}

/**
 * When a window closes: Unix time in whole seconds, rounded up, so that a client that waits until then is never early. The window
 * closes by the monotonic clock; the wall clock only serves to print that time.
 *
 * @param now on the wall clock (ms)
 */
export function resetTime({ closesIn }: LimitDecision, now: number): number {
  return Math.ceil((now + closesIn) / 1000)
}

/** The sidecar's own fields of every response; no rate-limit fields for a request that was not counted. */
export function limitFields({ decision: { limit, remaining }, resetAt, ownFields, head }: Counted): Fields {
  if (resetAt === 0) return ownFields
  // Node writes names of HTTP/2 in lower case (RFC 9113 §8.2.1), and makes a new string of any other.
  const names = head.version === '2' ? LIMIT_FIELD_NAMES : WRITTEN_NAMES
  const fields = [names[0], String(limit), names[1], String(remaining), names[2], String(resetAt)]
  return ownFields.length === 0 ? fields : fields.concat(ownFields)
}

/** The lines around the remaining requests: the same for all requests of a window, so those of the latest are kept. */
let latest = { limit: -1, resetAt: -1, before: '', after: '' }

/** The same as lines of an HTTP/1 head. */
export function limitLines({ decision: { limit, remaining }, resetAt, ownFields }: Counted): string {
  if (resetAt === 0) return ''
  if (latest.limit !== limit || latest.resetAt !== resetAt) {
    const before = `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: `
    latest = { limit, resetAt, before, after: `\r\nX-RateLimit-Reset: ${resetAt}\r\n` }
  }
  const lines = latest.before + remaining + latest.after
  return ownFields.length === 0 ? lines : lines + fieldLines(ownFields)
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), named after the endpoint type. @param window ms */
export function ietfLimitFields(
  endpoint: WindowType,
  decision: LimitDecision,
  { requests, window }: { readonly requests: number; readonly window: number },
): Fields {
  return [
    'RateLimit-Policy',
    `"${endpoint}";q=${requests};w=${Math.ceil(window / 1000)}`,
    'RateLimit',
    `"${endpoint}";r=${decision.remaining};t=${secondsToReset(decision)}`,
  ]
}

/** Whole seconds until the window closes, rounded up, at least 1 (C15). */
export function secondsToReset(decision: LimitDecision): number {
  return Math.max(1, Math.ceil(decision.closesIn / 1000))
}
