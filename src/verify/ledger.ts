import { type Limit, limitFieldsOf, retryAfterFaults, statedReset } from './limit-fields.ts'
import type { Question } from './question.ts'
import type { Observation, Received } from './received.ts'
import { type Broken, broken, wrongResponse } from './verdict.ts'

/** A fault of a window, or of a number of responses. `promise` is undefined for responses that are wrong apart from the limits. */
export interface LedgerFault {
  readonly promise: 'C14' | 'C15' | 'C16' | undefined
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
  const faults = new Map<string, LedgerFault & { times: number }>()
  let refused = 0
  let other = 0

  function addFaults(promise: LedgerFault['promise'], texts: readonly string[]): void {
    for (const text of texts) {
      const known = faults.get(`${promise} ${text}`) ?? { promise, text, times: 0 }
      known.times += 1
      faults.set(`${promise} ${text}`, known)
    }
  }

  function windowOf(observation: Observation): Window {
    const reset = statedReset(observation, limit)
    const latest = windows.at(-1)
    const rounding = Math.min(1, limit.window - 1)
    const isOf = (window: Window): boolean =>
      Math.abs((window.reset ?? Number.NaN) - Number(reset)) <= rounding
    const known = reset === undefined || latest?.reset === undefined ? latest : windows.find(isOf)
    const window = known ?? {
      reset,
      passed: 0,
      refused: 0,
      remaining: new Map(),
      firstPass: Number.POSITIVE_INFINITY,
    }
    window.reset ??= reset
    if (known === undefined) windows.push(window)
    windows.sort((a, b) => (a.reset ?? 0) - (b.reset ?? 0))
    return window
  }

  const responseFaults = (): LedgerFault[] =>
    [...faults.values()].map(({ promise, text, times }) => ({
      promise,
      text: times === 1 ? text : `${text} (${times} times)`,
    }))

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
    account: () => ({
      told: windows.every(({ reset }) => reset !== undefined),
      passed: windows.map(({ passed }) => passed),
      refused,
      other,
      faults: [...windowFaults(windows, limit.requests, expectedWindows, other), ...responseFaults()],
    }),
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
  const named = wrong.slice(0, 3).map((left) => `${left} shown ${shown.get(left) ?? 0} times`)
  const more = wrong.length > 3 ? `, and ${wrong.length - 3} more` : ''
  return wrong.length === 0
    ? ''
    : `X-RateLimit-Remaining: ${named.join(', ')}${more}; each number should come once`
}

/** One of several requests that were sent one after the other, and its response. */
export interface Step {
  readonly question: Question
  /** The status when it passes the limit. */
  readonly expected: number
  readonly received: Received
}

const CLAUSE = 'device API §8'

/**
 * Judges the requests of one window, in order, until some were refused. If the window ends on the way, those of the next one are
 * judged.
 *
 * @param whole whether the first step opened the window
 */
export function judgeInOrder(all: readonly Step[], limit: Limit, whole: boolean): Broken[] {
  const start = all.findLastIndex((step, i) => opensNext(all[i - 1], step))
  const steps = all.slice(Math.max(start, 0))
  const end = steps.findIndex(({ expected, received }) => received.status !== expected)
  const passed = end === -1 ? steps : steps.slice(0, end)
  const usedUp = passed.length < steps.length
  const miscounted = countFaults(passed, usedUp)
  if (miscounted.length > 0) return miscounted
  // C15: past the limit each kind of request gets 429.
  const wrong = steps.slice(passed.length).filter(({ received }) => received.status !== 429)
  return [
    ...numberFaults(passed, limit, whole || start > 0, usedUp),
    ...onePerKind(wrong, ({ question }) => question.what).map(({ question, received }) => {
      const sent = { what: `${question.what}, past the limit` }
      return wrongResponse('C15', sent, received, '429', 'device API §7 and §8')
    }),
  ]
}

/** The last of each kind, so that a report names each kind once. */
function onePerKind<Each>(all: readonly Each[], kindOf: (each: Each) => string): Each[] {
  return [...new Map(all.map((each) => [kindOf(each), each])).values()]
}

const remainingOf = (step: Step | undefined) => step && limitFieldsOf(step.received)?.remaining

/** Whether a step opens a new window, because the one of the step before is over. */
function opensNext(before: Step | undefined, { received }: Step): boolean {
  const ended = before === undefined ? undefined : limitFieldsOf(before.received)?.reset
  const reset = limitFieldsOf(received)?.reset
  return ended !== undefined && reset !== undefined && reset > ended + 1 && received.at / 1000 >= ended - 1
}

/** Each request takes one from what remains (C13), and nothing comes back before the window ends (C14). */
function countFaults(passed: readonly Step[], usedUp: boolean): Broken[] {
  const changes = passed.flatMap(({ question: { what } }, i) => {
    const [before, after] = [remainingOf(passed[i - 1]), remainingOf(passed[i])]
    // A request that passes although nothing remains is a matter of the limit.
    return before === undefined || after === undefined || before === 0 ? [] : [{ what, before, after }]
  })
  const fault = (change: (typeof changes)[number], id: Broken['promise'], wanted: string): Broken => {
    const came = `X-RateLimit-Remaining: ${change.after}, after ${change.before}`
    return broken(id, { sent: change.what, came, wanted, clause: CLAUSE })
  }
  const back = changes.find(({ before, after }) => after > before)
  if (back !== undefined) return [fault(back, 'C14', 'nothing comes back before the window ends')]
  const [first] = changes
  // If no request takes any and yet the window is used up, the field is wrong and not the count.
  if (first !== undefined && usedUp && changes.every(({ before, after }) => before === after))
    return [fault(first, 'C16', 'one less each time')]
  const wrong = changes.filter(({ before, after }) => before - after !== 1)
  const wanted = 'one less: every request counts once, in the window of its endpoint type'
  return onePerKind(wrong, ({ what }) => what).map((change) => fault(change, 'C13', wanted))
}

function numberFaults(passed: readonly Step[], limit: Limit, whole: boolean, usedUp: boolean): Broken[] {
  const sent = 'one request after the other, over one connection'
  const [first, last] = [passed[0], passed.at(-1)]
  if (first === undefined || last === undefined) {
    const came = '429 for the first request after the reset'
    return whole ? [broken('C14', { sent, came, wanted: 'a new window', clause: CLAUSE })] : []
  }
  const stated = remainingOf(first)
  const expected = whole ? limit.requests : (stated ?? Number.NaN) + 1
  const extra = passed.length - expected
  // On a busy machine the burst may end in a window that it has not used up.
  if (Number.isNaN(extra) || extra === 0 || (!usedUp && extra < 0)) return []
  // A leaky bucket, such as `limit_req` of nginx, has forgotten so many requests by the end.
  const seconds = (last.received.at - first.received.sentAt) / 1000
  const leaked = Math.ceil((limit.requests * seconds) / limit.window)
  // Without X-RateLimit-Remaining a wrong number does not tell whether the limit is wrong, or what counts.
  const promise = stated === undefined && !(extra > 0 && extra <= leaked) ? 'C13' : 'C14'
  const wanted = `${expected} pass in the window, then 429`
  return [broken(promise, { sent, came: `${passed.length} passed`, wanted, clause: CLAUSE })]
}
