import { randomUUID } from 'node:crypto'
import { windowEndOf } from '../answer.ts'
import { NONE, type Step } from '../burst.ts'
import { limitFieldsOf } from '../limit-faults.ts'
import {
  apiRequest,
  GET_TOKEN,
  type Question,
  refreshGrant,
  tokenRequest,
  UNSUPPORTED_GRANT,
  unauthorized,
} from '../question.ts'
import type { Stage } from '../stage.ts'
import { ENDPOINTS, type Endpoint } from '../verdict.ts'
import { takeTokens } from './refresh.ts'
import type { Admitted } from './usual-request.ts'

/** Requests past the limit: each kind comes several times. */
export const EXTRA = 12

/** The requests of one window of each endpoint type, until some were refused. */
export type UsedUp = ReadonlyMap<Endpoint, readonly Step[]>

/** Windows that are tried: the first may have been open already, because the clocks of server and client differ. */
export const WINDOWS_TRIED = 3

/**
 * Uses up a new window of each endpoint type with requests of every outcome, half of it later than the rest: a sliding window has no
 * single end. Undefined if no window was long enough for the requests.
 */
export async function useUpNewWindows(stage: Stage, admitted: Admitted): Promise<UsedUp | undefined> {
  for (let attempt = 1; attempt <= WINDOWS_TRIED; attempt += 1) {
    const used = await useUpOnce(stage, admitted)
    const bursts = [...used.values()]
    // A server that counts wrongly never states a full window, so from the second attempt on any first number is taken.
    if (bursts.every(({ inTime }) => inTime) && (attempt > 1 || bursts.every(({ isNew }) => isNew)))
      return new Map([...used].map(([endpoint, { steps }]) => [endpoint, steps]))
  }
  return undefined
}

interface NewWindow {
  readonly steps: readonly Step[]
  /** All requests were sent before the window had to end. */
  readonly inTime: boolean
  /** Its first request opened the window: the first response left all other requests of the limit, or did not say. */
  readonly isNew: boolean
}

async function useUpOnce(stage: Stage, admitted: Admitted): Promise<ReadonlyMap<Endpoint, NewWindow>> {
  const { limits } = stage.options
  await Promise.all(ENDPOINTS.map((endpoint) => stage.waitForWindow(endpoint, 'one connection')))
  const bursts = ENDPOINTS.map((endpoint) => createBurst(stage, admitted, endpoint))
  for (const burst of bursts) await burst.open()
  await stage.pause(500 * Math.min(limits.api.window, limits.oauth.window))
  const used = new Map<Endpoint, NewWindow>()
  for (const { endpoint, steps, useUp } of bursts) {
    await useUp()
    const first = steps[0]?.answer
    const { requests } = limits[endpoint]
    const remaining = limitFieldsOf(first ?? NONE)?.remaining
    used.set(endpoint, {
      steps,
      inTime: first !== undefined && stage.clock.wall() < windowEndOf(first, limits[endpoint]),
      isNew: remaining === undefined || remaining === requests - 1,
    })
  }
  return used
}

/** Uses up the rest of the window that is open. */
export async function useUpTheRest(
  stage: Stage,
  admitted: Admitted,
  endpoint: Endpoint,
): Promise<readonly Step[]> {
  const burst = createBurst(stage, admitted, endpoint)
  await burst.open()
  await burst.useUp()
  return burst.steps
}

interface Burst {
  readonly endpoint: Endpoint
  readonly steps: readonly Step[]
  /** The first few requests. */
  open(): Promise<void>
  /** The others, until some were refused. */
  useUp(): Promise<void>
}

/** The kinds of the first requests: with a token, twice without, with a token. */
const OPENING = [0, 1, 1, 0]

function createBurst(stage: Stage, admitted: Admitted, endpoint: Endpoint): Burst {
  const most = stage.options.limits[endpoint].requests + EXTRA
  const kinds = endpoint === 'api' ? apiKinds(stage.options.path, admitted) : oauthKinds(stage)
  const steps: Step[] = []
  const statuses = new Map<string, number>()
  let refused = 0

  async function sendNext(kind: Kind): Promise<void> {
    const { question, expected } = kind()
    const answer = await stage.send(question)
    if (endpoint === 'oauth') takeTokens(stage.grants[0], answer)
    if (answer.status === 429) refused += 1
    // Whether the status is right is a matter of other rounds: here it has to stay the same until the window is used up.
    else if (answer.status !== 0 && !statuses.has(question.what)) statuses.set(question.what, answer.status)
    const usual = statuses.get(question.what) ?? expected
    // Only the body of an unexpected response is quoted, and masking takes time.
    const quoted = answer.status !== usual && answer.status !== 429
    steps.push({ question, expected: usual, answer: quoted ? stage.records.masked(answer) : answer })
  }

  return {
    endpoint,
    steps,
    async open() {
      for (const kind of OPENING) await sendNext(kinds[kind] ?? UNSUPPORTED)
    },
    async useUp() {
      const [first = UNSUPPORTED] = kinds
      const apart = endpoint === 'api' && countsApart(steps)
      // Those without a token are of another window then.
      if (apart) steps.splice(1, 2)
      while (steps.length - refused < most && refused < EXTRA) {
        await sendNext(apart ? first : (kinds[steps.length % kinds.length] ?? first))
      }
    },
  }
}

/**
 * Whether requests without a token have a window of their own, as with `limits.api.per: grant`. Then only those with a token can use
 * up a window here. A server that does not count the others shows the same number for both.
 */
function countsApart(steps: readonly Step[]): boolean {
  const [first, second, third, fourth] = steps.map(({ answer }) => limitFieldsOf(answer)?.remaining)
  if (first === undefined || second === undefined || third === undefined || fourth === undefined) return false
  return first - fourth === 1 && second - third === 1 && first - second !== 1
}

/** A request that has the same outcome each time, and the status to expect of it. */
type Kind = () => Pick<Step, 'question' | 'expected'>

function apiKinds(path: string, { accessToken, status }: Admitted): readonly Kind[] {
  const unknown = ['Authorization', `Bearer ${randomUUID()}`]
  return [
    () => ({ question: apiRequest(path, accessToken), expected: status }),
    () => ({ question: unauthorized(path, [], 'without a token'), expected: 401 }),
    () => ({ question: unauthorized(path, unknown, 'with an unknown token'), expected: 401 }),
    () => ({ question: unauthorized(path, [], 'without a token', 'HEAD'), expected: 401 }),
    () => ({ question: unauthorized(path, [], 'without a token', 'OPTIONS'), expected: 401 }),
  ]
}

const INCOMPLETE: Question = {
  ...tokenRequest([['grant_type', 'password']], 'without password'),
  refused: true,
}

const UNSUPPORTED: Kind = () => ({ question: UNSUPPORTED_GRANT, expected: 400 })

/** In a quick run the tokens are revoked by now. */
function oauthKinds({ grants, refreshing, options: { quick } }: Stage): readonly Kind[] {
  const refresh: Kind = () => ({ question: refreshGrant(grants[0]?.refreshToken ?? ''), expected: 200 })
  const works = refreshing === 'keeps' || refreshing === 'replaces'
  return [
    quick || !works ? UNSUPPORTED : refresh,
    UNSUPPORTED,
    () => ({ question: INCOMPLETE, expected: 400 }),
    () => ({ question: GET_TOKEN, expected: 400 }),
  ]
}
