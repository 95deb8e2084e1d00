import { randomUUID } from 'node:crypto'
import type { Endpoint } from '../http/admission.ts'
import { judgeInOrder, remainingOf } from './burst.ts'
import { type Conversation, endpointName } from './conversation.ts'
import {
  type Asked,
  apiRequest,
  ENDPOINTS,
  GET_TOKEN,
  type Question,
  type Received,
  refreshGrant,
  TOKEN_PATH,
  tokenRequest,
  UNSUPPORTED_GRANT,
  unauthorized,
  withParameter,
} from './question.ts'
import { type Known, refreshed, useOfFirstToken } from './rows.ts'
import { limitFieldsOf, retryAfter } from './stated-limits.ts'

/** A request that has the same outcome each time, and the status of its response. */
export type UsualRequest = Omit<Asked, 'received'>

/** A request that can be sent any number of times, at little cost. */
export function usualRequest(
  { options }: Conversation,
  { admitted }: Known,
  endpoint: Endpoint,
): UsualRequest {
  return endpoint === 'api'
    ? { question: apiRequest(options.path, admitted.accessToken), expected: admitted.status }
    : { question: UNSUPPORTED_GRANT, expected: 400 }
}

/** C13: requests to the API take nothing from the window of the token endpoint. */
async function separateWindows(conversation: Conversation, { admitted }: Known): Promise<void> {
  const api = apiRequest(conversation.options.path, admitted.accessToken)
  const before = limitFieldsOf(await conversation.send(UNSUPPORTED_GRANT))
  for (let i = 0; i < 2; i += 1) await conversation.send(api)
  const received = await conversation.send(UNSUPPORTED_GRANT)
  const after = limitFieldsOf(received)
  // Any other number comes from other clients, and a later reset belongs to another window.
  if (before === undefined || after === undefined || received.status === 429) return
  if (before.remaining - after.remaining !== 3 || Math.abs(after.reset - before.reset) > 1) return
  conversation.findings.broken(
    'C13',
    `${api.what}, twice, between two requests to /oauth/token`,
    `X-RateLimit-Remaining at /oauth/token: ${after.remaining}, after ${before.remaining}`,
    'one less: each endpoint type has a window of its own',
  )
}

/** The requests past the limit: enough that each kind comes several times. */
export const PAST_THE_LIMIT = 12

/** The promises that need a used-up window. */
const DECIDED_BY_429 = ['C15', 'H69'] as const

/**
 * C13, C14, C15 and H69: uses up both windows over one connection with requests of every outcome. A few open each window, and the rest come
 * half a window later, which reveals a sliding window: it has no single end. Then the windows must stay closed until their end, and open
 * again. A quick run uses up what is left of the open windows, and does not wait for their end. Returns the updated facts.
 */
export async function oneConnection(conversation: Conversation, known: Known): Promise<Known> {
  const { options, findings } = conversation
  const { quick, limits } = options
  await separateWindows(conversation, known)
  const bursts = ENDPOINTS.map((endpoint) => createBurst(conversation, known, endpoint))
  if (!quick) {
    for (const { endpoint } of bursts) await conversation.waitForWindow(endpoint, 'one connection')
    for (const burst of bursts) await burst.open()
    const half = 500 * Math.min(limits.api.window, limits.oauth.window)
    await conversation.pauseUntil(conversation.time.wall() + half)
    for (const burst of bursts) await burst.useUp()
  }
  const closed: Closed[] = []
  let usedUp = true
  for (const { endpoint, steps, open, useUp } of bursts) {
    // Once its window is used up, the revocation would have to wait for a new one.
    if (quick && endpoint === 'oauth') await conversation.revokeAll(false)
    if (quick) await open()
    if (quick) await useUp()
    judgeInOrder(findings, steps, limits[endpoint], !quick, conversation.everyResponse.clock)
    const refused = steps.findLast(({ received }) => received.status === 429)?.received
    usedUp &&= refused !== undefined
    if (refused === undefined) continue
    const reopened = await secondWindows(conversation, known, endpoint)
    if (!quick && !reopened) closed.push({ endpoint, refused, isOpen: false })
  }
  const isUsedLate = await recovery(conversation, known, closed)
  findings.kept(quick ? ['C13'] : ['C13', 'C14'])
  if (usedUp) findings.kept(DECIDED_BY_429)
  else findings.untestable(DECIDED_BY_429, 'the server refused no request past a limit')
  if (quick) findings.kept(['C15'], 'how a used-up window ends is left out by --quick')
  return isUsedLate ? { ...known, isUsedLate } : known
}

/** The kinds of the first requests: with a token, twice without, with a token. */
const OPENING = [0, 1, 1, 0]

