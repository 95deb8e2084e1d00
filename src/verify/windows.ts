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

/** Upper bound of the delay between the server and this client on a flooded machine (seconds). */
const MAX_DELAY = 5

/**
 * The X-RateLimit-Reset of a response (Unix time in seconds), if it can be the end of a window that is open now, or that ended while
 * the response was on its way; otherwise undefined. It is rounded up, so it may be a second later than the end.
 */
export function statedReset(observation: Observation, limit: Limit): number | undefined {
  const reset = limitFieldsOf(observation)?.reset ?? Number.NaN
  const at = observation.at / 1000
  return reset <= at + limit.window + 1 && reset >= at - MAX_DELAY ? reset : undefined
}

/** The latest end of a window whose first response this is (Unix time in ms). Windows that open on the clock end at the reset. */
export function windowEndOf(first: Observation, limit: Limit): number {
  const latest = first.at + limit.window * 1000
  const reset = (limitFieldsOf(first)?.reset ?? 0) * 1000
  return reset > first.at ? Math.min(latest, reset) : latest
}

/** The faults of the rate-limit fields of a response with any status (C16). */
export function limitFieldFaults(observation: Observation, limit: Limit): readonly string[] {
  const fields = limitFieldsOf(observation)
  if (fields === undefined) return [malformedFields(observation)]
  const early = fields.reset < observation.at / 1000
  const faults = {
    [`X-RateLimit-Limit: ${fields.limit}, not ${limit.requests}`]: fields.limit !== limit.requests,
    'X-RateLimit-Remaining not below the limit': fields.remaining >= limit.requests,
    '429 although X-RateLimit-Remaining is not 0': observation.status === 429 && fields.remaining !== 0,
    [`X-RateLimit-Reset ${early ? 'in the past' : 'further away than the window is long'}`]:
      statedReset(observation, limit) === undefined,
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
 * The seconds of `Retry-After` (RFC 9110 §10.2.3), which is a whole number or a date. A date is compared with the `Date` of the
 * response, or else with the time of arrival. Undefined if the field is missing, repeated or neither of the two.
 */
export function retryAfter(observation: Observation): number | undefined {
  const value = only(observation, 'retry-after') ?? ''
  const until = HTTP_DATE.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(until)) return wholeNumber(value)
  return Math.max(0, Math.ceil((until - (dateOf(observation) ?? observation.at)) / 1000))
}

/** X-RateLimit-Reset and Retry-After are both rounded up, and the clocks of server and client differ a little (s). */
const TOLERANCE = 2

/**
 * The faults of the `Retry-After` of a 429 (C15).
 *
 * @param sentAt when the request was sent (Unix time in ms), if the field is to be held against a reset before its end, too
 */
export function retryAfterFaults(
  observation: Observation,
  limit: Limit,
  sentAt: number = Number.NEGATIVE_INFINITY,
): readonly string[] {
  const reset = statedReset(observation, limit)
  const wait = retryAfter(observation)
  if (wait === undefined || wait < 1) return ['429 without a Retry-After of at least 1']
  if (wait > limit.window) return ['Retry-After longer than the window']
  if (reset === undefined) return []
  // The window closes within the second before the rounded reset. The response was made between `sentAt` and `at`.
  if (observation.at / 1000 + wait < reset - 1) return ['Retry-After ends before the reset']
  // A window that is still closed after its reset is a matter of the request that comes when it should be open.
  const late = sentAt / 1000 < reset && sentAt / 1000 + wait > reset + TOLERANCE
  return late ? ['Retry-After ends after the reset'] : []
}

/** A fault of a window, or of a number of responses. `promise` is undefined for responses that are wrong apart from the limits. */
export interface LedgerFault {
  readonly promise: 'C14' | 'C15' | 'C16' | undefined
  readonly text: string
}

export interface Account {
  /** Whether every response stated its window. Without that, the windows of a long flood cannot be told apart. */
  readonly told: boolean
  /** Requests that passed in each window, in the order of the windows. */
  readonly passed: readonly number[]
  readonly refused: number
  /** Responses that are neither 429 nor the expected status. */
  readonly other: number
  /** Those of the windows come first; each of responses has their number. */
  readonly faults: readonly LedgerFault[]
}

/** Judges the responses to requests that were sent at the same time, in any order. */
export interface Ledger {
  /** `expected` is the status when the request passes the limit, `more` what else the caller finds wrong with the response. */
  add(expected: number, observation: Observation, more?: readonly string[]): void
  account(): Account
}

/** One window, identified by its X-RateLimit-Reset, which is undefined until a response states a plausible one. */
interface Window {
  reset: number | undefined
  passed: number
  refused: number
  /** How often each X-RateLimit-Remaining occurred among the requests that passed. Empty if none stated it. */
  readonly remaining: Map<number, number>
  firstPass: number
}

/**
 * Counts the responses of one endpoint type by window. Within one window X-RateLimit-Reset may differ by a second (rounding). A
 * response without a plausible one is counted in the latest window.
 *
 * @param expectedWindows undefined if the responses may be of any number of windows. The last of several may have been cut off, so
 * fewer requests than the limit may have passed in it
 */
export function createLedger(limit: Limit, expectedWindows: number | undefined): Ledger {
  const windows: Window[] = []
  const faults = new Map<string, { readonly promise: LedgerFault['promise']; times: number }>()
  let refused = 0
  let other = 0

  function addFaults(promise: LedgerFault['promise'], texts: readonly string[]): void {
    for (const text of texts) faults.getOrInsert(text, { promise, times: 0 }).times += 1
  }

  function windowOf(observation: Observation): Window {
    const reset = statedReset(observation, limit)
    const rounding = Math.min(1, limit.window - 1)
    const known = windows.findLast(
      (each) => reset === undefined || each.reset === undefined || Math.abs(each.reset - reset) <= rounding,
    )
    if (known !== undefined) {
      known.reset ??= reset
      return known
    }
    const window = { reset, passed: 0, refused: 0, remaining: new Map(), firstPass: Number.POSITIVE_INFINITY }
    windows.push(window)
    windows.sort((a, b) => (a.reset ?? 0) - (b.reset ?? 0))
    return window
  }

  return {
    add(expected, observation, more = []) {
      const { status, at } = observation
      addFaults(undefined, more)
      if (status === 429) {
        refused += 1
        addFaults('C15', retryAfterFaults(observation, limit))
        windowOf(observation).refused += 1
      } else if (status === expected) {
        const window = windowOf(observation)
        window.passed += 1
        window.firstPass = Math.min(window.firstPass, at)
        const left = limitFieldsOf(observation)?.remaining
        if (left !== undefined) window.remaining.set(left, (window.remaining.get(left) ?? 0) + 1)
      } else {
        other += 1
        addFaults(undefined, [`${status === 0 ? 'no response' : status} instead of ${expected} or 429`])
      }
    },
    account() {
      const ofResponses = [...faults].map(([text, { promise, times }]) => {
        return { promise, text: times === 1 ? text : `${text} (${times} times)` }
      })
      return {
        told: windows.every(({ reset }) => reset !== undefined),
        passed: windows.map(({ passed }) => passed),
        refused,
        other,
        faults: [...windowFaults(windows, limit.requests, expectedWindows, other), ...ofResponses],
      }
    },
  }
}

function windowFaults(
  windows: readonly Window[],
  requests: number,
  expected: number | undefined,
  other: number,
): LedgerFault[] {
  const found: LedgerFault[] = []
  const add = (promise: 'C14' | 'C16', text: string): void => void found.push({ promise, text })
  if (expected !== undefined && windows.length !== expected)
    add('C14', `${windows.length} windows instead of ${expected}`)
  for (const [i, window] of windows.entries()) {
    const { passed, refused, remaining, firstPass } = window
    // A flood may be too slow to use a window up. That proves nothing.
    if (expected === undefined && refused === 0 && passed <= requests) continue
    const name = windows.length === 1 ? '' : ` in window ${i + 1}`
    const cutOff = expected === undefined && i > 0 && i === windows.length - 1
    // Responses with another status may have used up places of the window.
    if (cutOff || other > 0 ? passed > requests : passed !== requests)
      add('C14', `${passed} passed instead of ${requests}${name}`)
    if (refused === 0 && other === 0 && !cutOff) add('C14', `no request was refused${name}`)
    // With another number of passes these numbers are wrong, too, and say no more.
    const wrong = remaining.size > 0 && passed === requests ? remainingFault(remaining, requests) : ''
    if (wrong !== '') add('C16', `${wrong}${name}`)
    const before = windows[i - 1]?.reset
    // X-RateLimit-Reset is rounded up by less than a second: the window before closed no earlier than this.
    if (before !== undefined && firstPass < (before - 1) * 1000)
      add('C14', `window ${i + 1} opened before window ${i} had closed`)
  }
  return found
}

/** Each number below the limit has to be shown once. The text names the first few that are not. */
function remainingFault(shown: ReadonlyMap<number, number>, requests: number): string {
  const wrong = Array.from({ length: requests }, (_, left) => left).filter((left) => shown.get(left) !== 1)
  if (wrong.length === 0) return ''
  const named = wrong.slice(0, 3).map((left) => `${left} shown ${shown.get(left) ?? 0} times`)
  const more = wrong.length > 3 ? `, and ${wrong.length - 3} more` : ''
  return `X-RateLimit-Remaining: ${named.join(', ')}${more}; each number should come once`
}
