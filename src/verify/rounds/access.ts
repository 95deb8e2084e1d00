import { randomUUID } from 'node:crypto'
import type { Fields } from '../../http/fields.ts'
import {
  apiRequest,
  passwordForm,
  type Question,
  type Received,
  TOKEN_PATH,
  textMember,
  tokenRequest,
  unauthorized,
  withParameter,
} from '../exchange.ts'
import type { Server } from '../server.ts'
import { kept } from '../verdict.ts'
import { type Check, type Facts, type Findings, type Round, runChecks } from './round.ts'

const BEARER = ['C10', 'C11'] as const

/**
 * C10: requests with a right token in other spellings, and with everything that is not a right token. What their 401 lacks (C11) the
 * records read.
 */
export const bearer: Round = {
  promises: BEARER,
  cost: () => ({ requests: 23, seconds: 1 }),
  needsTokens: true,
  async *run(server, facts) {
    const unknown = `unknown-${randomUUID()}`
    for (const text of [unknown, facts.admitted.accessToken]) server.records.seek(text)
    yield* runChecks(server, tokenChecks(server, facts, unknown))
    yield* overHttp2(server)
    return yield* kept(BEARER)
  },
}

function refused(question: Question, clause = 'device API §5.4', holds: readonly number[] = [401]): Check {
  return { promise: 'C10', question, holds, wanted: holds.join(' or '), clause }
}

function tokenChecks({ options: { path } }: Server, { admitted, logins }: Facts, unknown: string): Check[] {
  const { accessToken: token, status } = admitted
  const right = (what: string, value: string): Check => ({
    promise: 'C10',
    question: { ...apiRequest(path, '', what), fields: ['Authorization', value] },
    holds: [status],
    wanted: `${status}, as before`,
    clause: 'RFC 9110 §11.1 and §11.4',
  })
  const wrong = (fields: Fields, what: string, clause?: string): Check =>
    refused(unauthorized(path, fields, what), clause)
  const swapped = inOtherCase(token)
  const values: Readonly<Record<string, string>> = {
    'with an unknown token': `Bearer ${unknown}`,
    'with the scheme Bearer and no token': 'Bearer',
    'with a valid token and no scheme': token,
    'with a valid token in the scheme Basic': `Basic ${token}`,
    'with a character after a valid token': `Bearer ${token}x`,
    'with a valid token without its last character': `Bearer ${token.slice(0, -1)}`,
    // A token without letters has no other case.
    ...(swapped === token ? {} : { 'with the letters of a valid token in other case': `Bearer ${swapped}` }),
    'with a refresh token as access token': `Bearer ${logins[0].refreshToken}`,
    'with an unknown and a valid token in one field': `Bearer ${unknown}, Bearer ${token}`,
  }
  const valid = ['Authorization', `Bearer ${token}`]
  const invalid = ['Authorization', `Bearer ${unknown}`]
  const two = { 'the second valid': [...invalid, ...valid], 'the first valid': [...valid, ...invalid] }
  const names = ['access_token', 'token', 'auth_token', 'bearer', 'Authorization', 'session']
  const cookie = names.map((name) => `${name}=${token}`).join('; ')
  const inQuery = unauthorized(withParameter(path, `access_token=${token}`), [], '')
  const shown = `GET ${withParameter(path, 'access_token=***')} with a valid token in the query`
  return [
    right('with the scheme in lower case', `bearer ${token}`),
    right('with two spaces before the token', `Bearer  ${token}`),
    wrong([], 'without a token'),
    ...Object.entries(values).map(([what, value]) => wrong(['Authorization', value], what)),
    ...Object.entries(two).map(([which, fields]) => {
      const question = unauthorized(path, fields, `with two Authorization fields, ${which}`)
      return refused(question, 'RFC 9110 §5.3; RFC 6750 §2', [400, 401])
    }),
    wrong(['Cookie', cookie], 'with a valid token in a cookie', 'device API §5.3'),
    ...(['HEAD', 'OPTIONS'] as const).map((method) =>
      refused(unauthorized(path, [], 'without a token', method), 'device API §4.3 and §5.4'),
    ),
    refused({ ...inQuery, what: shown }, 'device API §5.3'),
  ]
}