/** The requests that use up one window, one after the other. */
function createBurst(conversation: Conversation, known: Known, endpoint: Endpoint) {
  // A window that is aligned to the clock may end on the way.
  const most = 2 * conversation.options.limits[endpoint].requests + PAST_THE_LIMIT
  const statuses = new Map<string, number>()
  const steps: Asked[] = []
  let [login] = known.logins
  let refused = 0

  /** Sends the next request; the kinds of requests take turns. */
  async function sendNext(i: number): Promise<void> {
    const kinds = kindsOf(conversation, known, endpoint, login.refreshToken)
    const { question, expected } = kinds[i % kinds.length] ?? usualRequest(conversation, known, endpoint)
    const received = await conversation.send(question)
    // A replaced refresh token must never be presented again, not even in another window: that would revoke the login.
    if (endpoint === 'oauth') login = refreshed(login, received)
    // Other rows judge whether the status is right. Here it must stay the same until the window is used up.
    if (received.status === 429) refused += 1
    else if (received.status !== 0) statuses.getOrInsert(question.what, received.status)
    steps.push({ question, expected: statuses.get(question.what) ?? expected, received })
  }

  return {
    endpoint,
    steps,
    async open() {
      for (const kind of OPENING) await sendNext(kind)
    },
    /** Sends the other requests, until `PAST_THE_LIMIT` were refused. */
    async useUp() {
      const apart = endpoint === 'api' && countsApart(steps)
      // The requests without a token belong to another window then.
      if (apart) steps.splice(1, 2)
      while (steps.length < most && refused < PAST_THE_LIMIT) await sendNext(apart ? 0 : steps.length)
    },
  }
}

/**
 * Whether requests without a token have a window of their own, as with `limits.api.per: grant`. Then only requests with a token use up a
 * window here. A server that does not count requests without a token at all shows the same number for both.
 */
function countsApart(steps: readonly Asked[]): boolean {
  const [first = Number.NaN, second = Number.NaN, third = Number.NaN, fourth = Number.NaN] =
    steps.map(remainingOf)
  return first - fourth === 1 && second - third === 1 && first - second !== 1
}

const UNKNOWN = ['Authorization', `Bearer ${randomUUID()}`]

const INCOMPLETE: Question = {
  ...tokenRequest({ grant_type: 'password' }, 'without password'),
  refused: true,
}

function kindsOf(
  conversation: Conversation,
  known: Known,
  endpoint: Endpoint,
  refreshToken: string,
): readonly UsualRequest[] {
  const { path, quick } = conversation.options
  const usual = usualRequest(conversation, known, endpoint)
  const of = (expected: number, questions: readonly Question[]): UsualRequest[] =>
    questions.map((question) => ({ question, expected }))
  if (endpoint === 'api')
    return [
      usual,
      ...of(401, [
        unauthorized(path, [], 'without a token'),
        unauthorized(path, UNKNOWN, 'with an unknown token'),
        unauthorized(path, [], 'without a token', 'HEAD'),
        unauthorized(path, [], 'without a token', 'OPTIONS'),
      ]),
    ]
  // In a quick run the tokens are revoked by now.
  const refreshes = !quick && known.refreshing !== undefined
  const first = refreshes ? { question: refreshGrant(refreshToken), expected: 200 } : usual
  return [first, ...of(400, [UNSUPPORTED_GRANT, INCOMPLETE, GET_TOKEN])]
}

/** An address for documentation, which no host has (RFC 5737). */
const SPOOFED = '203.0.113.7'

/** Fields by which a request claims to come from another client, after their name in a report. */
const CLAIMS: readonly (readonly [name: string, ...fields: string[]])[] = [
  ['X-Forwarded-For', 'X-Forwarded-For', SPOOFED],
  ['Forwarded', 'Forwarded', `for=${SPOOFED}`],
  ['X-Real-IP', 'X-Real-IP', SPOOFED],
  ['X-Forwarded-For with two addresses', 'X-Forwarded-For', `${SPOOFED}, 203.0.113.8`],
  ['second X-Forwarded-For', 'X-Forwarded-For', '203.0.113.8', 'X-Forwarded-For', SPOOFED],
  [
    'X-Client-IP, True-Client-IP, CF-Connecting-IP, X-Cluster-Client-IP, X-Forwarded and Via',
    ...['X-Client-IP', SPOOFED, 'True-Client-IP', SPOOFED, 'CF-Connecting-IP', SPOOFED],
    ...['X-Cluster-Client-IP', SPOOFED, 'X-Forwarded', `for=${SPOOFED}`, 'Via', '1.1 other.invalid'],
  ],
  [
    'User-Agent, Cookie and Accept-Language',
    ...['User-Agent', 'other', 'Cookie', 'session=other', 'Accept-Language', 'eo'],
  ],
]

/**
 * Sends requests in a used-up window that a careless server takes for those of another client or endpoint (H69). A request that passes has
 * found a second window if a plain request is still refused and the request passes again. Otherwise the window has ended, or it is a leaky
 * bucket, which has room for a request from time to time (C14). Returns whether that happened: then the next request does not open a
 * window.
 */
