import { type Answer, retryAfter } from '../answer.ts'
import { type BurstDeparture, judgeBurst, type Step } from '../burst.ts'
import { isPlausibleReset, type Limit, limitFieldsOf, refusalFaults } from '../limit-faults.ts'
import { apiRequest, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Departure, Endpoint, Finding } from '../verdict.ts'
import { recovery } from './recovery.ts'
import { conclude, type Round, untested } from './round.ts'
import { secondWindows } from './second-windows.ts'
import { PAST, useUp } from './use-up.ts'

/** C13, C15 and H69: both windows are used up over one connection; then they have to stay closed, and open again. */
export const oneConnection: Round = {
  promises: ['C13', 'C14', 'C15', 'C16', 'H69'],
  cost: ({ limits, quick }) => ({
    requests: limits.api.requests + limits.oauth.requests + 2 * PAST + 40,
    seconds: quick ? 5 : 2 * Math.max(limits.api.window, limits.oauth.window),
  }),
  async run(stage) {
    if (stage.admitted === undefined) return untested(['C13', 'C14', 'C15', 'H69'], 'no token was admitted')
    const { quick, limits } = stage.options
    const departures: BurstDeparture[] = await separateWindows(stage)
    const used = await useUp(stage)
    if (used === undefined)
      return untested(['C13', 'C15', 'H69'], 'the server is too slow to use up a window')
    const spoofed: Departure[] = []
    const closed = new Map<Endpoint, Answer>()
    for (const [endpoint, steps] of used) {
      departures.push(...judgeBurst(steps, limits[endpoint], !quick))
      const refusals = steps.filter(({ answer }) => answer.status === 429)
      departures.push(...refusals.flatMap((step) => refusalDepartures(stage, endpoint, step)).slice(0, 2))
      const last = refusals.at(-1)
      if (last === undefined) continue
      closed.set(endpoint, last.answer)
      spoofed.push(...(await secondWindows(stage, endpoint)))
    }
    if (!quick) {
      const reopened = await Promise.all(
        [...closed].map(([endpoint, answer]) => recovery(stage, endpoint, answer)),
      )
      departures.push(...reopened.flat())
    }
    return findings(stage, departures, closed.size === used.size ? spoofed : undefined)
  },
}

/** C13: requests to the API between two to the token endpoint take nothing from the window of the latter. */
async function separateWindows(stage: Stage): Promise<BurstDeparture[]> {
  const api = apiRequest(stage.options.path, stage.admitted?.accessToken ?? '')
  const before = limitFieldsOf(await stage.send(UNSUPPORTED_GRANT))
  for (let i = 0; i < 2; i += 1) await stage.send(api)
  const answer = await stage.send(UNSUPPORTED_GRANT)
  const after = limitFieldsOf(answer)
  // Without a difference the field is wrong, and with a later reset the window is another one.
  if (before === undefined || after === undefined || answer.status === 429) return []
  const taken = before.remaining - after.remaining
  if (taken <= 1 || Math.abs(after.reset - before.reset) > 1) return []
  return [
    {
      promise: 'C13',
      sent: `${api.what}, twice, between two requests to /oauth/token`,
      came: `X-RateLimit-Remaining at /oauth/token: ${after.remaining}, after ${before.remaining}`,
      wanted: 'one less: each endpoint type has a window of its own',
      clause: 'device API §8',
    },
  ]
}

function findings(
  { options }: Stage,
  departures: readonly BurstDeparture[],
  spoofed: readonly Departure[] | undefined,
): Finding[] {
  const of = (promise: BurstDeparture['promise']): Departure[] =>
    departures
      .filter((departure) => departure.promise === promise)
      .map(({ promise: _, ...departure }) => departure)
  const c14 = of('C14')
  const c16 = of('C16')
  const note = options.quick ? 'what needs to wait for a window is left out by --quick' : undefined
  return [
    ...conclude('C13', of('C13')),
    ...conclude('C15', of('C15'), note),
    ...(c14.length > 0 || !options.quick ? conclude('C14', c14) : []),
    ...(c16.length > 0 ? conclude('C16', c16) : []),
    ...(spoofed === undefined ? untested(['H69'], 'a limit did not hold') : conclude('H69', spoofed)),
  ]
}

/** The faults of a 429 that need no other response (C15). Its X-RateLimit fields are read with those of all others. */
function refusalDepartures(stage: Stage, endpoint: Endpoint, { question, answer }: Step): BurstDeparture[] {
  const texts = refusalFaults(answer, stage.options.limits[endpoint])
    .filter(({ promise }) => promise === 'C15')
    .map(({ text }) => text)
  if (waitsTooLong(answer, stage.options.limits[endpoint])) texts.push('Retry-After ends after the reset')
  return texts.map((came) => ({
    promise: 'C15',
    sent: `${question.what}, past the limit`,
    came,
    wanted: 'Retry-After in whole seconds, until the reset',
    clause: 'RFC 6585 §4; RFC 9110 §10.2.3',
  }))
}

/** Both fields are rounded up, and the clocks of server and client differ a little (s). */
const TOLERANCE = 2

function waitsTooLong(answer: Answer, limit: Limit): boolean {
  const reset = limitFieldsOf(answer)?.reset
  const wait = retryAfter(answer)
  if (reset === undefined || wait === undefined || !isPlausibleReset(reset, answer, limit)) return false
  return wait <= limit.window && answer.sentAt / 1000 + wait > reset + TOLERANCE
}
