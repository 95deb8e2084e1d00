import type { Answer } from '../answer.ts'
import { type Limit, limitFieldsOf } from '../limit-faults.ts'
import { retryAfter } from '../observation.ts'
import { type Question, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import { type Broken, type Endpoint, endpointName } from '../verdict.ts'
import { useOfFirstToken } from './lifetime.ts'
import { broken } from './round.ts'
import { type Admitted, usualRequest } from './usual-request.ts'

/** A window shorter than this has no moment that is surely before its end (s). */
const SHORTEST_WINDOW = 3

/** The window is still closed so long before `Retry-After` is over (ms): it is rounded up by a second, and clocks differ a little. */
const EARLY = 1_600

/** The window may end so long before `Retry-After` is over, or before the reset (ms). */
const ROUNDED = 1_200

/** Asks shortly before a used-up window ends, which must fail (C14), and when `Retry-After` is over, which must not (C15). */
export async function recovery(
  stage: Stage,
  admitted: Admitted,
  endpoint: Endpoint,
  refused: Answer,
): Promise<Broken[]> {
  const { options, clock } = stage
  const { window } = options.limits[endpoint]
  const { question: early } = usualRequest(options.path, admitted, endpoint)
  const end = endOf(stage, endpoint, refused)
  stage.say(
    `${endpointName(endpoint)}: the window is used up; it ends in ${Math.ceil((end - clock.wall()) / 1000)} s`,
  )
  let last = refused
  // A wrong Retry-After, or a wrong reset, must not make this late.
  const sure = Math.min(end, stage.records.windowEnd(endpoint))
  const wait = sure - EARLY - clock.wall()
  if (window >= SHORTEST_WINDOW && wait > 0) {
    await stage.pause(wait)
    last = await stage.send(early)
    // On a busy machine it may come so late that it opens the next window. That proves nothing.
    const inTime = last.at + (refused.at - refused.sentAt) < sure - ROUNDED
    if (last.status !== 429 && !inTime) return []
    if (last.status !== 429) return [departure(stage, early, last, 'C14')]
  }
  // A refused request must not make the window longer: the first Retry-After decides, and a later one may add its rounding.
  await stage.pause(Math.min(endOf(stage, endpoint, last), end + 1000) - clock.wall())
  const question = endpoint === 'api' ? useOfFirstToken(stage) : UNSUPPORTED_GRANT
  const after = await stage.send(question)
  stage.openings.set(endpoint, after)
  if (endpoint === 'api') stage.lateUse = { question, answer: after }
  if (after.status === 429) return [departure(stage, question, after, 'C15')]
  return notNew(question, after, options.limits[endpoint])
}

/** C14: at the reset all of a fixed window comes back. A sliding window still counts the later requests. */
function notNew({ what }: Question, answer: Answer, { requests }: Limit): Broken[] {
  const remaining = limitFieldsOf(answer)?.remaining
  if (remaining === undefined || remaining >= requests - 1) return []
  const came = `X-RateLimit-Remaining: ${remaining}`
  const wanted = `${requests - 1}: the window is new`
  return [broken('C14', { sent: `${what}, at the reset`, came, wanted, clause: 'device API §8' })]
}

/** When a refused client may ask again, by `Retry-After` or, without a right one, by the reset (Unix time in ms). */
function endOf({ options, records }: Stage, endpoint: Endpoint, refused: Answer): number {
  const wait = retryAfter(refused)
  const { window } = options.limits[endpoint]
  return wait === undefined || wait < 1 || wait > window
    ? records.windowEnd(endpoint)
    : refused.at + wait * 1000
}

function departure(stage: Stage, question: Question, answer: Answer, promise: 'C14' | 'C15'): Broken {
  const [when, wanted] =
    promise === 'C14'
      ? [`${EARLY / 1000} s before the window ends`, '429: a used-up window stays closed until its reset']
      : ['when Retry-After is over', 'a request that passes, in a new window']
  const sent = { what: `${question.what}, ${when}` }
  return broken(promise, stage.departure(sent, answer, wanted, 'device API §8; RFC 6585 §4'))
}
