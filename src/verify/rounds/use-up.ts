import { randomUUID } from 'node:crypto'
import type { Endpoint } from '../../http/admission.ts'
import {
  type Asked,
  ENDPOINTS,
  GET_TOKEN,
  type Question,
  refreshGrant,
  tokenRequest,
  UNSUPPORTED_GRANT,
  unauthorized,
} from '../exchange.ts'
import type { VerifyOptions } from '../options.ts'
import type { Server } from '../server.ts'
import { type Broken, broken, wrongResponse } from '../verdict.ts'
import { type Limit, limitFieldsOf, windowEndOf } from '../windows.ts'
import { type Known, refreshed, type UsualRequest, usualRequest } from './round.ts'

/** Requests past the limit: each kind comes several times. */
export const EXTRA = 12

/** Windows that are tried: the first may have been open already, because the clocks of server and client differ. */
export const WINDOWS_TRIED = 3

/** The requests that use up one window, one after the other. */
export interface Burst {
  readonly endpoint: Endpoint
  readonly steps: readonly Step[]
  /** Sends the first requests, and forgets those of another window. */
  open(): Promise<void>
  /** Sends the others, until some were refused. */
  useUp(): Promise<void>
}

/**
 * Uses up a new window of each endpoint type with requests of every outcome, half of it later than the rest: a sliding window has no
 * single end. Resolves to whether a window was long enough for them.
 */
export async function useUpNewWindows(server: Server, bursts: readonly Burst[]): Promise<boolean> {
  const { limits } = server.options
  for (let attempt = 1; attempt <= WINDOWS_TRIED; attempt += 1) {
    await Promise.all(ENDPOINTS.map((endpoint) => server.waitForWindow(endpoint, 'one connection')))
    for (const burst of bursts) await burst.open()
    await server.pause(500 * Math.min(limits.api.window, limits.oauth.window))
    let usable = true
    for (const { endpoint, steps, useUp } of bursts) {
      await useUp()
      const first = steps[0]?.received
      const left = first && limitFieldsOf(first)?.remaining
      const inTime = first !== undefined && server.clock.wall() < windowEndOf(first, limits[endpoint])
      // A server that counts wrongly never states a full window, so from the second attempt on any first number is taken.
      const isNew = attempt > 1 || left === undefined || left === limits[endpoint].requests - 1
      usable &&= inTime && isNew
    }
    if (usable) return true
  }
  return false
}

/** The kinds of the first requests: with a token, twice without, with a token. */
const OPENING = [0, 1, 1, 0]

export function createBurst(server: Server, known: Known, endpoint: Endpoint): Burst {
  const most = server.options.limits[endpoint].requests + EXTRA
  const statuses = new Map<string, number>()
  const steps: Step[] = []
  let { login } = known
  let refused = 0

  async function sendNext(i: number): Promise<void> {
    const { question, expected } = kindAt(i, server.options, { ...known, login }, endpoint)
    const received = await server.send(question)
    // A refresh token that was replaced must not be shown again, not even in another window.
    if (endpoint === 'oauth') login = refreshed(login, received)
    if (received.status === 429) refused += 1
    // Whether the status is right is a matter of other rounds: here it has to stay the same until the window is used up.
    else if (received.status !== 0 && !statuses.has(question.what))
      statuses.set(question.what, received.status)
    steps.push({ question, expected: statuses.get(question.what) ?? expected, received })
  }

  return {
    endpoint,
    steps,
    async open() {
      steps.length = refused = 0
      for (const kind of OPENING) await sendNext(kind)
    },
    async useUp() {
      const apart = endpoint === 'api' && countsApart(steps)
      // Those without a token are of another window then.
      if (apart) steps.splice(1, 2)
      while (steps.length - refused < most && refused < EXTRA) await sendNext(apart ? 0 : steps.length)
    },
  }
}

/**
 * Whether requests without a token have a window of their own, as with `limits.api.per: grant`. Then only those with a token can use
 * up a window here. A server that does not count the others shows the same number for both.
 */
function countsApart(steps: readonly Step[]): boolean {
  const shown = steps.map(({ received }) => limitFieldsOf(received)?.remaining)
  const [first = Number.NaN, second = Number.NaN, third = Number.NaN, fourth = Number.NaN] = shown
  return first - fourth === 1 && second - third === 1 && first - second !== 1
}

const UNKNOWN = ['Authorization', `Bearer ${randomUUID()}`]

const INCOMPLETE: Question = {
  ...tokenRequest([['grant_type', 'password']], 'without password'),
  refused: true,
}

