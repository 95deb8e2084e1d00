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
    requests: limits.api.requests + limits.oauth.requests + 2 * PAST + 20,
    seconds: quick ? 5 : 2 * Math.max(limits.api.window, limits.oauth.window),
  }),
  async run(stage) {
    if (stage.grants[0] === undefined || stage.passStatus === undefined)
      return untested(['C13', 'C14', 'C15', 'H69'], 'no token was admitted')
    const { quick, limits } = stage.options
    const departures: BurstDeparture[] = []
    const spoofed: Departure[] = []
    const closed = new Map<Endpoint, Answer>()
    for (const endpoint of ENDPOINTS) {
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
  { options, records }: Stage,
  departures: readonly BurstDeparture[],
  spoofed: readonly Departure[] | undefined,
): Finding[] {
  const of = (promise: BurstDeparture['promise']): Departure[] =>
    departures
      .filter((departure) => departure.promise === promise)
      .map(({ promise: _, ...departure }) => ({ ...departure, came: records.mask(departure.came) }))
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
  const next = endpoint === 'api' ? apiKinds(stage) : oauthKinds(stage)
  const steps: Step[] = []
  let refused = 0
  while (steps.length < most && refused < PAST) {
    const { question, expected } = next(steps.length)
    const answer = await stage.send(question)
    if (endpoint === 'oauth' && expected === 200) takeTokens(stage.grants[0], answer)
    if (answer.status === 429) refused += 1
    steps.push({ question, expected, answer })
  }
  return steps
}

type Kind = Pick<Step, 'question' | 'expected'>

function apiKinds({ options: { path }, grants, passStatus = 200 }: Stage): (i: number) => Kind {
  const kinds: readonly Kind[] = [
    { question: apiRequest(path, grants[0]?.accessToken ?? ''), expected: passStatus },
    { question: unauthorized(path, [], 'without a token'), expected: 401 },
    {
      question: unauthorized(path, ['Authorization', `Bearer ${randomUUID()}`], 'with an unknown token'),
      expected: 401,
    },
  ]
  return (i) => kinds[i % kinds.length] ?? NO_KIND
}

const INCOMPLETE: Question = {
  ...tokenRequest([['grant_type', 'password']], 'without password'),
  refused: true,
}

const NO_KIND: Kind = { question: UNSUPPORTED_GRANT, expected: 400 }

function oauthKinds({ grants }: Stage): (i: number) => Kind {
  return (i) => {
    if (i % 3 === 0) return { question: refreshGrant(grants[0]?.refreshToken ?? ''), expected: 200 }
    return i % 3 === 1 ? NO_KIND : { question: INCOMPLETE, expected: 400 }
  }
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
