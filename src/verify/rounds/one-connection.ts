import type { OutsideId } from '../../promises/promises.ts'
import type { Answer } from '../answer.ts'
import { judgeBurst, type Step } from '../burst.ts'
import { type Limit, limitFieldsOf, refusalFaults, statedReset } from '../limit-faults.ts'
import { retryAfter } from '../observation.ts'
import { apiRequest, UNSUPPORTED_GRANT } from '../question.ts'
import { revokeAll } from '../revocation.ts'
import type { Stage } from '../stage.ts'
import { type Broken, ENDPOINTS, type Endpoint, type Finding } from '../verdict.ts'
import { recovery } from './recovery.ts'
import { broken, concludeAll, type Round, untested } from './round.ts'
import { secondWindows } from './second-windows.ts'
import { EXTRA, useUpNewWindows, useUpTheRest, WINDOWS_TRIED } from './use-up.ts'
import type { Admitted } from './usual-request.ts'

/** Those of `separateWindows`, `secondWindows` and `recovery`. */
const OTHER_REQUESTS = 100

/** C13, C15 and H69: both windows are used up over one connection; then they have to stay closed, and open again. */
export const oneConnection: Round = {
  promises: ['C13', 'C14', 'C15', 'C16', 'H69'],
  cost: ({ limits, quick }) => ({
    requests:
      (quick ? 1 : WINDOWS_TRIED) * (limits.api.requests + limits.oauth.requests + 2 * EXTRA) +
      OTHER_REQUESTS,
    seconds: quick ? 2 : 2 * Math.max(limits.api.window, limits.oauth.window),
  }),
  async run(stage) {
    const { admitted } = stage
    if (admitted === undefined) return untested(['C13', 'C14', 'C15', 'H69'], 'no token was admitted')
    const found = await separateWindows(stage, admitted)
    return [...found, ...(await (stage.options.quick ? quickly : wholly)(stage, admitted))]
  },
}

/** What is open of both windows is used up, one after the other. */
async function quickly(stage: Stage, admitted: Admitted): Promise<Finding[]> {
  const used: UsedWindow[] = []
  for (const endpoint of ENDPOINTS) {
    // Later the revocation would have to wait for a new window.
    if (endpoint === 'oauth') await revokeAll(stage, 'without waiting')
    const steps = await useUpTheRest(stage, admitted, endpoint)
    used.push(await judge(stage, admitted, endpoint, steps))
  }
  return [
    ...concluded(['C13'], used),
    ...untested(['C15'], 'how a used-up window ends is left out by --quick'),
  ]
}

/** New windows of both are used up, and open again. */
async function wholly(stage: Stage, admitted: Admitted): Promise<Finding[]> {
  const windows = await useUpNewWindows(stage, admitted)
  if (windows === undefined)
    return untested(['C13', 'C15', 'H69'], 'the server is too slow to use up a window')
  const used: UsedWindow[] = []
  for (const [endpoint, steps] of windows) used.push(await judge(stage, admitted, endpoint, steps))
  const reopened = await Promise.all(
    used.map(({ endpoint, closed }) =>
      closed === undefined ? [] : recovery(stage, admitted, endpoint, closed),
    ),
  )
  return concluded(['C13', 'C14'], used, reopened.flat())
}

interface UsedWindow {
  readonly endpoint: Endpoint
  readonly found: readonly Broken[]
  /** Whether a request was refused. */
  readonly limited: boolean
  /** The last refusal, if the window is still closed behind it. */
  readonly closed: Answer | undefined
}

async function judge(
  stage: Stage,
  admitted: Admitted,
  endpoint: Endpoint,
  steps: readonly Step[],
): Promise<UsedWindow> {
  const { quick, limits } = stage.options
  const limit = limits[endpoint]
  const refusals = steps.filter(({ answer }) => answer.status === 429)
  const found = [
    ...judgeBurst(steps, limit, !quick),
    ...refusals.flatMap((step) => refusalDepartures(step, limit)).slice(0, MOST_ALIKE),
  ]
  const last = refusals.at(-1)
  if (last === undefined) return { endpoint, found, limited: false, closed: undefined }
  const second = await secondWindows(stage, admitted, endpoint)
  const closed = second.reopened ? undefined : last.answer
  return { endpoint, found: [...found, ...second.found], limited: true, closed }
}

/** Every 429 of a window has the same faults. */
const MOST_ALIKE = 2

function concluded(
  promises: readonly OutsideId[],
  used: readonly UsedWindow[],
  more: readonly Broken[] = [],
): Finding[] {
  const found = [...used.flatMap((each) => each.found), ...more]
  if (used.every(({ limited }) => limited)) return concludeAll([...promises, ...DECIDED_BY_429], found)
  return [
    ...concludeAll(promises, found),
    ...untested(DECIDED_BY_429, 'the server refused no request past a limit'),
  ]
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
  const reset = statedReset(answer, limit)
  const wait = retryAfter(answer)
  if (reset === undefined || wait === undefined) return false
  return wait <= limit.window && answer.sentAt / 1000 + wait > reset + TOLERANCE
}
