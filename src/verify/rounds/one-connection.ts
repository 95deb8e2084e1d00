import { randomUUID } from 'node:crypto'
import type { Endpoint } from '../../http/admission.ts'
import {
  type Asked,
  apiRequest,
  ENDPOINTS,
  GET_TOKEN,
  type Received,
  refreshGrant,
  tokenRequest,
  UNSUPPORTED_GRANT,
  unauthorized,
} from '../exchange.ts'
import type { Server } from '../server.ts'
import { broken, kept, untested } from '../verdict.ts'
import { limitFieldsOf, windowEndOf } from '../windows.ts'
import { judgeInOrder, remainingOf } from './in-order.ts'
import { type Facts, type Findings, type Round, refreshed, type UsualRequest, usualRequest } from './round.ts'
import { recovery, secondWindows } from './used-up-window.ts'

/** Those of `separateWindows`, `secondWindows` and `recovery`. */
const OTHER_REQUESTS = 100

/** Requests past the limit: each kind comes several times. */
const EXTRA = 12

/** Windows that are tried: the first may have been open already, because the clocks of server and client differ. */
const WINDOWS_TRIED = 3

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
  needsTokens: true,
  async *run(server, facts) {
    const { quick, limits } = server.options
    yield* separateWindows(server, facts)
    const bursts = ENDPOINTS.map((endpoint) => createBurst(server, facts, endpoint))
    if (!quick && !(await useUpNewWindows(server, bursts)))
      return yield* untested(['C13', ...DECIDED_BY_429], 'the server is too slow to use up a window')
    const closed: [Endpoint, Received][] = []
    let usedUp = true
    for (const { endpoint, steps, open, useUp } of bursts) {
      // Once its window is used up, the revocation would have to wait for a new one.
      if (quick && endpoint === 'oauth') await server.revokeAll('without waiting')
      if (quick) await open()
      if (quick) await useUp()
      yield* judgeInOrder(steps, limits[endpoint], !quick)
      const last = steps.findLast(({ received }) => received.status === 429)?.received
      usedUp &&= last !== undefined
      if (last === undefined) continue
      const reopened = yield* secondWindows(server, facts, endpoint)
      if (!quick && !reopened) closed.push([endpoint, last])
    }
    const ends = await Promise.all(closed.map(([endpoint, last]) => recovery(server, facts, endpoint, last)))
    yield* ends.flatMap(({ found }) => found)
    yield* kept(quick ? ['C13'] : ['C13', 'C14'])
    if (usedUp) yield* kept(DECIDED_BY_429)
    else yield* untested(DECIDED_BY_429, 'the server refused no request past a limit')
    if (quick) yield* untested(['C15'], 'how a used-up window ends is left out by --quick')
    const openings = ends.flatMap(({ opening }) => opening ?? [])
    return { ...facts, openings: new Map(openings.map((opening) => [opening.question.endpoint, opening])) }
  },
}

/** C13: requests to the API between two to the token endpoint take nothing from the window of the latter. */
async function* separateWindows(server: Server, { admitted }: Facts): Findings {
  const api = apiRequest(server.options.path, admitted.accessToken)
  const before = limitFieldsOf(await server.send(UNSUPPORTED_GRANT))
  for (let i = 0; i < 2; i += 1) await server.send(api)
  const received = await server.send(UNSUPPORTED_GRANT)
  const after = limitFieldsOf(received)
  // Without a difference the field is wrong, and with a later reset the window is another one.
  if (before === undefined || after === undefined || received.status === 429) return
  if (before.remaining - after.remaining <= 1 || Math.abs(after.reset - before.reset) > 1) return
  const sent = `${api.what}, twice, between two requests to /oauth/token`
  const came = `X-RateLimit-Remaining at /oauth/token: ${after.remaining}, after ${before.remaining}`
  yield broken('C13', sent, came, 'one less: each endpoint type has a window of its own')
}

/**
 * Uses up a new window of each endpoint type with requests of every outcome, half of it later than the rest: a sliding window has no
 * single end. Resolves to whether a window was long enough for them.
 */
