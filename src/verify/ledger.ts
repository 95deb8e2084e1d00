import type { Observation } from './question.ts'
import {
  type Limit,
  limitFieldsOf,
  retryAfterFaults,
  type ServerClock,
  statedReset,
} from './stated-limits.ts'

/** A fault of a window or of responses. `promise` is undefined for responses with a fault that is not about the limits. */
interface LedgerFault {
  readonly promise: 'C14' | 'C15' | 'C16' | undefined
  readonly text: string
}

export interface LedgerResult {
  /** Whether every response stated its window. Otherwise the windows of a long flood cannot be distinguished. */
  readonly told: boolean
  /** Requests that passed in each window, in the order of the windows. */
  readonly passed: readonly number[]
  readonly refused: number
  /** Responses that are neither 429 nor the expected status. */
  readonly other: number
  /** Whether other clients have used the window: fewer passed than the limit, and the missing numbers went to them. */
  readonly shared: boolean
  /** First the faults of windows, then those of responses, each with the number of responses. */
  readonly faults: readonly LedgerFault[]
}

/** Judges the responses to requests that were sent at the same time, in any order. */
export interface Ledger {
  /** `expected`: the status of a request that passes the limit. `more`: further faults of the response, in words. */
  add(expected: number, observation: Observation, more?: readonly string[]): void
  account(): LedgerResult
}

/** One window, identified by its X-RateLimit-Reset. `reset` is undefined until a response states a plausible one. */
interface Window {
  reset: number | undefined
  passed: number
  refused: number
  /** How often each X-RateLimit-Remaining occurred in the responses to passed requests. Empty if no response has the field. */
  readonly remaining: Map<number, number>
  firstPass: number
}

/**
 * Counts the responses of one endpoint type by window. Within one window X-RateLimit-Reset may differ by a second (rounding). A
 * response without a plausible one is counted in the latest window.
 *
 * @param expectedWindows undefined if the responses may belong to any number of windows. The end of the run may cut off the last one, so
 * fewer requests than the limit may have passed in it
 */
export function createLedger(
  limit: Limit,
  expectedWindows: number | undefined,
  clock: ServerClock = 'right',
): Ledger {
  const windows: Window[] = []
  const faults = new Map<string, { readonly promise: LedgerFault['promise']; times: number }>()
  let refused = 0
  let other = 0

  function addFaults(promise: LedgerFault['promise'], texts: readonly string[]): void {
    for (const text of texts) faults.getOrInsert(text, { promise, times: 0 }).times += 1
  }

  function windowOf(observation: Observation): Window {
    const reset = statedReset(observation, limit, clock)
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
        addFaults('C15', retryAfterFaults(observation, limit, clock))
        windowOf(observation).refused += 1
      } else if (status === expected) {
        const window = windowOf(observation)
        window.passed += 1
        window.firstPass = Math.min(window.firstPass, clock === 'right' ? at : Number.POSITIVE_INFINITY)
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
        shared: windows.some((window) => isShared(window, limit.requests)),
        faults: [...windowFaults(windows, limit.requests, expectedWindows, other), ...ofResponses],
      }
    },
  }
}

/** Whether other clients have used the window: each number occurs once, down to 0, and some are missing. */
function isShared({ passed, refused, remaining }: Window, requests: number): boolean {
  const isCountdown = remaining.has(0) && remaining.size === passed
  return isCountdown && refused > 0 && passed < requests
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
    // A flood may be too slow to use up a window, which proves nothing.
    if (expected === undefined && refused === 0 && passed <= requests) continue
    const name = windows.length === 1 ? '' : ` in window ${i + 1}`
    const cutOff = expected === undefined && i > 0 && i === windows.length - 1
    // Responses with another status may have used up places of the window.
    if (cutOff || other > 0 ? passed > requests : passed !== requests)
      add('C14', `${passed} passed instead of ${requests}${name}`)
    if (refused === 0 && other === 0 && !cutOff) add('C14', `no request was refused${name}`)
    // With a wrong number of passes, these numbers are wrong, too, and prove nothing further.
    const wrong = remaining.size > 0 && passed === requests ? remainingFault(remaining, requests) : ''
    if (wrong !== '') add('C16', `${wrong}${name}`)
    const before = windows[i - 1]?.reset
    // X-RateLimit-Reset is rounded up by less than a second, so the previous window closed no earlier than this.
    if (before !== undefined && firstPass < (before - 1) * 1000)
      add('C14', `window ${i + 1} opened before window ${i} had closed`)
  }
  return found
}

/** Names the first few numbers below the limit that were not shown exactly once; empty if all were. */
function remainingFault(shown: ReadonlyMap<number, number>, requests: number): string {
  const wrong = Array.from({ length: requests }, (_, left) => left).filter((left) => shown.get(left) !== 1)
  if (wrong.length === 0) return ''
  const named = wrong.slice(0, 3).map((left) => `${left} shown ${shown.get(left) ?? 0} times`)
  const more = wrong.length > 3 ? `, and ${wrong.length - 3} more` : ''
  return `X-RateLimit-Remaining: ${named.join(', ')}${more}; each number should come once`
}
