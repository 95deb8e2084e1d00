import { dateOf, type Observation, only, wholeNumber } from './question.ts'

/** The limit of one endpoint type (C13). */
export interface Limit {
  readonly requests: number
  /** Seconds. */
  readonly window: number
}

interface LimitFields {
  readonly limit: number
  readonly remaining: number
  /** Unix time in seconds. */
  readonly reset: number
}

const NAMES = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

/** The rate-limit fields of a response; undefined if one of them is missing, repeated or not a whole number. */
export function limitFieldsOf(observation: Pick<Observation, 'fields'>): LimitFields | undefined {
  const [limit, remaining, reset] = NAMES.map((name) => wholeNumber(only(observation, name.toLowerCase())))
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined
  return { limit, remaining, reset }
}

/** Whether the clock of the server agrees with ours. With `wrong`, no reset is compared with our time. */
export type ServerClock = 'right' | 'wrong'

/** The upper bound of the delay between the server and this client on a flooded machine (s). */
const MAX_DELAY = 5

/**
 * The X-RateLimit-Reset of a response (Unix time in seconds), if it can be the end of a window that is open now, or that ended while the
 * response was in flight; otherwise undefined. The server rounds it up, so it may be a second later than the end.
 */
export function statedReset(
  observation: Observation,
  { window }: Limit,
  clock: ServerClock,
): number | undefined {
  const reset = limitFieldsOf(observation)?.reset ?? Number.NaN
  if (clock === 'wrong') return Number.isNaN(reset) ? undefined : reset
  const at = observation.at / 1000
  return reset <= at + window + 1 && reset >= at - MAX_DELAY ? reset : undefined
}

/** The faults of the rate-limit fields of a response with any status (C16). */
export function limitFieldFaults(
  observation: Observation,
  limit: Limit,
  clock: ServerClock = 'right',
): readonly string[] {
  const fields = limitFieldsOf(observation)
  if (fields === undefined) return [malformedFields(observation)]
  const early = fields.reset < observation.at / 1000
  const faults = {
    [`X-RateLimit-Limit: ${fields.limit}, not ${limit.requests}`]: fields.limit !== limit.requests,
    'X-RateLimit-Remaining not below the limit': fields.remaining >= limit.requests,
    '429 although X-RateLimit-Remaining is not 0': observation.status === 429 && fields.remaining !== 0,
    [`X-RateLimit-Reset ${early ? 'in the past' : 'further away than the window is long'}`]:
      statedReset(observation, limit, clock) === undefined,
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
 * The seconds of `Retry-After` (RFC 9110 §10.2.3): a whole number, or a date less the `Date` of the response. Undefined if the field is
 * missing, repeated or neither of the two.
 */
export function retryAfter(observation: Observation): number | undefined {
  const value = only(observation, 'retry-after') ?? ''
  if (!HTTP_DATE.test(value)) return wholeNumber(value)
  const date = dateOf(observation) ?? observation.at
  return Math.max(0, Math.ceil((Date.parse(value) - date) / 1000))
}

/** X-RateLimit-Reset and Retry-After are both rounded up, and the clocks of server and client differ a little (s). */
const TOLERANCE = 2

/**
 * The faults of the `Retry-After` of a 429 (C15).
 *
 * @param sentAt when the request was sent (Unix time in ms); without it, the check that the wait does not end after the reset is left out
 */
export function retryAfterFaults(
  observation: Observation,
  limit: Limit,
  clock: ServerClock,
  sentAt: number = Number.NEGATIVE_INFINITY,
): readonly string[] {
  const wait = retryAfter(observation)
  if (wait === undefined || wait < 1) return ['429 without a Retry-After of at least 1']
  if (wait > limit.window) return ['Retry-After longer than the window']
  const reset = clock === 'right' ? statedReset(observation, limit, clock) : undefined
  if (reset === undefined) return []
  // The window closes within the second before the rounded reset. The response was made between `sentAt` and `at`.
  if (observation.at / 1000 + wait < reset - 1) return ['Retry-After ends before the reset']
  // Whether a window is still closed after its reset is checked by a later request, which comes when it should be open.
  const late = sentAt / 1000 < reset && sentAt / 1000 + wait > reset + TOLERANCE
  return late ? ['Retry-After ends after the reset'] : []
}
