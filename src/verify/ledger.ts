import type { RequestKind } from '../../bench/limits/request-kind.ts'
import { type Limit, limitFieldFaults, limitFieldsOf, refusalFaults } from './limit-faults.ts'
import type { Observation } from './observation.ts'

/** Totals of the responses of one endpoint type. */
export interface Account {
  /** Requests that passed in each window, in the order of the windows. */
  readonly passed: readonly number[]
  readonly refused: number
  /** Responses that are neither 429 nor the expected status. */
  readonly other: number
  /** Requests that passed and must have reached the device. */
  readonly reachedDevice: number
  /** Faults, each with the number of responses that have it. */
  readonly faults: readonly string[]
}

export interface Ledger {
  add(kind: RequestKind, observation: Observation): void
  account(): Account
}

/** One window, identified by its X-RateLimit-Reset. */
interface WindowAccount {
  readonly reset: number
  passed: number
  refused: number
  /** How often each X-RateLimit-Remaining occurred among the requests that passed. */
  readonly remaining: Map<number, number>
  firstPass: number
}

/**
 * Checks every response of one endpoint type against its limit. X-RateLimit-Reset identifies the window: within one window
 * it may differ by a second (rounding), which is less than the length of a window.
 */
export function createLedger(limit: Limit, expectedWindows: number): Ledger {
  const windows: WindowAccount[] = []
  const faults = new Map<string, number>()
  let refused = 0
  let other = 0
  let reachedDevice = 0

  function addFaults(found: readonly string[]): void {
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

  function addPass(kind: RequestKind, observation: Observation): void {
    addFaults(kind.responseFaults(observation))
    if (kind.reachesDevice) reachedDevice += 1
    if (observation.fields.has('retry-after')) addFaults([`${observation.status} with Retry-After`])
    const fields = limitFieldsOf(observation)
    if (fields === undefined) return
    const window = windowOf(fields.reset)
    window.passed += 1
    window.firstPass = Math.min(window.firstPass, observation.at)
    window.remaining.set(fields.remaining, (window.remaining.get(fields.remaining) ?? 0) + 1)
  }

  function addRefusal(observation: Observation): void {
    refused += 1
    addFaults(refusalFaults(observation, limit))
    const fields = limitFieldsOf(observation)
    if (fields !== undefined) windowOf(fields.reset).refused += 1
  }

  return {
    add(kind, observation) {
      addFaults(limitFieldFaults(observation, limit))
      if (observation.status === 429) addRefusal(observation)
      else if (observation.status === kind.status) addPass(kind, observation)
      else {
        other += 1
        addFaults([`${observation.status} instead of ${kind.status} or 429`])
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
    // X-RateLimit-Reset is rounded up by less than a second: the window before closed no earlier than this.
    if (before !== undefined && window.firstPass < (before.reset - 1) * 1000) {
      found.push(`window ${i + 1} opened before window ${i} had closed`)
    }
  })
  return found
}
