import type { Endpoint } from '../../http/admission.ts'
import { type Limit, limitFieldsOf, retryAfter, retryAfterFaults, statedReset } from '../limit-fields.ts'
import type { OutsideId } from '../promises.ts'
import { type Asked, apiRequest, ENDPOINTS, UNSUPPORTED_GRANT } from '../question.ts'
import type { Server } from '../server.ts'
import { type Broken, broken, conclude, type Judgement, untested } from '../verdict.ts'
import { type Found, type Known, type Round, withToken } from './round.ts'
import {
  type Burst,
  EXTRA,
  judgeInOrder,
  type Step,
  useUpNewWindows,
  useUpTheRest,
  WINDOWS_TRIED,
} from './use-up.ts'
import { recovery, secondWindows } from './used-up-window.ts'

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
  run: withToken(['C13', 'C14', 'C15', 'H69'], async (server, known) => {
    const separate = await separateWindows(server, known)
    const found = await (server.options.quick ? quickly : wholly)(server, known)
    return { ...found, judgements: [...separate, ...found.judgements] }
  }),
}

/** What is open of both windows is used up, one after the other. */
async function quickly(server: Server, known: Known): Promise<Found> {
  const used: UsedWindow[] = []
  for (const endpoint of ENDPOINTS) {
    // Later the revocation would have to wait for a new window.
    if (endpoint === 'oauth') await server.revocation.revokeAll('without waiting')
    used.push(await judge(server, known, await useUpTheRest(server, known, endpoint)))
  }
  const left = untested(['C15'], 'how a used-up window ends is left out by --quick')
  return { judgements: [...concluded(['C13'], used), ...left] }
}

/** New windows of both are used up, and open again. */
async function wholly(server: Server, known: Known): Promise<Found> {
  const bursts = await useUpNewWindows(server, known)
  if (bursts === undefined)
    return { judgements: untested(['C13', 'C15', 'H69'], 'the server is too slow to use up a window') }
  const used: UsedWindow[] = []
  for (const burst of bursts) used.push(await judge(server, known, burst))
  const openings = new Map<Endpoint, Asked>()
  const recovered = await Promise.all(
    used.map(async ({ endpoint, refusal }) => {
      if (refusal === undefined) return []
      const { found, opening } = await recovery(server, known, endpoint, refusal)
      if (opening !== undefined) openings.set(endpoint, opening)
      return found
    }),
  )
  return { judgements: concluded(['C13', 'C14'], used, recovered.flat()), facts: { openings } }
}

type UsedWindow = Awaited<ReturnType<typeof judge>>

/** Every 429 of a window has the same faults. */
const MOST_ALIKE = 2

/** `limited`: a request was refused. `refusal`: the last one, if the window is still closed behind it. */
async function judge(server: Server, known: Known, { endpoint, steps }: Burst) {
  const { quick, limits } = server.options
  const limit = limits[endpoint]
  const refusals = steps.filter(({ received }) => received.status === 429)
  const found = [
    ...judgeInOrder(steps, limit, !quick),
    ...refusals.flatMap((step) => waitFaults(step, limit)).slice(0, MOST_ALIKE),
  ]
  const refusal = refusals.at(-1)?.received
  if (refusal === undefined) return { endpoint, found, limited: false, refusal }
  const second = await secondWindows(server, known, endpoint)
  found.push(...second.found)
  return { endpoint, found, limited: true, refusal: second.reopened ? undefined : refusal }
}

/** These need a used-up window. */
const DECIDED_BY_429: readonly OutsideId[] = ['C15', 'H69']

function concluded(
  promises: readonly OutsideId[],
  used: readonly UsedWindow[],
  more: readonly Broken[] = [],
): Judgement[] {
  const found = [...used.flatMap((each) => each.found), ...more]
  if (used.every(({ limited }) => limited)) return conclude([...promises, ...DECIDED_BY_429], found)
  const left = untested(DECIDED_BY_429, 'the server refused no request past a limit')
  return [...conclude(promises, found), ...left]
}

/** C13: requests to the API between two to the token endpoint take nothing from the window of the latter. */
async function separateWindows({ options, send }: Server, { admitted }: Known): Promise<Broken[]> {
  const api = apiRequest(options.path, admitted.accessToken)
  const before = limitFieldsOf(await send(UNSUPPORTED_GRANT))
  for (let i = 0; i < 2; i += 1) await send(api)
  const received = await send(UNSUPPORTED_GRANT)
  const after = limitFieldsOf(received)
  // Without a difference the field is wrong, and with a later reset the window is another one.
  if (before === undefined || after === undefined || received.status === 429) return []
  if (before.remaining - after.remaining <= 1 || Math.abs(after.reset - before.reset) > 1) return []
  const sent = `${api.what}, twice, between two requests to /oauth/token`
  const came = `X-RateLimit-Remaining at /oauth/token: ${after.remaining}, after ${before.remaining}`
  return [broken('C13', sent, came, 'one less: each endpoint type has a window of its own')]
}

/** Both fields are rounded up, and the clocks of server and client differ a little (s). */
const TOLERANCE = 2

/** The faults of a 429 that need no other response (C15). Its X-RateLimit fields are read with those of all others. */
function waitFaults({ question: { what }, received }: Step, limit: Limit): Broken[] {
  const texts = [...retryAfterFaults(received, limit)]
  const reset = statedReset(received, limit) ?? Number.POSITIVE_INFINITY
  const wait = retryAfter(received) ?? 0
  if (wait <= limit.window && received.sentAt / 1000 + wait > reset + TOLERANCE)
    texts.push('Retry-After ends after the reset')
  const wanted = 'a Retry-After of at least 1 s that ends with the window'
  return texts.map((came) => broken('C15', `${what}, past the limit`, came, wanted))
}
