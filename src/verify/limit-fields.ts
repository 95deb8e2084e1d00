import { dateOf, type Observation, only, wholeNumber } from './exchange.ts'

/** The limit of one endpoint type (C13). */
export interface Limit {
  readonly requests: number
  /** Seconds. */
  readonly window: number
}

export interface LimitFields {
  readonly limit: number
  readonly remaining: number
  /** Unix time in seconds. */
  readonly reset: number
}

const NAMES = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

/** Undefined if a field is missing, repeated or not a whole number. */
export function limitFieldsOf(observation: Pick<Observation, 'fields'>): LimitFields | undefined {
  const [limit, remaining, reset] = NAMES.map((name) => wholeNumber(only(observation, name.toLowerCase())))
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined
  return { limit, remaining, reset }
}

/**
 * The seconds from the `Date` of a response to its X-RateLimit-Reset. Both are of one clock, so it does not matter whether that clock
 * is right (RFC 9110 §6.6.1). The reset is rounded up and `Date` down, and a server may renew it late: up to 2 s too many. Undefined
 * if one of the two is missing.
 */
function secondsToReset(observation: Observation): number | undefined {
  const reset = limitFieldsOf(observation)?.reset
  const date = dateOf(observation)
  return reset === undefined || date === undefined ? undefined : reset - date / 1000
}

/** What rounding makes of the time to a reset, at most (s). */
const ROUNDING = 2

/** The X-RateLimit-Reset of a response (Unix time in s), if a window that is open then can end so. */
export function statedReset(observation: Observation, { window }: Limit): number | undefined {
  const seconds = secondsToReset(observation) ?? -1
  return seconds >= 0 && seconds <= window + ROUNDING ? limitFieldsOf(observation)?.reset : undefined
}

/** The faults of the rate-limit fields of a response with any status (C16). Without a `Date`, the reset is not judged. */
export function limitFieldFaults(observation: Observation, { requests, window }: Limit): readonly string[] {
  const fields = limitFieldsOf(observation)
  if (fields === undefined) return [malformedFields(observation)]
  const seconds = secondsToReset(observation) ?? 0
  const faults = {
    [`X-RateLimit-Limit: ${fields.limit}, not ${requests}`]: fields.limit !== requests,
    'X-RateLimit-Remaining not below the limit': fields.remaining >= requests,
    '429 although X-RateLimit-Remaining is not 0': observation.status === 429 && fields.remaining !== 0,
    'X-RateLimit-Reset in the past': seconds < 0,
    'X-RateLimit-Reset further away than the window is long': seconds > window + ROUNDING,
  }
  return Object.keys(faults).filter((fault) => faults[fault])
}

function malformedFields({ fields }: Observation): string {
  const problems = NAMES.flatMap((name) => {
    const values = fields.get(name.toLowerCase()) ?? []
    if (values.length !== 1) return [`${name} ${values.length === 0 ? 'missing' : 'repeated'}`]
    return wholeNumber(values[0]) === undefined ? [`${name} not a whole number`] : []
  })
  return problems.join(', ')
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * The seconds of `Retry-After` (RFC 9110 §10.2.3), which is a whole number, or a date that is compared with the `Date` of the
 * response. Undefined if the field is missing, repeated or neither of the two.
 */
export function retryAfter(observation: Observation): number | undefined {
  const value = only(observation, 'retry-after') ?? ''
  if (!HTTP_DATE.test(value)) return wholeNumber(value)
  const date = dateOf(observation) ?? observation.at
  return Math.max(0, Math.ceil((Date.parse(value) - date) / 1000))
}

/** The faults of the `Retry-After` of a 429 (C15). */
export function retryAfterFaults(observation: Observation, { window }: Limit): readonly string[] {
  const wait = retryAfter(observation)
  if (wait === undefined || wait < 1) return ['429 without a Retry-After of at least 1']
  if (wait > window) return ['Retry-After longer than the window']
  const seconds = secondsToReset(observation)
  // A window that is still closed after its reset is a matter of the request that comes when it should be open.
  if (seconds === undefined || seconds < 0 || seconds > window + ROUNDING) return []
  if (wait < seconds - ROUNDING) return ['Retry-After ends before the reset']
  return wait > seconds + ROUNDING ? ['Retry-After ends after the reset'] : []
}
