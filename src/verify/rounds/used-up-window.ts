import type { Endpoint } from '../../http/admission.ts'
import {
  type Asked,
  apiRequest,
  type Question,
  type Received,
  TOKEN_PATH,
  UNSUPPORTED_GRANT,
  withParameter,
} from '../exchange.ts'
import { endpointName, type Server } from '../server.ts'
import { type Broken, broken } from '../verdict.ts'
import { limitFieldsOf, retryAfter } from '../windows.ts'
import { type Facts, type Findings, useOfFirstToken, usualRequest } from './round.ts'

/** RFC 5737: an address of no host. */
const SPOOFED = '203.0.113.7'

/** Fields by which a request claims to be of another client, and their name in a report. */
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
 * Asks in a used-up window in every way that a careless server takes for another client or another endpoint (H69). What passes has
 * found another window if a plain request is still refused and it passes again. Otherwise the window has ended, or it is a leaky
 * bucket, which has a new place from time to time (C14). Returns whether it has: then the next request does not open a window.
 */
export async function* secondWindows(server: Server, facts: Facts, endpoint: Endpoint): Findings<boolean> {
  let reopened = false
  const { question: plain } = usualRequest(server, facts, endpoint)
  // A server may take a disguised path for malformed. At the token endpoint a 400 says that it has looked at the form.
  const refusals = endpoint === 'api' ? [0, 429, 400] : [0, 429]
  const passes = ({ status }: Received): boolean => !refusals.includes(status)
  for (const each of questionsOf(endpoint, server.options.path, facts)) {
    const question = { ...each, what: `${each.what}, past the limit` }
    const received = await server.send(question)
    if (!passes(received)) continue
    const closed = [0, 429].includes((await server.send(plain)).status)
    reopened ||= !closed
    if (closed && passes(await server.send(question)))
      yield broken('H69', question.what, received, '429: the same client, the same window')
  }
  return reopened
}

/** Those to the API carry a token that was valid until now. */
function questionsOf(endpoint: Endpoint, path: string, { first, admitted }: Facts): readonly Question[] {
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

/** A window shorter than this has no moment that is surely before its end (s). */
const SHORTEST_WINDOW = 3

/** The window is still closed so long before `Retry-After` is over (ms): it is rounded up by a second, and clocks differ a little. */
const EARLY = 1_600

/** The window may end so long before `Retry-After` is over, or before the reset (ms). */
const ROUNDED = 1_200

/**
 * Asks shortly before a used-up window ends, which must fail (C14), and when `Retry-After` is over, which must not (C15). `opening`
 * opened the next window. It is absent if that was open before.
 */
export async function recovery(
  server: Server,
  facts: Facts,
  endpoint: Endpoint,
  refused: Received,
): Promise<{ readonly found: readonly Broken[]; readonly opening?: Asked }> {
  const { options, clock, records } = server
  const { window, requests } = options.limits[endpoint]
  const usual = usualRequest(server, facts, endpoint)
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
    const { question } = usual
    await server.pause(sure - EARLY - clock.wall())
    last = await server.send(question)
    // On a busy machine it may come so late that it opens the next window. That proves nothing.
    const inTime = last.at + (refused.at - refused.sentAt) < sure - ROUNDED
    const sent = `${question.what}, ${EARLY / 1000} s before the window ends`
    const early = broken('C14', sent, last, '429: a used-up window stays closed until its reset')
    if (last.status !== 429) return { found: inTime ? [early] : [] }
  }
  // A refused request must not make the window longer: the first Retry-After decides, and a later one may add its rounding.
  await server.pause(Math.min(endOf(last), end + 1000) - clock.wall())
  const question = endpoint === 'api' ? useOfFirstToken(server, facts.first) : usual.question
  const received = await server.send(question)
  const { what } = question
  const late = `${what}, when Retry-After is over`
  if (received.status === 429)
    return { found: [broken('C15', late, received, 'a request that passes, in a new window')] }
  // C14: at the reset all of a fixed window comes back. A sliding window still counts the later requests.
  const left = limitFieldsOf(received)?.remaining ?? requests
  const wanted = `${requests - 1}: the window is new`
  const stale = broken('C14', `${what}, at the reset`, `X-RateLimit-Remaining: ${left}`, wanted)
  const found = left < requests - 1 ? [stale] : []
  return received.status === 0 ? { found } : { found, opening: { ...usual, question, received } }
}
