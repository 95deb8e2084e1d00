import { randomUUID } from 'node:crypto'
import { type Answer, retryAfter } from '../answer.ts'
import { type BurstDeparture, judgeBurst, NONE, type Step } from '../burst.ts'
import { isPlausibleReset, type Limit, limitFieldsOf, refusalFaults } from '../limit-faults.ts'
import {
  apiRequest,
  type Question,
  refreshGrant,
  tokenRequest,
  UNSUPPORTED_GRANT,
  unauthorized,
} from '../question.ts'
import { revokeAll } from '../revocation.ts'
import type { Stage } from '../stage.ts'
import type { Departure, Endpoint, Finding } from '../verdict.ts'
import { recovery } from './recovery.ts'
import { takeTokens } from './refresh.ts'
import { conclude, type Round, untested } from './round.ts'
import { secondWindows } from './second-windows.ts'

const ENDPOINTS: readonly Endpoint[] = ['api', 'oauth']

/** Requests past the limit: each kind comes several times. */
const PAST = 9

/** C13, C15 and H69: both windows are used up over one connection; then they have to stay closed, and open again. */
export const oneConnection: Round = {
  promises: ['C13', 'C14', 'C15', 'C16', 'H69'],
  cost: ({ limits, quick }) => ({
    requests: limits.api.requests + limits.oauth.requests + 2 * PAST + 32,
    seconds: quick ? 5 : 2 * Math.max(limits.api.window, limits.oauth.window),
  }),
  async run(stage) {
    if (stage.admitted === undefined) return untested(['C13', 'C14', 'C15', 'H69'], 'no token was admitted')
    const { quick, limits } = stage.options
    const departures: BurstDeparture[] = []
    const spoofed: Departure[] = []
    const closed = new Map<Endpoint, Answer>()
    for (const endpoint of ENDPOINTS) {
      // Later it would have to wait for a new window.
      if (quick && endpoint === 'oauth') await revokeAll(stage)
      const steps = await useUp(stage, endpoint)
      if (steps.length === 0)
        return untested(['C13', 'C15', 'H69'], 'the server is too slow to use up a window')
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
    return findings(stage, departures, closed.size === ENDPOINTS.length ? spoofed : undefined)
  },
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

/** Sends requests of every outcome in turn until some were refused. Empty if no window was long enough for them. */
async function useUp(stage: Stage, endpoint: Endpoint): Promise<Step[]> {
  const { quick, limits } = stage.options
  const limit = limits[endpoint]
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    if (!quick) await stage.waitForWindow(endpoint, 'one connection needs a new window')
    const start = stage.clock.monotonic()
    const steps = await burst(stage, endpoint)
    const inTime = stage.clock.monotonic() - start < limit.window * 1000
    const first = limitFieldsOf(steps[0]?.answer ?? NONE)?.remaining
    const opened = quick || first === undefined || first === limit.requests - 1
    // A server that counts wrongly never shows a new window.
    if (inTime && (opened || attempt > 1)) return steps
  }
  return []
}

/** Windows that are tried: the first may have been open already, because the clocks of server and client differ. */
const ATTEMPTS = 3

async function burst(stage: Stage, endpoint: Endpoint): Promise<Step[]> {
  const most = stage.options.limits[endpoint].requests + PAST
  const kinds = endpoint === 'api' ? apiKinds(stage) : oauthKinds(stage)
  const [withToken] = kinds
  const steps: Step[] = []
  const statuses = new Map<string, number>()
  let refused = 0
  let apart = false
  while (steps.length - refused < most && refused < PAST) {
    if (steps.length === ORDER.length && endpoint === 'api') apart = countsApart(steps)
    const kind = apart ? withToken : kinds[ORDER[steps.length] ?? steps.length % kinds.length]
    const { question, expected } = kind?.() ?? UNSUPPORTED
    const answer = await stage.send(question)
    if (endpoint === 'oauth') takeTokens(stage.grants[0], answer)
    if (answer.status === 429) refused += 1
    // Whether the status is right is a matter of other rounds: here it has to stay the same until the window is used up.
    else if (answer.status !== 0 && !statuses.has(question.what)) statuses.set(question.what, answer.status)
    const usual = statuses.get(question.what) ?? expected
    steps.push({ question, expected: usual, answer: stage.records.masked(answer) })
  }
  return apart ? steps.filter(({ question }) => question.what === withToken?.().question.what) : steps
}

/** The kinds of the first requests: with a token, twice without, with a token. */
const ORDER = [0, 1, 1, 0]

/**
 * Whether requests without a token have a window of their own, as with `limits.api.per: grant`. Then only those with a token can use
 * up a window here. A server that does not count the others shows the same number for both.
 */
function countsApart(steps: readonly Step[]): boolean {
  const [first, second, third, fourth] = steps.map(({ answer }) => limitFieldsOf(answer)?.remaining)
  if (first === undefined || second === undefined || third === undefined || fourth === undefined) return false
  return first - fourth === 1 && second - third === 1 && first - second !== 1
}

type Kind = Pick<Step, 'question' | 'expected'>

function apiKinds({ options: { path }, admitted }: Stage): readonly (() => Kind)[] {
  const unknown = ['Authorization', `Bearer ${randomUUID()}`]
  return [
    () => ({ question: apiRequest(path, admitted?.accessToken ?? ''), expected: admitted?.status ?? 200 }),
    () => ({ question: unauthorized(path, [], 'without a token'), expected: 401 }),
    () => ({ question: unauthorized(path, unknown, 'with an unknown token'), expected: 401 }),
  ]
}

const INCOMPLETE: Question = {
  ...tokenRequest([['grant_type', 'password']], 'without password'),
  refused: true,
}

const UNSUPPORTED: Kind = { question: UNSUPPORTED_GRANT, expected: 400 }

/** In a quick run the tokens are revoked by now. */
function oauthKinds({ grants, options: { quick } }: Stage): readonly (() => Kind)[] {
  const refresh = (): Kind => ({ question: refreshGrant(grants[0]?.refreshToken ?? ''), expected: 200 })
  return [
    quick ? () => UNSUPPORTED : refresh,
    () => UNSUPPORTED,
    () => ({ question: INCOMPLETE, expected: 400 }),
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
