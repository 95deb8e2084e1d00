import { type Limit, limitFieldFaults, limitFieldsOf, refusalFaults } from './limit-faults.ts'
import type { Observation } from './observation.ts'
import type { RequestKind } from './request-kind.ts'

/** What the responses of one endpoint type amount to. */
export interface Account {
  /** How many passed in each window, in the order of the windows. */
  readonly passed: readonly number[]
  readonly refused: number
  /** Responses that are neither 429 nor what the request should get. */
  readonly other: number
  /** How many of those that passed the device must have seen. */
  readonly reachedDevice: number
  /** What is wrong, each with the number of responses of which it is true. */
  readonly faults: readonly string[]
}

export interface Ledger {
  see(kind: RequestKind, observation: Observation): void
  account(): Account
}

/** One window, told apart by its reset label. */
interface WindowAccount {
  readonly reset: number
  passed: number
  refused: number
  /** How often each X-RateLimit-Remaining was shown to a request that passed. */
  readonly remaining: Map<number, number>
  firstPass: number
}

/**
 * Books every response of one endpoint type against its limit. Windows are told apart by their reset label: it may
 * differ by a second within one window (rounding), never by as much as a window is long.
 */
export function createLedger(limit: Limit, expectedWindows: number): Ledger {
  const windows: WindowAccount[] = []
  const faults = new Map<string, number>()
  let refused = 0
  let other = 0
  let reachedDevice = 0

  function note(found: readonly string[]): void {
    for (const fault of found) faults.set(fault, (faults.get(fault) ?? 0) + 1)
  }

  function windowOf(reset: number): WindowAccount {
    const known = windows.find((window) => Math.abs(window.reset - reset) <= 1)
    if (known !== undefined) return known
    const opened: WindowAccount = {
      reset,
      passed: 0,
      refused: 0,
      remaining: new Map(),
      firstPass: Number.POSITIVE_INFINITY,
    }
    windows.push(opened)
    windows.sort((a, b) => a.reset - b.reset)
    return opened
  }

  function bookPass(kind: RequestKind, observation: Observation): void {
    note(kind.answerFaults(observation))
    if (kind.reachesDevice) reachedDevice += 1
    if (observation.fields.has('retry-after')) note([`${observation.status} with Retry-After`])
    const said = limitFieldsOf(observation)
    if (said === undefined) return
    const window = windowOf(said.reset)
    window.passed += 1
    window.firstPass = Math.min(window.firstPass, observation.at)
    window.remaining.set(said.remaining, (window.remaining.get(said.remaining) ?? 0) + 1)
  }

  function bookRefusal(observation: Observation): void {
    refused += 1
    note(refusalFaults(observation, limit))
    const said = limitFieldsOf(observation)
    if (said !== undefined) windowOf(said.reset).refused += 1
  }

  return {
    see(kind, observation) {
      note(limitFieldFaults(observation, limit))
      if (observation.status === 429) bookRefusal(observation)
      else if (observation.status === kind.status) bookPass(kind, observation)
      else {
        other += 1
        note([`${observation.status} instead of ${kind.status} or 429`])
      }
    },
    account: () => ({
      passed: windows.map(({ passed }) => passed),
      refused,
      other,
      reachedDevice,
      faults: [
        ...windowFaults(windows, limit, expectedWindows),
        ...[...faults].map(([fault, times]) => `${fault} (${times} times)`),
      ],
    }),
  }
}

function windowFaults(windows: readonly WindowAccount[], limit: Limit, expected: number): string[] {
  const found: string[] = []
  if (windows.length !== expected) found.push(`${windows.length} windows instead of ${expected}`)
  windows.forEach((window, i) => {
    const name = expected === 1 ? '' : ` in window ${i + 1}`
    if (window.passed !== limit.requests)
      found.push(`${window.passed} passed instead of ${limit.requests}${name}`)
    if (window.refused === 0)
      found.push(`nothing was refused${name}: the flood was too small to prove anything`)
    for (let left = 0; left < limit.requests; left += 1) {
      const times = window.remaining.get(left) ?? 0
      if (times !== 1) found.push(`X-RateLimit-Remaining: ${left} shown ${times} times${name}, not once`)
    }
    const before = windows[i - 1]
    // The label is rounded up by less than a second, so the window before closed at this time at the earliest.
    if (before !== undefined && window.firstPass < (before.reset - 1) * 1000) {
      found.push(`window ${i + 1} opened before window ${i} had closed`)
    }
  })
  return found
}
