import type { OutsideId } from './promises.ts'
import type { Asked } from './question.ts'
import { type Limit, limitFieldsOf, type ServerClock } from './stated-limits.ts'
import type { Findings } from './verdict.ts'

/** A departure of a burst of requests. */
interface Departed {
  readonly promise: OutsideId
  readonly sent: string
  readonly came: string | Asked['received']
  readonly wanted: string
}

/** A reason why a count proves nothing: requests of other clients look like a fault of the server. */
export const SHARED = 'other clients use the windows of this address, too'

/**
 * Judges requests that were sent in order, in one window, until some were refused. If the window ends on the way, judges the requests of
 * the next window instead.
 *
 * @param whole whether the first step opened the window
 */
export function judgeInOrder(
  findings: Findings,
  all: readonly Asked[],
  limit: Limit,
  whole: boolean,
  clock: ServerClock = 'right',
): void {
  const start = all.findLastIndex((step, i) => opensNext(all[i - 1], step, clock))
  const steps = all.slice(Math.max(start, 0))
  const end = steps.findIndex(({ expected, received }) => received.status !== expected)
  const passed = end === -1 ? steps : steps.slice(0, end)
  const refused = steps.slice(passed.length)
  const changes = changesOf(passed)
  const isWhole = whole || start > 0
  if (isShared(changes) || (isWhole && wasOpen(passed, changes, limit.requests))) {
    findings.untestable(['C13', 'C14'], SHARED)
    return
  }
  // The server must have opened another window meanwhile, and no response shows it.
  if (start < 1 && lengthOf(steps) >= 1000 * limit.window) {
    findings.untestable(['C13', 'C14'], 'a window ended before it was used up')
    return
  }
  const miscounted = countFaults(changes, refused.length > 0)
  const found =
    miscounted.length > 0 ? miscounted : numberFaults(passed, isWhole ? limit.requests : undefined, refused)
  // The last fault of each kind of request.
  const last = new Map(found.map((each) => [`${each.promise} ${each.sent}`, each]))
  for (const { promise, sent, came, wanted } of last.values()) findings.broken(promise, sent, came, wanted)
}

/** The time from the first request to the last response (ms). */
function lengthOf(steps: readonly Asked[]): number {
  return (steps.at(-1)?.received.at ?? 0) - (steps[0]?.received.sentAt ?? 0)
}

/** The X-RateLimit-Remaining of a response. */
export function remainingOf(step: Asked | undefined): number | undefined {
  return step && limitFieldsOf(step.received)?.remaining
}

/**
 * Whether a step opens a new window, because that of the previous step is over. With a wrong clock, its reset is not compared with time.
 */
function opensNext(before: Asked | undefined, { received }: Asked, clock: ServerClock): boolean {
  const ended = (before && limitFieldsOf(before.received)?.reset) ?? Number.NaN
  const reset = limitFieldsOf(received)?.reset ?? Number.NaN
  return reset > ended + 1 && (clock === 'wrong' || received.at / 1000 >= ended - 1)
}

/** The change of X-RateLimit-Remaining by one request. */
interface Change {
  readonly what: string
  readonly before: number
  readonly after: number
  readonly taken: number
}

/** The changes between passed requests. A request that passes although nothing remains is left out: `numberFaults` judges it. */
function changesOf(passed: readonly Asked[]): readonly Change[] {
  return passed.flatMap(({ question: { what } }, i) => {
    const [before, after] = [remainingOf(passed[i - 1]), remainingOf(passed[i])]
    if (before === undefined || after === undefined || before === 0) return []
    return [{ what, before, after, taken: before - after }]
  })
}

/** Whether of two equal requests one takes one and the other takes more: another client has taken the rest. */
function isShared(changes: readonly Change[]): boolean {
  // A request that leaves 0 may have taken more than it shows.
  const takesOne = new Set(
    changes.flatMap(({ what, taken, after }) => (taken === 1 && after > 0 ? [what] : [])),
  )
  return changes.some(({ what, taken }) => taken > 1 && takesOne.has(what))
}

/** Whether a window that should be new was already open: other clients have used it. */
function wasOpen(passed: readonly Asked[], changes: readonly Change[], requests: number): boolean {
  if (passed.length === 0) return true
  const first = remainingOf(passed[0])
  return first !== undefined && first < requests - 1 && changes.every(({ taken }) => taken === 1)
}

/** The departures from this: each request takes one from what remains (C13), and nothing comes back before the window ends (C14). */
function countFaults(changes: readonly Change[], usedUp: boolean): readonly Departed[] {
  const fault = (promise: OutsideId, { what, before, after }: Change, wanted: string): Departed => {
    return { promise, sent: what, came: `X-RateLimit-Remaining: ${after}, after ${before}`, wanted }
  }
  const back = changes.find(({ taken }) => taken < 0)
  if (back !== undefined) return [fault('C14', back, 'nothing comes back before the window ends')]
  const [first] = changes
  // If no request takes any and yet the window is used up, the field is wrong and not the count.
  if (first !== undefined && usedUp && changes.every(({ taken }) => taken === 0))
    return [fault('C16', first, 'one less each time')]
  const wanted = 'one less: every request counts once, in the window of its endpoint type'
  return changes.filter(({ taken }) => taken !== 1).map((change) => fault('C13', change, wanted))
}

/** The departures from this: exactly the limit passes (C14), and past it each kind of request gets 429 (C15). */
function numberFaults(
  passed: readonly Asked[],
  limit: number | undefined,
  refused: readonly Asked[],
): readonly Departed[] {
  const expected = limit ?? (remainingOf(passed[0]) ?? Number.NaN) + 1
  const extra = passed.length - expected
  // A window that is not used up proves nothing, unless too many have passed.
  const wrongNumber = extra > 0 || (extra < 0 && refused.length > 0)
  const number: Departed = {
    promise: 'C14',
    sent: 'one request after the other, over one connection',
    came: `${passed.length} passed`,
    wanted: `${expected} pass in the window, then 429`,
  }
  const others = refused.filter(({ received }) => received.status !== 429)
  return [
    ...(wrongNumber ? [number] : []),
    ...others.map(({ question, received }): Departed => {
      return { promise: 'C15', sent: `${question.what}, past the limit`, came: received, wanted: '429' }
    }),
  ]
}
