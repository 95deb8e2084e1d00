import type { Fields } from '../../http/fields.ts'
import { type Answer, passedLimit } from '../answer.ts'
import { apiRequest, type Question, TOKEN_PATH, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Broken, Endpoint } from '../verdict.ts'
import { broken } from './round.ts'
import { type Admitted, usualRequest } from './usual-request.ts'

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
  stage: Stage,
  admitted: Admitted,
  endpoint: Endpoint,
): Promise<SecondWindows> {
  const found: Broken[] = []
  let reopened = false
  const { question: plain } = usualRequest(stage.options.path, admitted, endpoint)
  const refusals = endpoint === 'api' ? [429, 400] : [429]
  for (const question of endpoint === 'api' ? apiQuestions(stage, admitted) : oauthQuestions()) {
    const passes = ({ status }: Answer): boolean => status !== 0 && !refusals.includes(status)
    const answer = await stage.send(question)
    if (!passes(answer)) continue
    const closed = !passedLimit(await stage.send(plain))
    reopened ||= !closed
    if (closed && passes(await stage.send(question)))
      found.push(
        broken(
          'H69',
          stage.departure(question, answer, '429: the same client, the same window', 'device API §8'),
        ),
      )
  }
  return { found, reopened }
}

/** With a token that was valid until now. A server may also take the disguised path for malformed: 400. */
function apiQuestions({ options: { path }, firstLogin }: Stage, { accessToken }: Admitted): Question[] {
  const right = apiRequest(path, accessToken)
  const claims = CLAIMS.map(([name, fields]) => ({
    ...right,
    fields: [...right.fields, ...fields],
    what: `${right.what} and a spoofed ${name}`,
  }))
  const disguised = [`${path}${path.includes('?') ? '&' : '?'}postern-verify`, `/${path}`].map((other) =>
    apiRequest(other, accessToken),
  )
  const before = firstLogin?.accessToken
  const refreshed = before === undefined || before === accessToken
  return [
    ...claims,
    ...disguised,
    ...(refreshed ? [] : [apiRequest(path, before, 'with the access token from before a refresh')]),
  ].map((question) => ({ ...question, what: `${question.what}, past the limit` }))
}

/** Nothing but 429: a 400 says that the server has looked at the form. */
function oauthQuestions(): Question[] {
  const claims = CLAIMS.map(([name, fields]) => ({
    ...UNSUPPORTED_GRANT,
    fields: [...UNSUPPORTED_GRANT.fields, ...fields],
    what: `POST ${TOKEN_PATH} with a spoofed ${name}`,
  }))
  const query = `${TOKEN_PATH}?postern-verify`
  return [...claims, { ...UNSUPPORTED_GRANT, path: query, what: `POST ${query}` }].map((question) => ({
    ...question,
    what: `${question.what}, past the limit`,
  }))
}
