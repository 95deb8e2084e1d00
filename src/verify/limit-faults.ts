import { type Observation, only, wholeNumber } from './observation.ts'

/** The documented limit of one endpoint type (C13). */
export interface Limit {
  readonly requests: number
  /** Seconds. */
  readonly window: number
}

/** The three rate-limit fields of a response. */
export interface LimitFields {
  readonly limit: number
  readonly remaining: number
  /** Unix time in seconds. */
  readonly reset: number
}

/** Undefined if a field is missing, repeated or not a whole number. */
export function limitFieldsOf(observation: Observation): LimitFields | undefined {
  const limit = wholeNumber(only(observation, 'x-ratelimit-limit'))
  const remaining = wholeNumber(only(observation, 'x-ratelimit-remaining'))
  const reset = wholeNumber(only(observation, 'x-ratelimit-reset'))
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined
  return { limit, remaining, reset }
}

/** Upper bound of the delay between the sidecar and this client on a flooded machine (seconds). */
const MAX_DELAY = 5

/** The faults of the rate-limit fields of a response with any status (C16). */
export function limitFieldFaults(observation: Observation, limit: Limit): string[] {
  const fields = limitFieldsOf(observation)
  if (fields === undefined) return ['X-RateLimit fields missing, repeated or not whole numbers']
  const faults: string[] = []
  const at = observation.at / 1000
  if (fields.limit !== limit.requests) faults.push(`X-RateLimit-Limit: ${fields.limit}`)
  if (fields.remaining >= limit.requests) faults.push('X-RateLimit-Remaining not below the limit')
  // Rounded up, so up to a second later than the end of the window.
  if (fields.reset > at + limit.window + 1)
    faults.push('X-RateLimit-Reset further away than the window is long')
  if (fields.reset < at - MAX_DELAY) faults.push('X-RateLimit-Reset in the past')
  return faults
}

/** The body of every 429 (C15, C18). */
export const REFUSAL_BODY = '{"error":"rate_limited","error_description":"The rate limit is exceeded."}'

/** The faults of a 429 apart from its rate-limit fields (C15). */
export function refusalFaults(observation: Observation, limit: Limit): string[] {
  const faults = jsonFaults(observation)
  if (observation.body !== REFUSAL_BODY)
    faults.push(`429 with another body: ${observation.body.slice(0, 80)}`)
  const fields = limitFieldsOf(observation)
  if (fields !== undefined && fields.remaining !== 0)
    faults.push('429 although X-RateLimit-Remaining is not 0')

  const retryAfter = wholeNumber(only(observation, 'retry-after'))
  if (retryAfter === undefined || retryAfter < 1) faults.push('429 without a Retry-After of at least 1')
  else if (retryAfter > limit.window) faults.push('Retry-After longer than the window')
  // X-RateLimit-Reset is rounded up: the window closes within the second before it. `at` is later than the response was made.
  else if (fields !== undefined && observation.at / 1000 + retryAfter < fields.reset - 1) {
    faults.push('Retry-After ends before the reset')
  }
  return faults
}

/** The faults of a JSON response that the sidecar generates (C18). */
export function jsonFaults(observation: Observation): string[] {
  const faults: string[] = []
  if (only(observation, 'content-type') !== 'application/json;charset=UTF-8') {
    faults.push(`${observation.status} without Content-Type: application/json;charset=UTF-8`)
  }
  if (only(observation, 'content-length') !== String(Buffer.byteLength(observation.body))) {
    faults.push(`${observation.status} whose Content-Length is not that of its body`)
  }
  return faults
}
