import { type Limit, statedReset } from './limit-faults.ts'
import { type Observation, retryAfter } from './observation.ts'
import type { Question } from './question.ts'
import { ENDPOINTS, type Endpoint } from './verdict.ts'

/** When the windows are over that responses have told of. */
export interface WindowEnds {
  add(question: Question, answer: Observation): void
  /** The same for a response of a flood. They overtake each other, so none brings an end forward. */
  addFlooded(question: Question, answer: Observation): void
  /** When the latest window of this type has ended for certain (Unix time in ms); 0 if no response told of one. */
  of(endpoint: Endpoint): number
}

/** Waited for in addition, because `X-RateLimit-Reset` comes from another clock (ms). */
const CLOCK_MARGIN = 150

export function createWindowEnds(limits: Readonly<Record<Endpoint, Limit>>): WindowEnds {
  const ends = new Map<Endpoint, number>()
  const windowEnds: WindowEnds = {
    add({ endpoint, oddity }, answer) {
      const limit = limits[endpoint]
      const reset = statedReset(answer, limit)
      const wait = answer.status === 429 ? retryAfter(answer) : undefined
      const latest = answer.at + limit.window * 1000
      const ofWait = wait === undefined || wait > limit.window ? 0 : answer.at + wait * 1000
      const end = Math.max(reset === undefined ? latest : reset * 1000, ofWait) + CLOCK_MARGIN
      // A server may count an odd request in either window.
      if (oddity === undefined && reset !== undefined) ends.set(endpoint, end)
      // A window without a stated end is over when nothing was sent for its length.
      else if (reset === undefined)
        for (const each of oddity === undefined ? [endpoint] : ENDPOINTS)
          ends.set(each, Math.max(end, ends.get(each) ?? 0))
    },
    addFlooded(question, answer) {
      const before = windowEnds.of(question.endpoint)
      windowEnds.add(question, answer)
      if (windowEnds.of(question.endpoint) < before) ends.set(question.endpoint, before)
    },
    of: (endpoint) => ends.get(endpoint) ?? 0,
  }
  return windowEnds
}
