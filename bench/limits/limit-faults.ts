import { type Observation, only, wholeNumber } from './observation.ts'

/** The limit that the document promises for one endpoint type (C13). */
export interface Limit {
  readonly requests: number
  /** Seconds. */
  readonly window: number
}

/** What the three rate-limit fields of a response say. */
export interface LimitFields {
  readonly limit: number
  readonly remaining: number
  /** Unix time in seconds. */
  readonly reset: number
}

/** The fields, or undefined where one is missing, repeated or not a whole number. */
export function limitFieldsOf(observation: Observation): LimitFields | undefined {
  const limit = wholeNumber(only(observation, 'x-ratelimit-limit'))
  const remaining = wholeNumber(only(observation, 'x-ratelimit-remaining'))
  const reset = wholeNumber(only(observation, 'x-ratelimit-reset'))
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined
  return { limit, remaining, reset }
}

/** How long after it was made a response may reach us on a machine that is flooded (seconds). */
const SLOWEST_DELIVERY = 5

/** What is wrong with the rate-limit fields of one response, whatever its status (C16). */
export function limitFieldFaults(observation: Observation, limit: Limit): string[] {
  const said = limitFieldsOf(observation)
  if (said === undefined) return ['X-RateLimit fields missing, repeated or not whole numbers']
  const faults: string[] = []
  const at = observation.at / 1000
  if (said.limit !== limit.requests) faults.push(`X-RateLimit-Limit: ${said.limit}`)
  if (said.remaining >= limit.requests) faults.push('X-RateLimit-Remaining not below the limit')
  // Rounded up, so up to a second more than the window.
  if (said.reset > at + limit.window + 1)
    faults.push('X-RateLimit-Reset further away than the window is long')
  if (said.reset < at - SLOWEST_DELIVERY) faults.push('X-RateLimit-Reset in the past')
  return faults
}

/** The body of every 429 (C15, C18). */
export const REFUSAL_BODY = '{"error":"rate_limited","error_description":"The rate limit is exceeded."}'

/** What is wrong with a 429 besides its rate-limit fields (C15). */
export function refusalFaults(observation: Observation, limit: Limit): string[] {
  const faults = jsonFaults(observation)
  if (observation.body !== REFUSAL_BODY)
    faults.push(`429 with another body: ${observation.body.slice(0, 80)}`)
  const said = limitFieldsOf(observation)
  if (said !== undefined && said.remaining !== 0) faults.push('429 although X-RateLimit-Remaining is not 0')

  const retryAfter = wholeNumber(only(observation, 'retry-after'))
  if (retryAfter === undefined || retryAfter < 1) faults.push('429 without a Retry-After of at least 1')
  else if (retryAfter > limit.window) faults.push('Retry-After longer than the window')
  // The label is rounded up, so the window closes within the second before it. The response was made before it got here.
  else if (said !== undefined && observation.at / 1000 + retryAfter < said.reset - 1) {
    faults.push('Retry-After ends before the reset')
  }
  return faults
}

/** What is wrong with an answer that the sidecar makes itself, as JSON (C18). */
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
