import type { OutsideId } from '../../promises/promises.ts'
import type { Answer } from '../answer.ts'
import { judgeBurst, type Step } from '../burst.ts'
import { isPlausibleReset, type Limit, limitFieldsOf, refusalFaults } from '../limit-faults.ts'
import { retryAfter } from '../observation.ts'
import { apiRequest, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Broken, Endpoint } from '../verdict.ts'
import { recovery } from './recovery.ts'
import { broken, concludeAll, type Round, untested } from './round.ts'
import { secondWindows } from './second-windows.ts'
import { EXTRA, useUp, WINDOWS_TRIED } from './use-up.ts'
import type { Admitted } from './usual-request.ts'

/** Those of `separateWindows`, `secondWindows` and `recovery`. */
const OTHER_REQUESTS = 50

/** C13, C15 and H69: both windows are used up over one connection; then they have to stay closed, and open again. */
export const oneConnection: Round = {
  promises: ['C13', 'C14', 'C15', 'C16', 'H69'],
  cost: ({ limits, quick }) => ({
    requests:
      (quick ? 1 : WINDOWS_TRIED) * (limits.api.requests + limits.oauth.requests + 2 * EXTRA) +
      OTHER_REQUESTS,
    seconds: quick ? 5 : 2 * Math.max(limits.api.window, limits.oauth.window),
  }),
  async run(stage) {
    const { admitted } = stage
    if (admitted === undefined) return untested(['C13', 'C14', 'C15', 'H69'], 'no token was admitted')
    const { quick, limits } = stage.options
    const found: Broken[] = await separateWindows(stage, admitted)
    const used = await useUp(stage, admitted)
    if (used === undefined)
      return [...found, ...untested(['C13', 'C15', 'H69'], 'the server is too slow to use up a window')]
    const limited = new Set<Endpoint>()
    const closed = new Map<Endpoint, Answer>()
    for (const [endpoint, steps] of used) {
      found.push(...judgeBurst(steps, limits[endpoint], !quick))
      const refusals = steps.filter(({ answer }) => answer.status === 429)
      found.push(...refusals.flatMap((step) => refusalDepartures(step, limits[endpoint])).slice(0, 2))
      const last = refusals.at(-1)
      if (last === undefined) continue
      limited.add(endpoint)
      const second = await secondWindows(stage, admitted, endpoint)
      found.push(...second.found)
      if (!second.reopened) closed.set(endpoint, last.answer)
    }
    if (!quick) {
      const reopened = [...closed].map(([endpoint, answer]) => recovery(stage, admitted, endpoint, answer))
      found.push(...(await Promise.all(reopened)).flat())
    }
    const allClosed = limited.size === used.size
    return [
      ...concludeAll(
        ['C13', ...(quick ? [] : ['C14' as const]), ...(allClosed ? DECIDED_BY_429 : [])],
        found,
      ),
      ...(allClosed ? [] : untested(DECIDED_BY_429, 'the server refused no request past a limit')),
      ...(quick ? untested(['C15'], 'how a used-up window ends is left out by --quick') : []),
    ]
  },
}

/** They need a used-up window. */
const DECIDED_BY_429: readonly OutsideId[] = ['C15', 'H69']

/** C13: requests to the API between two to the token endpoint take nothing from the window of the latter. */
async function separateWindows(stage: Stage, { accessToken }: Admitted): Promise<Broken[]> {
  const api = apiRequest(stage.options.path, accessToken)
  const before = limitFieldsOf(await stage.send(UNSUPPORTED_GRANT))
  for (let i = 0; i < 2; i += 1) await stage.send(api)
  const answer = await stage.send(UNSUPPORTED_GRANT)
  const after = limitFieldsOf(answer)
  // Without a difference the field is wrong, and with a later reset the window is another one.
  if (before === undefined || after === undefined || answer.status === 429) return []
  const taken = before.remaining - after.remaining
  if (taken <= 1 || Math.abs(after.reset - before.reset) > 1) return []
  return [
    broken('C13', {
      sent: `${api.what}, twice, between two requests to /oauth/token`,
      came: `X-RateLimit-Remaining at /oauth/token: ${after.remaining}, after ${before.remaining}`,
      wanted: 'one less: each endpoint type has a window of its own',
      clause: 'device API §8',
    }),
  ]
}

/** The faults of a 429 that need no other response (C15). Its X-RateLimit fields are read with those of all others. */
function refusalDepartures({ question, answer }: Step, limit: Limit): Broken[] {
  const texts = refusalFaults(answer, limit).map(({ text }) => text)
  if (waitsTooLong(answer, limit)) texts.push('Retry-After ends after the reset')
  return texts.map((came) =>
    broken('C15', {
      sent: `${question.what}, past the limit`,
      came,
      wanted: 'a Retry-After of at least 1 s that ends with the window',
      clause: 'RFC 6585 §4; RFC 9110 §10.2.3',
    }),
  )
}

/** Both fields are rounded up, and the clocks of server and client differ a little (s). */
const TOLERANCE = 2

function waitsTooLong(answer: Answer, limit: Limit): boolean {
  const reset = limitFieldsOf(answer)?.reset
  const wait = retryAfter(answer)
  if (reset === undefined || wait === undefined || !isPlausibleReset(reset, answer, limit)) return false
  return wait <= limit.window && answer.sentAt / 1000 + wait > reset + TOLERANCE
}