/** The kinds of requests follow each other in a circle. */
function kindAt(i: number, options: VerifyOptions, known: Known, endpoint: Endpoint): UsualRequest {
  const { path, quick } = options
  const { admitted, login, refreshing } = known
  const usual = usualRequest(options, admitted, endpoint)
  // In a quick run the tokens are revoked by now.
  const refreshes = endpoint === 'oauth' && !quick && refreshing !== undefined
  const first = refreshes ? { question: refreshGrant(login.refreshToken), expected: 200 } : usual
  const ofApi = [
    unauthorized(path, [], 'without a token'),
    unauthorized(path, UNKNOWN, 'with an unknown token'),
    unauthorized(path, [], 'without a token', 'HEAD'),
    unauthorized(path, [], 'without a token', 'OPTIONS'),
  ]
  const [others, expected] =
    endpoint === 'api' ? [ofApi, 401] : [[UNSUPPORTED_GRANT, INCOMPLETE, GET_TOKEN], 400]
  const question = others[(i % (others.length + 1)) - 1]
  return question === undefined ? first : { question, expected }
}

/** One of several requests that were sent one after the other, and its response. */
export interface Step extends Asked {
  /** The status when it passes the limit. */
  readonly expected: number
}

/**
 * Judges the requests of one window, in order, until some were refused. If the window ends on the way, those of the next one are
 * judged.
 *
 * @param whole whether the first step opened the window
 */
export function judgeInOrder(all: readonly Step[], limit: Limit, whole: boolean): readonly Broken[] {
  const start = all.findLastIndex((step, i) => opensNext(all[i - 1], step))
  const steps = all.slice(Math.max(start, 0))
  const end = steps.findIndex(({ expected, received }) => received.status !== expected)
  const passed = end === -1 ? steps : steps.slice(0, end)
  const usedUp = passed.length < steps.length
  const miscounted = countFaults(passed, usedUp)
  if (miscounted.length > 0) return miscounted
  // Past the limit each kind of request gets 429.
  const wrong = steps.slice(passed.length).filter(({ received }) => received.status !== 429)
  return [
    ...numberFaults(passed, limit, whole || start > 0, usedUp),
    ...lastOfEach(
      wrong.map(({ question, received }) =>
        wrongResponse('C15', { what: `${question.what}, past the limit` }, received, '429'),
      ),
    ),
  ]
}

/** The last departure of each kind of request. */
function lastOfEach(found: readonly Broken[]): readonly Broken[] {
  return [...new Map(found.map((each) => [each.sent, each])).values()]
}

const remainingOf = (step: Step | undefined) => step && limitFieldsOf(step.received)?.remaining

/** Whether a step opens a new window, because the one of the step before is over. */
function opensNext(before: Step | undefined, { received }: Step): boolean {
  const ended = before && limitFieldsOf(before.received)?.reset
  const reset = limitFieldsOf(received)?.reset
  return ended !== undefined && reset !== undefined && reset > ended + 1 && received.at / 1000 >= ended - 1
}

/** Each request takes one from what remains (C13), and nothing comes back before the window ends (C14). */
function countFaults(passed: readonly Step[], usedUp: boolean): readonly Broken[] {
  const changes = passed.flatMap(({ question: { what } }, i) => {
    const [before, after] = [remainingOf(passed[i - 1]), remainingOf(passed[i])]
    // A request that passes although nothing remains is a matter of the limit.
    if (before === undefined || after === undefined || before === 0) return []
    const fault = (promise: Broken['promise'], wanted: string): Broken =>
      broken(promise, what, `X-RateLimit-Remaining: ${after}, after ${before}`, wanted)
    return [{ taken: before - after, fault }]
  })
  const back = changes.find(({ taken }) => taken < 0)
  if (back !== undefined) return [back.fault('C14', 'nothing comes back before the window ends')]
  const [first] = changes
  // If no request takes any and yet the window is used up, the field is wrong and not the count.
  if (first !== undefined && usedUp && changes.every(({ taken }) => taken === 0))
    return [first.fault('C16', 'one less each time')]
  const wanted = 'one less: every request counts once, in the window of its endpoint type'
  return lastOfEach(changes.filter(({ taken }) => taken !== 1).map(({ fault }) => fault('C13', wanted)))
}

function numberFaults(passed: readonly Step[], limit: Limit, whole: boolean, usedUp: boolean): Broken[] {
  const sent = 'one request after the other, over one connection'
  const [first, last] = [passed[0], passed.at(-1)]
  if (first === undefined || last === undefined)
    return whole ? [broken('C14', sent, '429 for the first request after the reset', 'a new window')] : []
  const stated = remainingOf(first)
  const expected = whole ? limit.requests : (stated ?? Number.NaN) + 1
  const extra = passed.length - expected
  // On a busy machine the burst may end in a window that it has not used up.
  if (Number.isNaN(extra) || extra === 0 || (!usedUp && extra < 0)) return []
  // A leaky bucket, such as `limit_req` of nginx, has forgotten so many requests by the end.
  const seconds = (last.received.at - first.received.sentAt) / 1000
  const leaked = Math.ceil((limit.requests * seconds) / limit.window)
  // Without X-RateLimit-Remaining a wrong number does not tell whether the limit is wrong, or what counts.
  const promise = stated === undefined && !(extra > 0 && extra <= leaked) ? 'C13' : 'C14'
  return [broken(promise, sent, `${passed.length} passed`, `${expected} pass in the window, then 429`)]
}
