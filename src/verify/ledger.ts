import {
  type Limit,
  type LimitFault,
  limitFieldFaults,
  limitFieldsOf,
  refusalFaults,
  statedReset,
} from './limit-faults.ts'
import type { Observation } from './observation.ts'

/** What a request should get when it passes the limit. */
export interface Expected {
  readonly status: number
  /** The faults of a response with this status, apart from its rate-limit fields. */
  readonly responseFaults?: (observation: Observation) => readonly string[]
  /** The faults of a 429, apart from its rate-limit fields and `Retry-After`. */
  readonly refusalFaults?: (observation: Observation) => readonly string[]
}

/**
 * A fault of one endpoint type: of a whole window, or of a number of responses. `promise` is undefined for responses that are wrong
 * apart from the limits.
 */
export interface LedgerFault {
  readonly promise: LimitFault['promise'] | undefined
  readonly of: 'window' | 'responses'
  readonly text: string
}

/** Totals of the responses of one endpoint type. */
export interface Account {
  /** Whether every response stated its window. Without that, the windows of a long flood cannot be told apart. */
  readonly told: boolean
  /** Requests that passed in each window, in the order of the windows. */
  readonly passed: readonly number[]
  readonly refused: number
  /** Responses that are neither 429 nor the expected status. */
  readonly other: number
  /** Faults, each with the number of responses that have it. */
  readonly faults: readonly LedgerFault[]
}

export interface Ledger {
  add(expected: Expected, observation: Observation): void
  account(): Account
}

/** One window, identified by its X-RateLimit-Reset. */
interface WindowAccount {
  /** Undefined until a response states a plausible one. */
  reset: number | undefined
  passed: number
  refused: number
  /** How often each X-RateLimit-Remaining occurred among the requests that passed. Empty if none stated it. */
  readonly remaining: Map<number, number>
  firstPass: number
}

/**
 * Checks every response of one endpoint type against its limit. X-RateLimit-Reset identifies the window: within one window
 * it may differ by a second (rounding). A response without a plausible one is counted in the latest window.
 *
 * @param expectedWindows undefined if the responses may be of any number of windows. The last of several may have been cut off, so
 * fewer requests than the limit may have passed in it
 */
export function createLedger(limit: Limit, expectedWindows: number | undefined): Ledger {
  const windows: WindowAccount[] = []
  const faults = new Map<string, { readonly fault: ResponseFault; times: number }>()
  let refused = 0
  let other = 0

  function addFaults(found: readonly ResponseFault[]): void {
    for (const fault of found) {
      const key = `${fault.promise} ${fault.text}`
      const known = faults.get(key) ?? { fault, times: 0 }
      known.times += 1
      faults.set(key, known)
    }
  }

  function windowOf(observation: Observation): WindowAccount {
    const reset = statedReset(observation, limit)
    const latest = windows.at(-1)
    if (reset === undefined) return latest ?? opened(undefined)
    const known = windows.find(
      (window) =>
        window.reset !== undefined && Math.abs(window.reset - reset) <= Math.min(1, limit.window - 1),
    )
    if (known !== undefined) return known
    if (latest !== undefined && latest.reset === undefined) {
      latest.reset = reset
      return latest
    }
    return opened(reset)
  }

  function opened(reset: number | undefined): WindowAccount {
    const window = { reset, passed: 0, refused: 0, remaining: new Map(), firstPass: Number.POSITIVE_INFINITY }
    windows.push(window)
    windows.sort((a, b) => (a.reset ?? 0) - (b.reset ?? 0))
    return window
  }

  function addPass(expected: Expected, observation: Observation): void {
    addFaults(plain(expected.responseFaults?.(observation) ?? []))
    if (observation.fields.has('retry-after')) addFaults(plain([`${observation.status} with Retry-After`]))
    const window = windowOf(observation)
    window.passed += 1
    window.firstPass = Math.min(window.firstPass, observation.at)
    const fields = limitFieldsOf(observation)
    if (fields !== undefined)
      window.remaining.set(fields.remaining, (window.remaining.get(fields.remaining) ?? 0) + 1)
  }

  function addRefusal(expected: Expected, observation: Observation): void {
    refused += 1
    addFaults(refusalFaults(observation, limit))
    addFaults(plain(expected.refusalFaults?.(observation) ?? []))
    windowOf(observation).refused += 1
  }

  return {
    add(expected, observation) {
      addFaults(limitFieldFaults(observation, limit))
      if (observation.status === 429) addRefusal(expected, observation)
      else if (observation.status === expected.status) addPass(expected, observation)
      else {
        other += 1
        addFaults(
          plain([
            `${observation.status === 0 ? 'no response' : observation.status} instead of ${expected.status} or 429`,
          ]),
        )
      }
    },
    account: () => ({
      told: windows.every(({ reset }) => reset !== undefined),
      passed: windows.map(({ passed }) => passed),
      refused,
      other,
      faults: [
        ...windowFaults(windows, limit, { expected: expectedWindows, other }),
        ...[...faults.values()].map(({ fault, times }) => ({
          ...fault,
          of: 'responses' as const,
          text: times === 1 ? fault.text : `${fault.text} (${times} times)`,
        })),
      ],
    }),
  }
}

