import { type Answer, describeAnswer } from './answer.ts'
import { type Limit, limitFieldsOf } from './limit-faults.ts'
import type { Question } from './question.ts'
import type { Departure } from './verdict.ts'

/** One request of a burst over one connection, and its response. */
export interface Step {
  readonly question: Question
  /** The status when it passes the limit. */
  readonly expected: number
  readonly answer: Answer
}

export interface BurstDeparture extends Departure {
  readonly promise: 'C13' | 'C14' | 'C15' | 'C16'
}

const CLAUSE = 'device API §8'

/**
 * Judges the requests of one window, in order, until some were refused.
 *
 * @param whole whether the first step opened the window
 */
export function judgeBurst(steps: readonly Step[], limit: Limit, whole: boolean): BurstDeparture[] {
  const end = steps.findIndex(({ expected, answer }) => answer.status !== expected)
  const passed = end === -1 ? steps : steps.slice(0, end)
  const [miscounted, stuck] = countFaults(passed)
  if (miscounted.length > 0 || stuck.length > 0) return [...miscounted, ...stuck]
  return [...numberFaults(passed, limit, whole), ...refusalStatusFaults(steps.slice(passed.length))]
}

/** C13: each request takes one from what remains. If no request takes any, the field is wrong and not the count (C16). */
function countFaults(passed: readonly Step[]): [BurstDeparture[], BurstDeparture[]] {
  const steps = passed.flatMap((step, i) => {
    const before = limitFieldsOf(passed[i - 1]?.answer ?? NONE)?.remaining
    const after = limitFieldsOf(step.answer)?.remaining
    // A request that passes although nothing remains is a matter of the limit.
    return before === undefined || after === undefined || before === 0 ? [] : [{ step, before, after }]
  })
  const wrong = steps.filter(({ before, after }) => before - after !== 1)
  if (wrong.length === 0) return [[], []]
  const [first] = steps
  if (first !== undefined && steps.every(({ before, after }) => before === after)) {
    const came = `X-RateLimit-Remaining: ${first.after} for ${passed.length} requests in a row`
    return [
      [],
      [
        {
          promise: 'C16',
          sent: first.step.question.what,
          came,
          wanted: 'one less each time',
          clause: CLAUSE,
        },
      ],
    ]
  }
  const kinds = new Map(wrong.map((fault) => [fault.step.question.what, fault]))
  return [
    [...kinds.values()].map(({ step, before, after }) => ({
      promise: 'C13',
      sent: step.question.what,
      came: `X-RateLimit-Remaining went from ${before} to ${after}`,
      wanted: 'one less: every request counts once, in the window of its endpoint type',
      clause: CLAUSE,
    })),
    [],
  ]
}

/** No response at all. */
export const NONE = { status: 0, fields: new Map(), body: '', at: 0 } as const

function numberFaults(passed: readonly Step[], limit: Limit, whole: boolean): BurstDeparture[] {
  const stated = limitFieldsOf(passed[0]?.answer ?? NONE)?.remaining
  const expected = whole ? limit.requests : stated === undefined ? undefined : stated + 1
  if (expected === undefined || passed.length === expected) return []
  // Without X-RateLimit-Remaining a wrong number does not tell whether the limit is wrong, or what counts.
  const promise = stated === undefined ? 'C13' : 'C14'
  const sent = 'one request after the other, over one connection'
  const came = `${passed.length} passed`
  return [{ promise, sent, came, wanted: `${expected} pass in the window, then 429`, clause: CLAUSE }]
}

/** C15: past the limit each kind of request gets 429. */
function refusalStatusFaults(refused: readonly Step[]): BurstDeparture[] {
  const wrong = refused.filter(({ answer }) => answer.status !== 429)
  const kinds = new Map(wrong.map((step) => [step.question.what, step]))
  return [...kinds.values()].map(({ question, answer }) => ({
    promise: 'C15',
    sent: `${question.what}, past the limit`,
    came: describeAnswer(answer),
    wanted: '429',
    clause: 'device API §7 and §8',
  }))
}
