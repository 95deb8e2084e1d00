import type { Endpoint } from '../../http/admission.ts'
import type { Fields } from '../../http/fields.ts'
import { limitFieldsOf, retryAfter } from '../limit-fields.ts'
import { apiRequest, type Question, TOKEN_PATH, UNSUPPORTED_GRANT, withParameter } from '../question.ts'
import type { Received } from '../received.ts'
import { endpointName, type Server } from '../server.ts'
import { type Broken, broken, wrongResponse } from '../verdict.ts'
import { useOfFirstToken } from './refresh.ts'
import { type Known, usualRequest } from './round.ts'

/** RFC 5737: an address of no host. */
const SPOOFED = '203.0.113.7'

const CLAIMS: readonly (readonly [string, Fields])[] = [
  ['X-Forwarded-For', ['X-Forwarded-For', SPOOFED]],
  ['Forwarded', ['Forwarded', `for=${SPOOFED}`]],
  ['X-Real-IP', ['X-Real-IP', SPOOFED]],
  ['X-Forwarded-For with two addresses', ['X-Forwarded-For', `${SPOOFED}, 203.0.113.8`]],
  ['second X-Forwarded-For', ['X-Forwarded-For', '203.0.113.8', 'X-Forwarded-For', SPOOFED]],
  [
    'X-Client-IP, True-Client-IP, CF-Connecting-IP, X-Cluster-Client-IP, X-Forwarded and Via',
    [
      ...['X-Client-IP', SPOOFED, 'True-Client-IP', SPOOFED, 'CF-Connecting-IP', SPOOFED],
      ...['X-Cluster-Client-IP', SPOOFED, 'X-Forwarded', `for=${SPOOFED}`, 'Via', '1.1 other.invalid'],
    ],
  ],
  [
    'User-Agent, Cookie and Accept-Language',
    ['User-Agent', 'other', 'Cookie', 'session=other', 'Accept-Language', 'eo'],
  ],
]

export interface SecondWindows {
  readonly found: readonly Broken[]
  /** A plain request has passed meanwhile, so the next request does not open a window. */
  readonly reopened: boolean
}

/**
 * Asks in a used-up window in every way that a careless server takes for another client or another endpoint (H69). What passes has
 * found another window if a plain request is still refused and it passes again. Otherwise the window has ended, or it is a leaky
 * bucket, which has a new place from time to time (C14).
 */
export async function secondWindows(
  server: Server,
  known: Known,
  endpoint: Endpoint,
): Promise<SecondWindows> {
  const found: Broken[] = []
  let reopened = false
  const { question: plain } = usualRequest(server.options, known.admitted, endpoint)
  // A server may take a disguised path for malformed. At the token endpoint a 400 says that it has looked at the form.
  const refusals = endpoint === 'api' ? [0, 429, 400] : [0, 429]
  const passes = ({ status }: Received): boolean => !refusals.includes(status)
  for (const each of endpoint === 'api' ? apiQuestions(server, known) : oauthQuestions()) {
    const question = { ...each, what: `${each.what}, past the limit` }
    const received = await server.send(question)
    if (!passes(received)) continue
    const closed = [0, 429].includes((await server.send(plain)).status)
    reopened ||= !closed
    const wanted = '429: the same client, the same window'
    if (closed && passes(await server.send(question)))
      found.push(wrongResponse('H69', question, received, wanted, 'device API §8'))
  }
  return { found, reopened }
}

/** With a token that was valid until now. */
function apiQuestions(
  { options: { path } }: Server,
  { first, admitted: { accessToken } }: Known,
): Question[] {
  const right = apiRequest(path, accessToken)
  const before = first?.accessToken ?? accessToken
  return [
    ...CLAIMS.map(([name, fields]) => ({
      ...right,
      fields: [...right.fields, ...fields],
      what: `${right.what} and a spoofed ${name}`,
    })),
    ...[withParameter(path, 'postern-verify'), `/${path}`].map((other) => apiRequest(other, accessToken)),
    ...(before === accessToken
      ? []
      : [apiRequest(path, before, 'with the access token from before a refresh')]),
  ]
}