type ResponseFault = Pick<LedgerFault, 'promise' | 'text'>

function plain(texts: readonly string[]): ResponseFault[] {
  return texts.map((text) => ({ promise: undefined, text }))
}

function windowFaults(
  windows: readonly WindowAccount[],
  limit: Limit,
  { expected, other }: { readonly expected: number | undefined; readonly other: number },
): LedgerFault[] {
  const found: LedgerFault[] = []
  const add = (promise: LimitFault['promise'], text: string): void => {
    found.push({ promise, of: 'window', text })
  }
  if (expected !== undefined && windows.length !== expected)
    add('C14', `${windows.length} windows instead of ${expected}`)
  windows.forEach((window, i) => {
    // A flood may be too slow to use a window up. That proves nothing.
    if (expected === undefined && window.refused === 0 && window.passed <= limit.requests) return
    const name = windows.length === 1 ? '' : ` in window ${i + 1}`
    const cutOff = expected === undefined && i > 0 && i === windows.length - 1
    // Responses with another status may have used up places of the window.
    if (cutOff || other > 0 ? window.passed > limit.requests : window.passed !== limit.requests)
      add('C14', `${window.passed} passed instead of ${limit.requests}${name}`)
    if (window.refused === 0 && other === 0 && !cutOff) add('C14', `no request was refused${name}`)
    // With another number of passes these numbers are wrong, too, and say no more.
    if (window.remaining.size > 0 && window.passed === limit.requests) {
      const wrong = remainingFaults(window.remaining, limit)
      if (wrong !== undefined) add('C16', `${wrong}${name}`)
    }
    const before = windows[i - 1]
    // X-RateLimit-Reset is rounded up by less than a second: the window before closed no earlier than this.
    if (before?.reset !== undefined && window.firstPass < (before.reset - 1) * 1000) {
      add('C14', `window ${i + 1} opened before window ${i} had closed`)
    }
  })
  return found
}

/** Each number below the limit has to be shown once. The text names the first few that are not. */
function remainingFaults(shown: ReadonlyMap<number, number>, limit: Limit): string | undefined {
  const wrong = Array.from({ length: limit.requests }, (_, left) => left).filter(
    (left) => shown.get(left) !== 1,
  )
  if (wrong.length === 0) return undefined
  const named = wrong.slice(0, NAMED).map((left) => `${left} shown ${shown.get(left) ?? 0} times`)
  const more = wrong.length > NAMED ? `, and ${wrong.length - NAMED} more` : ''
  return `X-RateLimit-Remaining: ${named.join(', ')}${more}; each number should come once`
}

const NAMED = 3
