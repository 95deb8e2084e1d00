import type { LimitDecision, WindowType } from './admission.ts'
import { type Fields, fieldLines } from './fields.ts'

/** The rate-limit fields that the sidecar sets. They replace those of the device (C16). */
export const LIMIT_FIELD_NAMES = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'] as const
const WRITTEN_NAMES = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

/** The fields of draft-ietf-httpapi-ratelimit-headers. If they are switched on, they replace those of the device. */
export const IETF_FIELD_NAMES: readonly string[] = ['ratelimit', 'ratelimit-policy']

/** The parts of an exchange on which its limit fields depend. */
interface Counted {
  readonly decision: LimitDecision
  /** Unix time (s); 0 for a request that no window counted. */
  readonly resetAt: number
  readonly ownFields: Fields
  readonly head: { readonly version: string }
}

/**
 * The time at which a window closes: Unix time in whole seconds, rounded up, so that a client that waits until then is never early. The
 * monotonic clock closes the window; the wall clock only labels that instant.
 *
 * @param now the wall time (ms)
 */
export function resetTime({ closesIn }: LimitDecision, now: number): number {
  return Math.ceil((now + closesIn) / 1000)
}

/** The sidecar's own fields of a response. Without rate-limit fields if no window counted the request. */
export function limitFields({ decision: { limit, remaining }, resetAt, ownFields, head }: Counted): Fields {
  if (resetAt === 0) return ownFields
  // HTTP/2 names are in lower case (RFC 9113 §8.2.1). Node would make a new string of any other name.
  const names = head.version === '2' ? LIMIT_FIELD_NAMES : WRITTEN_NAMES
  const fields = [names[0], String(limit), names[1], String(remaining), names[2], String(resetAt)]
  return ownFields.length === 0 ? fields : fields.concat(ownFields)
}

/** The text before and after the number of remaining requests. It is the same for all requests of a window, so the latest is cached. */
let latest = { limit: -1, resetAt: -1, before: '', after: '' }

/** `limitFields` as lines of an HTTP/1 head, but without `ownFields` if no window counted the request. */
export function limitLines({ decision: { limit, remaining }, resetAt, ownFields }: Counted): string {
  if (resetAt === 0) return ''
  if (latest.limit !== limit || latest.resetAt !== resetAt) {
    const before = `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: `
    latest = { limit, resetAt, before, after: `\r\nX-RateLimit-Reset: ${resetAt}\r\n` }
  }
  const lines = latest.before + remaining + latest.after
  return ownFields.length === 0 ? lines : lines + fieldLines(ownFields)
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). The policy has the name of the window type. `window`: ms. */
export function ietfLimitFields(
  endpoint: WindowType,
  decision: LimitDecision,
  { requests, window }: { readonly requests: number; readonly window: number },
): Fields {
  return [
    'RateLimit-Policy',
    `"${endpoint}";q=${requests};w=${Math.ceil(window / 1000)}`,
    'RateLimit',
    `"${endpoint}";r=${decision.remaining};t=${secondsToReset(decision.closesIn)}`,
  ]
}

/** The time until a window closes (ms) in whole seconds, rounded up, at least 1: a value for `Retry-After` (C15). */
export function secondsToReset(closesIn: number): number {
  return Math.max(1, Math.ceil(closesIn / 1000))
}
