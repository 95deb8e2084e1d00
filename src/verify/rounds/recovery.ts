import { type Answer, retryAfter } from '../answer.ts'
import type { BurstDeparture } from '../burst.ts'
import { type Limit, limitFieldsOf } from '../limit-faults.ts'
import { apiRequest, type Question, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Endpoint } from '../verdict.ts'
import { useOfFirstToken } from './lifetime.ts'

/** A window shorter than this has no moment that is surely before its end (s). */
const SHORTEST = 3

/** `Retry-After` is rounded up to a second, so this long before it is over the window is still closed (ms). */
const BEFORE = 1_600

/** Asks shortly before a used-up window ends, which must fail (C14), and when `Retry-After` is over, which must not (C15). */
export async function recovery(stage: Stage, endpoint: Endpoint, refused: Answer): Promise<BurstDeparture[]> {
  const { window } = stage.options.limits[endpoint]
  const { options, admitted, clock } = stage
  const early = endpoint === 'api' ? apiRequest(options.path, admitted?.accessToken ?? '') : UNSUPPORTED_GRANT
  const name = endpoint === 'api' ? 'API' : '/oauth/token'
  const end = endOf(stage, endpoint, refused)
  stage.say(`${name}: the window is used up; it ends in ${Math.ceil((end - clock.wall()) / 1000)} s`)
  let last = refused
  // A wrong Retry-After, or a wrong reset, must not make this late.
  const wait = Math.min(end, stage.records.windowEnd(endpoint)) - BEFORE - clock.wall()
  if (window >= SHORTEST && wait > 0) {
    await stage.pause(wait)
    last = await stage.send(early)
    if (last.status !== 429) return [departure(stage, early, last, 'C14')]
  }
  // A refused request must not make the window longer, so the wait of the first one counts, up to its rounding.
  await stage.pause(Math.min(endOf(stage, endpoint, last), end + 1000) - clock.wall())
  const question = endpoint === 'api' ? useOfFirstToken(stage) : UNSUPPORTED_GRANT
  const after = await stage.send(question)
  stage.openings.set(endpoint, after)
  if (endpoint === 'api') stage.lateUse = { question, answer: after }
  if (after.status === 429) return [departure(stage, question, after, 'C15')]
  return notNew(question, after, options.limits[endpoint])
}

/** C14: at the reset all of a fixed window comes back. A sliding window still counts the later requests. */
function notNew({ what }: Question, answer: Answer, { requests }: Limit): BurstDeparture[] {
  const remaining = limitFieldsOf(answer)?.remaining
  if (remaining === undefined || remaining >= requests - 1) return []
  const came = `X-RateLimit-Remaining: ${remaining}`
  const wanted = `${requests - 1}: the window is new`
  return [{ promise: 'C14', sent: `${what}, at the reset`, came, wanted, clause: 'device API §8' }]
}

/** When a refused client may ask again, by `Retry-After` or, without a right one, by the reset (Unix time in ms). */
function endOf({ options, records }: Stage, endpoint: Endpoint, refused: Answer): number {
  const wait = retryAfter(refused)
  const { window } = options.limits[endpoint]
  return wait === undefined || wait < 1 || wait > window
    ? records.windowEnd(endpoint)
    : refused.at + wait * 1000
}

function departure(stage: Stage, question: Question, answer: Answer, promise: 'C14' | 'C15'): BurstDeparture {
  const [when, wanted] =
    promise === 'C14'
      ? [`${BEFORE / 1000} s before the window ends`, '429: a used-up window stays closed until its reset']
      : ['when Retry-After is over', 'a request that passes, in a new window']
  const sent = { what: `${question.what}, ${when}` }
  return { promise, ...stage.departure(sent, answer, wanted, 'device API §8; RFC 6585 §4') }
}
