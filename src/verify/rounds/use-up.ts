import { randomUUID } from 'node:crypto'
import type { Endpoint } from '../../http/admission.ts'
import type { Step } from '../burst.ts'
import { limitFieldsOf, windowEndOf } from '../limit-fields.ts'
import {
  ENDPOINTS,
  GET_TOKEN,
  refreshGrant,
  tokenRequest,
  UNSUPPORTED_GRANT,
  unauthorized,
} from '../question.ts'
import type { Received } from '../received.ts'
import type { Server } from '../server.ts'
import { type Known, refreshed, type UsualRequest, usualRequest } from './round.ts'

/** Requests past the limit: each kind comes several times. */
export const EXTRA = 12

/** Windows that are tried: the first may have been open already, because the clocks of server and client differ. */
export const WINDOWS_TRIED = 3

/** The requests that use up one window, one after the other. */
export interface Burst {
  readonly endpoint: Endpoint
  readonly steps: readonly Step[]
  open(): Promise<void>
  /** Sends the others, until some were refused. */
  useUp(): Promise<void>
}

/**
 * Uses up a new window of each endpoint type with requests of every outcome, half of it later than the rest: a sliding window has no
 * single end. Resolves to undefined if no window was long enough for them.
 */
export async function useUpNewWindows(server: Server, known: Known): Promise<readonly Burst[] | undefined> {
  const { limits } = server.options
  // For all attempts: a refresh token that was replaced must not be shown again.
  const kinds = kindsOf(server, known)
  for (let attempt = 1; attempt <= WINDOWS_TRIED; attempt += 1) {
    await Promise.all(ENDPOINTS.map((endpoint) => server.waitForWindow(endpoint, 'one connection')))
    const bursts = ENDPOINTS.map((endpoint) => createBurst(server, endpoint, kinds[endpoint]))
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
    if (usable) return bursts
  }
  return undefined
}

/** Uses up the rest of the window that is open. */
export async function useUpTheRest(server: Server, known: Known, endpoint: Endpoint): Promise<Burst> {
  const burst = createBurst(server, endpoint, kindsOf(server, known)[endpoint])
  await burst.open()
  await burst.useUp()
  return burst
}

/** The kinds of the first requests: with a token, twice without, with a token. */
const OPENING = [0, 1, 1, 0]

function createBurst(server: Server, endpoint: Endpoint, kinds: readonly Kind[]): Burst {
  const most = server.options.limits[endpoint].requests + EXTRA
  const steps: Step[] = []
  const statuses = new Map<string, number>()
  let refused = 0

  async function sendNext(i: number): Promise<void> {
    const kind = kinds[i % kinds.length] ?? UNSUPPORTED
    const { question, learn } = kind
    const received = await server.send(question)
    learn?.(received)
    if (received.status === 429) refused += 1
    // Whether the status is right is a matter of other rounds: here it has to stay the same until the window is used up.
    else if (received.status !== 0 && !statuses.has(question.what))
      statuses.set(question.what, received.status)
    steps.push({ question, expected: statuses.get(question.what) ?? kind.expected, received })
  }

  return {
    endpoint,
    steps,
    async open() {
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

/** What is sent again and again. */
interface Kind extends UsualRequest {
  learn?(received: Received): void
}

const UNSUPPORTED: Kind = { question: UNSUPPORTED_GRANT, expected: 400 }

const INCOMPLETE = tokenRequest([['grant_type', 'password']], 'without password')

function kindsOf({ options }: Server, known: Known): Readonly<Record<Endpoint, readonly Kind[]>> {
  const { admitted, refreshing } = known
  const { path, quick } = options
  const unknown = ['Authorization', `Bearer ${randomUUID()}`]
  const without = [
    unauthorized(path, [], 'without a token'),
    unauthorized(path, unknown, 'with an unknown token'),
    unauthorized(path, [], 'without a token', 'HEAD'),
    unauthorized(path, [], 'without a token', 'OPTIONS'),
  ]
  let pair = known.login
  const refresh: Kind = {
    get question() {
      return refreshGrant(pair.refreshToken)
    },
    expected: 200,
    learn(received) {
      pair = refreshed(pair, received)
    },
  }
  return {
    api: [
      usualRequest(options, admitted, 'api'),
      ...without.map((question) => ({ question, expected: 401 })),
    ],
    oauth: [
      // In a quick run the tokens are revoked by now.
      quick || refreshing === undefined ? UNSUPPORTED : refresh,
      UNSUPPORTED,
      { question: { ...INCOMPLETE, refused: true }, expected: 400 },
      { question: GET_TOKEN, expected: 400 },
    ],
  }
}