/** Upper case as lower case, and the reverse. */
function inOtherCase(token: string): string {
  return token.replace(/[a-z]/gi, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))
}

/** A server may check HTTP/2 in another place than HTTP/1.1. */
async function* overHttp2(server: Server): Findings {
  const client = await server.http2()
  if (typeof client === 'string') return
  const { path } = server.options
  const questions = [
    unauthorized(path, [], 'without a token, over HTTP/2'),
    unauthorized(path, ['Authorization', `Bearer ${randomUUID()}`], 'with an unknown token, over HTTP/2'),
    unauthorized(`/.${path}`, [], 'without a token, over HTTP/2'),
  ]
  const checks = questions.map((question) => ({ ...refused(question), holds: [0, 400, 401, 429] }))
  yield* runChecks(server, checks, (question) => server.send({ ...question, oddity: 'respelled' }, client))
  client.close()
}

const SPELLING = ['C1', 'H20', 'H24'] as const

const LOGINS = ['/oauth/token/', '//oauth/token', '/oauth/%74oken', TOKEN_PATH.toUpperCase()]

/** C1, H20 and H24: what another spelling of a path, or another `Host`, lets through. */
export const spelling: Round = {
  promises: SPELLING,
  cost: ({ path }) => ({ logins: LOGINS.length, requests: 8 + disguises(path).length, seconds: 1 }),
  needsTokens: true,
  async *run(server, { admitted }) {
    const { path, password, url } = server.options
    const right = apiRequest(path, admitted.accessToken)
    const second = [url.host, 'other.invalid']
    const two = 'and two Host fields, the second of another server'
    yield* runChecks(server, [
      ...LOGINS.map((path): Check => {
        const question = tokenRequest(passwordForm(password), 'with the password', path)
        return {
          promise: 'C1',
          question: { ...question, oddity: 'respelled' },
          holds: (received) => textMember(received, 'access_token') === undefined,
          wanted: `401: only ${TOKEN_PATH} gives tokens`,
        }
      }),
      ofHosts(right, 'and no Host', []),
      ofHosts(right, two, second),
      ofHosts(unauthorized(path, [], 'without a token'), two, second),
      ofHosts(right, 'and two Host fields, the first of another server', second.toReversed()),
      ...disguises(path).map(
        (other): Check => ({
          promise: 'H24',
          question: { ...unauthorized(other, [], 'without a token'), oddity: 'respelled' },
          // A redirection is no content, so it is no harm. A server error is: the server tried to serve the request.
          holds: ({ status }) => status < 500 && (status < 200 || status >= 300),
          wanted: 'a refusal: 401 or 400',
        }),
      ),
    ])
    return yield* kept(SPELLING)
  },
}

function ofHosts(question: Question, what: string, hosts: readonly string[]): Check {
  return {
    promise: 'H20',
    question: { ...question, what: `${question.what} ${what}`, hosts, oddity: 'malformed' },
    holds: ({ status, failure }: Received) => failure !== undefined || (status >= 400 && status < 500),
    wanted: '400',
  }
}

/** Other spellings of a path, and paths that a careless server resolves to it, takes for the token endpoint, or for a file. */
function disguises(path: string): string[] {
  const [plain = '/', query] = path.split('?', 2)
  const rest = query === undefined ? '' : `?${query}`
  const prefixes = ['/', '/.', '/%2e', '/x/..', '/x/%2e%2e', '/x/..;', `${TOKEN_PATH}/../..`]
  prefixes.push(`${TOKEN_PATH}/%2e%2e/%2e%2e`, '/oauth%2ftoken/..', `${TOKEN_PATH};/../..`)
  const respelled = [
    ...prefixes.map((prefix) => prefix + plain),
    `${plain};${TOKEN_PATH}`,
    `${plain}%00`,
    `${plain.replace(/\/$/, '/x')}.css`,
    `${plain};x.css`,
    plain.endsWith('/') ? `${plain}?x` : `${plain}/`,
    plain.toUpperCase(),
    TOKEN_PATH.toUpperCase(),
  ]
  return [...new Set(respelled)].filter((other) => other !== plain).map((other) => `${other}${rest}`)
}