async function secondWindows(conversation: Conversation, known: Known, endpoint: Endpoint): Promise<boolean> {
  let reopened = false
  const { question: plain } = usualRequest(conversation, known, endpoint)
  // A server may refuse a disguised path as malformed. At the token endpoint, a 400 shows that the server has read the form.
  const refusals = endpoint === 'api' ? [0, 429, 400] : [0, 429]
  const passes = ({ status }: Received): boolean => !refusals.includes(status)
  for (const each of questionsPastTheLimit(endpoint, conversation.options.path, known)) {
    const question = { ...each, what: `${each.what}, past the limit` }
    const received = await conversation.send(question)
    if (!passes(received)) continue
    const closed = [0, 429].includes((await conversation.send(plain)).status)
    reopened ||= !closed
    if (closed && passes(await conversation.send(question)))
      conversation.findings.broken('H69', question.what, received, '429: the same client, the same window')
  }
  return reopened
}

/** The requests of `secondWindows`. Those to the API have a token that was valid until now. */
function questionsPastTheLimit(
  endpoint: Endpoint,
  path: string,
  { first, admitted }: Known,
): readonly Question[] {
  const { accessToken } = admitted
  const ofApi = endpoint === 'api'
  const usual = ofApi ? apiRequest(path, accessToken) : UNSUPPORTED_GRANT
  const named = ofApi ? `${usual.what} and` : `POST ${TOKEN_PATH} with`
  const spoofed = CLAIMS.map(([name, ...fields]) => {
    return { ...usual, fields: [...usual.fields, ...fields], what: `${named} a spoofed ${name}` }
  })
  const query = withParameter(usual.path, 'postern-verify')
  if (!ofApi) return [...spoofed, { ...usual, path: query, what: `POST ${query}` }]
  const older = apiRequest(path, first.accessToken, 'with the access token from before a refresh')
  const others = [apiRequest(query, accessToken), apiRequest(`/${path}`, accessToken)]
  return [...spoofed, ...others, ...(first.accessToken === accessToken ? [] : [older])]
}

/** A used-up window, and a 429 of it. */
interface Closed {
  readonly endpoint: Endpoint
  readonly refused: Received
  isOpen: boolean
}

/** A request that must arrive before a time is sent this long before it (ms). */
const EARLY = 600

/**
 * Sends a request shortly before a used-up window ends, which must be refused (C14), and one when `Retry-After` is over, which must pass
 * (C15). Both times follow from `Retry-After` alone, which is rounded up: the window ends within the last second of it, counted from the
 * 429. Returns whether the first token was used late.
 */
async function recovery(
  conversation: Conversation,
  known: Known,
  closed: readonly Closed[],
): Promise<boolean> {
  const { limits } = conversation.options
  let isUsedLate = false
  const steps = closed.flatMap((window) => {
    const { refused, endpoint } = window
    const stated = retryAfter(refused) ?? 0
    const { window: length } = limits[endpoint]
    const isRight = stated >= 1 && stated <= length
    const wait = isRight ? stated : length
    conversation.say(`${endpointName(endpoint)}: the window is used up; it ends in ${wait} s`)
    const sure = refused.sentAt + 1000 * (wait - 1)
    const end = { at: refused.at + 1000 * wait, act: () => askAtTheEnd(conversation, known, window) }
    // Without a valid Retry-After, no time is certain to be before the end.
    return isRight
      ? [{ at: sure - EARLY, act: () => askEarly(conversation, known, window, sure) }, end]
      : [end]
  })
  for (const { at, act } of steps.toSorted((a, b) => a.at - b.at)) {
    await conversation.pauseUntil(at)
    isUsedLate = (await act()) || isUsedLate
  }
  return isUsedLate
}

/** @param sure until this time the window is certainly closed (Unix time in ms) */
async function askEarly(
  conversation: Conversation,
  known: Known,
  window: Closed,
  sure: number,
): Promise<false> {
  const { question } = usualRequest(conversation, known, window.endpoint)
  if (conversation.time.wall() >= sure) return false
  const received = await conversation.send(question)
  window.isOpen = received.status !== 429
  const sent = `${question.what}, before the last second of Retry-After`
  // A response that came too late proves nothing.
  if (window.isOpen && received.at < sure)
    conversation.findings.broken('C14', sent, received, '429: a used-up window stays closed until its reset')
  return false
}

/** Returns whether the first token was used. */
async function askAtTheEnd(
  conversation: Conversation,
  known: Known,
  { endpoint, isOpen }: Closed,
): Promise<boolean> {
  if (isOpen) return false
  const { options, findings, time } = conversation
  const { requests } = options.limits[endpoint]
  const isFirst = endpoint === 'api'
  const question = isFirst
    ? useOfFirstToken(options.path, known.first, time.wall())
    : usualRequest(conversation, known, endpoint).question
  const received = await conversation.send(question)
  const sent = `${question.what}, when Retry-After is over`
  if (received.status === 429) {
    findings.broken('C15', sent, received, 'a request that passes, in a new window')
    return false
  }
  // At the reset, a fixed window is whole again. A sliding window still counts the later requests.
  const left = limitFieldsOf(received)?.remaining ?? requests
  const wanted = `${requests - 1}: the window is new`
  if (left < requests - 1) findings.broken('C14', sent, `X-RateLimit-Remaining: ${left}`, wanted)
  if (isFirst && received.status === 401)
    findings.broken('C7', sent, received, 'no 401: the token is still valid', 'device API §5.6')
  return isFirst
}
