import { type Answer, describeAnswer } from './answer.ts'
import { type Limit, limitFieldsOf } from './limit-faults.ts'
import type { Question } from './question.ts'
import type { Broken } from './verdict.ts'

/** One request of a burst over one connection, and its response. */
export interface Step {
  readonly question: Question
  /** The status when it passes the limit. */
  readonly expected: number
  readonly answer: Answer
}

const CLAUSE = 'device API §8'

/**
 * Judges the requests of one window, in order, until some were refused. If the window ends on the way, those of the next one are
 * judged.
 *
 * @param whole whether the first step opened the window
 */
export function judgeBurst(all: readonly Step[], limit: Limit, whole: boolean): Broken[] {
  const start = all.findLastIndex((step, i) => opensNext(all[i - 1], step))
  const steps = all.slice(Math.max(start, 0))
  const end = steps.findIndex(({ expected, answer }) => answer.status !== expected)
  const passed = end === -1 ? steps : steps.slice(0, end)
  const miscounted = countFaults(passed, passed.length < steps.length)
  if (miscounted.length > 0) return miscounted
  return [
    ...numberFaults(passed, limit, { whole: whole || start > 0, usedUp: passed.length < steps.length }),
    ...refusalStatusFaults(steps.slice(passed.length)),
  ]
}

/** Whether a step opens a new window, because the one of the step before is over. */
function opensNext(before: Step | undefined, { answer }: Step): boolean {
  const ended = limitFieldsOf(before?.answer ?? NONE)?.reset
  const reset = limitFieldsOf(answer)?.reset
  return ended !== undefined && reset !== undefined && reset > ended + 1 && answer.at / 1000 >= ended - 1
}

interface Change {
  readonly step: Step
  readonly before: number
  readonly after: number
}

/** Each request takes one from what remains (C13), and nothing comes back before the window ends (C14). */
function countFaults(passed: readonly Step[], refused: boolean): Broken[] {
  const changes = passed.flatMap((step, i): readonly Change[] => {
    const before = limitFieldsOf(passed[i - 1]?.answer ?? NONE)?.remaining
    const after = limitFieldsOf(step.answer)?.remaining
    // A request that passes although nothing remains is a matter of the limit.
    return before === undefined || after === undefined || before === 0 ? [] : [{ step, before, after }]
  })
  const back = changes.find(({ before, after }) => after > before)
  if (back !== undefined) return [changeFault(back, 'C14', 'nothing comes back before the window ends')]
  const [first] = changes
  // If no request takes any and yet the window is used up, the field is wrong and not the count.
  if (first !== undefined && refused && changes.every(({ before, after }) => before === after))
    return [changeFault(first, 'C16', 'one less each time')]
  const wrong = changes.filter(({ before, after }) => before - after !== 1)
  const kinds = new Map(wrong.map((change) => [change.step.question.what, change]))
  const wanted = 'one less: every request counts once, in the window of its endpoint type'
  return [...kinds.values()].map((change) => changeFault(change, 'C13', wanted))
}

function changeFault({ step, before, after }: Change, promise: Broken['promise'], wanted: string): Broken {
  const came = `X-RateLimit-Remaining: ${after}, after ${before}`
  return { promise, kind: 'broken', sent: step.question.what, came, wanted, clause: CLAUSE }
}

/** No response at all. */
export const NONE = { status: 0, fields: new Map(), body: '', at: 0 } as const

function numberFaults(
  passed: readonly Step[],
  limit: Limit,
  { whole, usedUp }: { readonly whole: boolean; readonly usedUp: boolean },
): Broken[] {
  const sent = 'one request after the other, over one connection'
  if (passed.length === 0 && whole) {
    const came = '429 for the first request after the reset'
    return [{ promise: 'C14', kind: 'broken', sent, came, wanted: 'a new window', clause: CLAUSE }]
  }
  const stated = limitFieldsOf(passed[0]?.answer ?? NONE)?.remaining
  const expected = whole ? limit.requests : stated === undefined ? undefined : stated + 1
  if (expected === undefined || passed.length === expected) return []
  // On a busy machine the burst may end in a window that it has not used up.
  if (!usedUp && passed.length < expected) return []
  // Without X-RateLimit-Remaining a wrong number does not tell whether the limit is wrong, or what counts.
  const leaked = passed.length > expected && passed.length - expected <= mostLeaked(passed, limit)
  const promise = stated === undefined && !leaked ? 'C13' : 'C14'
  const came = `${passed.length} passed`
  const wanted = `${expected} pass in the window, then 429`
  return [{ promise, kind: 'broken', sent, came, wanted, clause: CLAUSE }]
}

/** Requests that a leaky bucket, such as `limit_req` of nginx, has forgotten by the end of these steps. */
function mostLeaked(steps: readonly Step[], { requests, window }: Limit): number {
  const [first, last] = [steps[0]?.answer, steps.at(-1)?.answer]
  if (first === undefined || last === undefined) return 0
  return Math.ceil((requests * (last.at - first.sentAt)) / (window * 1000))
}

/** C15: past the limit each kind of request gets 429. */
function refusalStatusFaults(refused: readonly Step[]): Broken[] {
  const wrong = refused.filter(({ answer }) => answer.status !== 429)
  const kinds = new Map(wrong.map((step) => [step.question.what, step]))
  return [...kinds.values()].map(({ question, answer }) => ({
    promise: 'C15',
    kind: 'broken',
    sent: `${question.what}, past the limit`,
    came: describeAnswer(answer),
    wanted: '429',
    clause: 'device API §7 and §8',
  }))
}
