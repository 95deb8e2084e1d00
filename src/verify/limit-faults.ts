import { type Observation, only, retryAfter, wholeNumber } from './observation.ts'

/** The limit of one endpoint type (C13). */
export interface Limit {
  readonly requests: number
  /** Seconds. */
  readonly window: number
}

/** The promise that a response or a window breaks, and how. */
export interface LimitFault {
  readonly promise: 'C14' | 'C15' | 'C16'
  readonly text: string
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

/** Upper bound of the delay between the server and this client on a flooded machine (seconds). */
const MAX_DELAY = 5

/**
 * The X-RateLimit-Reset of a response (Unix time in seconds), if it can be the end of a window that is open now, or that ended while
 * the response was on its way; otherwise undefined.
 */
export function statedReset(observation: Observation, limit: Limit): number | undefined {
  const reset = limitFieldsOf(observation)?.reset
  return reset !== undefined && isPlausibleReset(reset, observation, limit) ? reset : undefined
}

function isPlausibleReset(reset: number, observation: Observation, limit: Limit): boolean {
  const at = observation.at / 1000
  // Rounded up, so up to a second later than the end of the window.
  return reset <= at + limit.window + 1 && reset >= at - MAX_DELAY
}

/** The faults of the rate-limit fields of a response with any status (C16). */
export function limitFieldFaults(observation: Observation, limit: Limit): LimitFault[] {
  const fields = limitFieldsOf(observation)
  if (fields === undefined) return [c16(malformedFields(observation))]
  const faults: LimitFault[] = []
  if (fields.limit !== limit.requests)
    faults.push(c16(`X-RateLimit-Limit: ${fields.limit}, not ${limit.requests}`))
  if (fields.remaining >= limit.requests) faults.push(c16('X-RateLimit-Remaining not below the limit'))
  if (observation.status === 429 && fields.remaining !== 0)
    faults.push(c16('429 although X-RateLimit-Remaining is not 0'))
  if (!isPlausibleReset(fields.reset, observation, limit)) {
    const early = fields.reset < observation.at / 1000
    faults.push(
      c16(early ? 'X-RateLimit-Reset in the past' : 'X-RateLimit-Reset further away than the window is long'),
    )
  }
  return faults
}

const NAMES = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

function malformedFields({ fields }: Observation): string {
  const problems = NAMES.flatMap((name) => {
    const values = fields.get(name.toLowerCase()) ?? []
    if (values.length === 0) return [`${name} missing`]
    if (values.length > 1) return [`${name} repeated`]
    return wholeNumber(values[0]) === undefined ? [`${name} not a whole number`] : []
  })
  return problems.join(', ')
}

/** The faults of the `Retry-After` of a 429 (C15). */
export function refusalFaults(observation: Observation, limit: Limit): LimitFault[] {
  const reset = statedReset(observation, limit)
  const wait = retryAfter(observation)
  if (wait === undefined || wait < 1) return [c15('429 without a Retry-After of at least 1')]
  if (wait > limit.window) return [c15('Retry-After longer than the window')]
  if (reset === undefined) return []
  // X-RateLimit-Reset is rounded up: the window closes within the second before it. `at` is later than the response was made.
  const early = observation.at / 1000 + wait < reset - 1
  return early ? [c15('Retry-After ends before the reset')] : []
}

function c15(text: string): LimitFault {
  return { promise: 'C15', text }
}

function c16(text: string): LimitFault {
  return { promise: 'C16', text }
}
