import type { Asked } from '../exchange.ts'
import { type Broken, broken } from '../verdict.ts'
import { type Limit, limitFieldsOf } from '../windows.ts'

/**
 * Judges the requests of one window, in order, until some were refused. If the window ends on the way, those of the next one are
 * judged.
 *
 * @param whole whether the first step opened the window
 */
export function judgeInOrder(all: readonly Asked[], limit: Limit, whole: boolean): readonly Broken[] {
  const start = all.findLastIndex((step, i) => opensNext(all[i - 1], step))
  const steps = all.slice(Math.max(start, 0))
  const end = steps.findIndex(({ expected, received }) => received.status !== expected)
  const passed = end === -1 ? steps : steps.slice(0, end)
  const usedUp = passed.length < steps.length
  const miscounted = countFaults(passed, usedUp)
  if (miscounted.length > 0) return miscounted
  // Past the limit each kind of request gets 429.
  const wrong = steps.slice(passed.length).filter(({ received }) => received.status !== 429)
  return [
    ...numberFaults(passed, limit, whole || start > 0, usedUp),
    ...lastOfEach(
      wrong.map(({ question, received }) =>
        broken('C15', `${question.what}, past the limit`, received, '429'),
      ),
    ),
  ]
}

/** The last departure of each kind of request. */
function lastOfEach(found: readonly Broken[]): readonly Broken[] {
  return [...new Map(found.map((each) => [each.sent, each])).values()]
}

/** The X-RateLimit-Remaining of a response. */
export function remainingOf(step: Asked | undefined): number | undefined {
  return step && limitFieldsOf(step.received)?.remaining
}

/** Whether a step opens a new window, because the one of the step before is over. */
function opensNext(before: Asked | undefined, { received }: Asked): boolean {
  const ended = before && limitFieldsOf(before.received)?.reset
  const reset = limitFieldsOf(received)?.reset
  return ended !== undefined && reset !== undefined && reset > ended + 1 && received.at / 1000 >= ended - 1
}

/** Each request takes one from what remains (C13), and nothing comes back before the window ends (C14). */
function countFaults(passed: readonly Asked[], usedUp: boolean): readonly Broken[] {
  const changes = passed.flatMap(({ question: { what } }, i) => {
    const [before, after] = [remainingOf(passed[i - 1]), remainingOf(passed[i])]
    // A request that passes although nothing remains is a matter of the limit.
    if (before === undefined || after === undefined || before === 0) return []
    const fault = (promise: Broken['promise'], wanted: string): Broken =>
      broken(promise, what, `X-RateLimit-Remaining: ${after}, after ${before}`, wanted)
    return [{ taken: before - after, fault }]
  })
  const back = changes.find(({ taken }) => taken < 0)
  if (back !== undefined) return [back.fault('C14', 'nothing comes back before the window ends')]
  const [first] = changes
  // If no request takes any and yet the window is used up, the field is wrong and not the count.
  if (first !== undefined && usedUp && changes.every(({ taken }) => taken === 0))
    return [first.fault('C16', 'one less each time')]
  const wanted = 'one less: every request counts once, in the window of its endpoint type'
  return lastOfEach(changes.filter(({ taken }) => taken !== 1).map(({ fault }) => fault('C13', wanted)))
}

function numberFaults(passed: readonly Asked[], limit: Limit, whole: boolean, usedUp: boolean): Broken[] {
  const sent = 'one request after the other, over one connection'
  const [first, last] = [passed[0], passed.at(-1)]
  if (first === undefined || last === undefined)
    return whole ? [broken('C14', sent, '429 for the first request after the reset', 'a new window')] : []
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
  return [broken(promise, sent, `${passed.length} passed`, `${expected} pass in the window, then 429`)]
}