async function useUpNewWindows(server: Server, bursts: readonly Burst[]): Promise<boolean> {
  const { limits } = server.options
  for (let attempt = 1; attempt <= WINDOWS_TRIED; attempt += 1) {
    await Promise.all(ENDPOINTS.map((endpoint) => server.waitForWindow(endpoint, 'one connection')))
    for (const burst of bursts) await burst.open()
    await server.pause(500 * Math.min(limits.api.window, limits.oauth.window))
    let usable = true
    for (const { endpoint, steps, useUp } of bursts) {
      await useUp()
      const [first] = steps
      const left = remainingOf(first)
      const inTime = first && server.clock.wall() < windowEndOf(first.received, limits[endpoint])
      // A server that counts wrongly never states a full window, so from the second attempt on any first number is taken.
      const isNew = attempt > 1 || left === undefined || left === limits[endpoint].requests - 1
      usable &&= inTime === true && isNew
    }
    if (usable) return true
  }
  return false
}

/** The kinds of the first requests: with a token, twice without, with a token. */
const OPENING = [0, 1, 1, 0]

type Burst = ReturnType<typeof createBurst>

/** The requests that use up one window, one after the other. */
function createBurst(server: Server, facts: Facts, endpoint: Endpoint) {
  const most = server.options.limits[endpoint].requests + EXTRA
  const statuses = new Map<string, number>()
  const steps: Asked[] = []
  let [login, other] = facts.logins
  let refused = 0

  /** The kinds of requests follow each other in a circle. */
  async function sendNext(i: number): Promise<void> {
    const kinds = kindsOf(server, { ...facts, logins: [login, other] }, endpoint)
    const { question, expected } = kinds[i % kinds.length] ?? usualRequest(server, facts, endpoint)
    const received = await server.send(question)
    // A refresh token that was replaced must not be shown again, not even in another window.
    if (endpoint === 'oauth') login = refreshed(login, received)
    if (received.status === 429) refused += 1
    // Whether the status is right is a matter of other rounds: here it has to stay the same until the window is used up.
    else if (received.status !== 0) statuses.getOrInsert(question.what, received.status)
    steps.push({ question, expected: statuses.get(question.what) ?? expected, received })
  }

  return {
    endpoint,
    steps,
    /** Sends the first requests, and forgets those of another window. */
    async open() {
      steps.length = refused = 0
      for (const kind of OPENING) await sendNext(kind)
    },
    /** Sends the others, until some were refused. */
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
function countsApart(steps: readonly Asked[]): boolean {
  const [first = Number.NaN, second = Number.NaN, third = Number.NaN, fourth = Number.NaN] =
    steps.map(remainingOf)
  return first - fourth === 1 && second - third === 1 && first - second !== 1
}

const UNKNOWN = ['Authorization', `Bearer ${randomUUID()}`]

const INCOMPLETE = {
  ...tokenRequest({ grant_type: 'password' }, 'without password'),
  refused: true,
} as const

function kindsOf(server: Server, facts: Facts, endpoint: Endpoint): readonly UsualRequest[] {
  const { path, quick } = server.options
  const usual = usualRequest(server, facts, endpoint)
  if (endpoint === 'api') {
    const others = [
      unauthorized(path, [], 'without a token'),
      unauthorized(path, UNKNOWN, 'with an unknown token'),
      unauthorized(path, [], 'without a token', 'HEAD'),
      unauthorized(path, [], 'without a token', 'OPTIONS'),
    ]
    return [usual, ...others.map((question) => ({ question, expected: 401 }))]
  }
  // In a quick run the tokens are revoked by now.
  const refreshes = !quick && facts.refreshing !== undefined
  const first = refreshes ? { question: refreshGrant(facts.logins[0].refreshToken), expected: 200 } : usual
  const others = [UNSUPPORTED_GRANT, INCOMPLETE, GET_TOKEN]
  return [first, ...others.map((question) => ({ question, expected: 400 }))]
}
