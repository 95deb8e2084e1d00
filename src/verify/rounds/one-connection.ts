import type { Endpoint } from '../../http/admission.ts'
import { type Asked, apiRequest, ENDPOINTS, type Received, UNSUPPORTED_GRANT } from '../exchange.ts'
import type { Server } from '../server.ts'
import { type Broken, broken, conclude, untested } from '../verdict.ts'
import { limitFieldsOf, retryAfterFaults } from '../windows.ts'
import { type Known, type Round, withToken } from './round.ts'
import { createBurst, EXTRA, judgeInOrder, useUpNewWindows, WINDOWS_TRIED } from './use-up.ts'
import { recovery, secondWindows } from './used-up-window.ts'

/** Those of `separateWindows`, `secondWindows` and `recovery`. */
const OTHER_REQUESTS = 100

/** Every 429 of a window has the same faults. */
const MOST_ALIKE = 2

/** These need a used-up window. */
const DECIDED_BY_429 = ['C15', 'H69'] as const

/**
 * C13, C15 and H69: both windows are used up over one connection; then they have to stay closed, and open again. A quick run uses up
 * what is left of the open windows, and does not wait for their end.
 */
export const oneConnection: Round = {
  promises: ['C13', 'C14', 'C15', 'C16', 'H69'],
  cost: ({ limits, quick }) => ({
    requests:
      (quick ? 1 : WINDOWS_TRIED) * (limits.api.requests + limits.oauth.requests + 2 * EXTRA) +
      OTHER_REQUESTS,
    seconds: quick ? 2 : 2 * Math.max(limits.api.window, limits.oauth.window),
  }),
  run: withToken(['C13', 'C14', 'C15', 'H69'], async (server, known) => {
    const { quick, limits } = server.options
    const found = await separateWindows(server, known)
    const bursts = ENDPOINTS.map((endpoint) => createBurst(server, known, endpoint))
    if (!quick && !(await useUpNewWindows(server, bursts))) {
      const left = untested(['C13', ...DECIDED_BY_429], 'the server is too slow to use up a window')
      return { judgements: [...found, ...left] }
    }
    const usedUp: Endpoint[] = []
    const closed: [Endpoint, Received][] = []
    for (const { endpoint, steps, open, useUp } of bursts) {
      // Once its window is used up, the revocation would have to wait for a new one.
      if (quick && endpoint === 'oauth') await server.revokeAll('without waiting')
      if (quick) await open()
      if (quick) await useUp()
      const refusals = steps.filter(({ received }) => received.status === 429)
      const wrong = refusals.flatMap(({ question: { what }, received }) =>
        retryAfterFaults(received, limits[endpoint], received.sentAt).map((came) =>
          broken(
            'C15',
            `${what}, past the limit`,
            came,
            'a Retry-After of at least 1 s that ends with the window',
          ),
        ),
      )
      found.push(...judgeInOrder(steps, limits[endpoint], !quick), ...wrong.slice(0, MOST_ALIKE))
      const last = refusals.at(-1)?.received
      if (last === undefined) continue
      usedUp.push(endpoint)
      const second = await secondWindows(server, known, endpoint)
      found.push(...second.found)
      if (!quick && !second.reopened) closed.push([endpoint, last])
    }
    const ends = await Promise.all(closed.map(([endpoint, last]) => recovery(server, known, endpoint, last)))
    const openings = new Map(
      ends.flatMap(({ opening }): [Endpoint, Asked][] =>
        opening === undefined ? [] : [[opening.question.endpoint, opening]],
      ),
    )
    found.push(...ends.flatMap((end) => end.found))
    const all = usedUp.length === bursts.length
    return {
      judgements: [
        ...conclude(['C13', ...(quick ? [] : ['C14' as const]), ...(all ? DECIDED_BY_429 : [])], found),
        ...untested(all ? [] : DECIDED_BY_429, 'the server refused no request past a limit'),
        ...untested(quick ? ['C15'] : [], 'how a used-up window ends is left out by --quick'),
      ],
      facts: { openings },
    }
  }),
}

/** C13: requests to the API between two to the token endpoint take nothing from the window of the latter. */
async function separateWindows(server: Server, { admitted }: Known): Promise<Broken[]> {
  const api = apiRequest(server.options.path, admitted.accessToken)
  const before = limitFieldsOf(await server.send(UNSUPPORTED_GRANT))
  for (let i = 0; i < 2; i += 1) await server.send(api)
  const received = await server.send(UNSUPPORTED_GRANT)
  const after = limitFieldsOf(received)
  // Without a difference the field is wrong, and with a later reset the window is another one.
  if (before === undefined || after === undefined || received.status === 429) return []
  if (before.remaining - after.remaining <= 1 || Math.abs(after.reset - before.reset) > 1) return []
  const sent = `${api.what}, twice, between two requests to /oauth/token`
  const came = `X-RateLimit-Remaining at /oauth/token: ${after.remaining}, after ${before.remaining}`
  return [broken('C13', sent, came, 'one less: each endpoint type has a window of its own')]
}