function oauthQuestions(): Question[] {
  const query = withParameter(TOKEN_PATH, 'postern-verify')
  return [
    ...CLAIMS.map(([name, fields]) => ({
      ...UNSUPPORTED_GRANT,
      fields: [...UNSUPPORTED_GRANT.fields, ...fields],
      what: `POST ${TOKEN_PATH} with a spoofed ${name}`,
    })),
    { ...UNSUPPORTED_GRANT, path: query, what: `POST ${query}` },
  ]
}

/** A window shorter than this has no moment that is surely before its end (s). */
const SHORTEST_WINDOW = 3

/** The window is still closed so long before `Retry-After` is over (ms): it is rounded up by a second, and clocks differ a little. */
const EARLY = 1_600

/** The window may end so long before `Retry-After` is over, or before the reset (ms). */
const ROUNDED = 1_200

export interface Recovery {
  readonly found: readonly Broken[]
  /** The request that opened the next window. Undefined if it was open before. */
  readonly opening?: { readonly question: Question; readonly received: Received }
}

/** Asks shortly before a used-up window ends, which must fail (C14), and when `Retry-After` is over, which must not (C15). */
export async function recovery(
  server: Server,
  known: Known,
  endpoint: Endpoint,
  refused: Received,
): Promise<Recovery> {
  const { options, clock, records, send, pause } = server
  const { window, requests } = options.limits[endpoint]
  /** When a refused client may ask again, by `Retry-After` or, without a right one, by the reset (Unix time in ms). */
  const endOf = (refusal: Received): number => {
    const wait = retryAfter(refusal) ?? 0
    return wait < 1 || wait > window ? records.windowEnd(endpoint) : refusal.at + wait * 1000
  }
  const end = endOf(refused)
  const seconds = Math.ceil((end - clock.wall()) / 1000)
  server.say(`${endpointName(endpoint)}: the window is used up; it ends in ${seconds} s`)
  let last = refused
  // A wrong Retry-After, or a wrong reset, must not make this late.
  const sure = Math.min(end, records.windowEnd(endpoint))
  if (window >= SHORTEST_WINDOW && sure - EARLY > clock.wall()) {
    const { question: early } = usualRequest(options, known.admitted, endpoint)
    await pause(sure - EARLY - clock.wall())
    last = await send(early)
    // On a busy machine it may come so late that it opens the next window. That proves nothing.
    const inTime = last.at + (refused.at - refused.sentAt) < sure - ROUNDED
    const wanted = '429: a used-up window stays closed until its reset'
    if (last.status !== 429)
      return {
        found: inTime
          ? [atTheEnd('C14', early, last, `${EARLY / 1000} s before the window ends`, wanted)]
          : [],
      }
  }
  // A refused request must not make the window longer: the first Retry-After decides, and a later one may add its rounding.
  await pause(Math.min(endOf(last), end + 1000) - clock.wall())
  const { first } = known
  const question =
    endpoint === 'api' && first !== undefined ? useOfFirstToken(server, first) : UNSUPPORTED_GRANT
  const received = await send(question)
  const opening = { question, received }
  const wanted = 'a request that passes, in a new window'
  if (received.status === 429)
    return { opening, found: [atTheEnd('C15', question, received, 'when Retry-After is over', wanted)] }
  // C14: at the reset all of a fixed window comes back. A sliding window still counts the later requests.
  const left = limitFieldsOf(received)?.remaining ?? requests
  if (left >= requests - 1) return { opening, found: [] }
  const sent = `${question.what}, at the reset`
  const came = `X-RateLimit-Remaining: ${left}`
  const isNew = `${requests - 1}: the window is new`
  return { opening, found: [broken('C14', { sent, came, wanted: isNew, clause: 'device API §8' })] }
}

function atTheEnd(
  promise: 'C14' | 'C15',
  { what }: Question,
  received: Received,
  when: string,
  wanted: string,
): Broken {
  return wrongResponse(promise, { what: `${what}, ${when}` }, received, wanted, 'device API §8; RFC 6585 §4')
}
