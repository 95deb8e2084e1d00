import { randomUUID } from 'node:crypto'
import { type Fields, listMembers } from '../http/fields.ts'
import type { VerifyOptions } from './options.ts'
import type { OutsideId } from './promises.ts'
import {
  apiRequest,
  described,
  GET_TOKEN,
  mediaTypeOf,
  member,
  passwordForm,
  type Question,
  type Received,
  refreshGrant,
  shown,
  TOKEN_PATH,
  textMember,
  tokenRequest,
  UNSUPPORTED_GRANT,
  unauthorized,
  withParameter,
} from './question.ts'
import type { FloodFigures } from './verdict.ts'

/** A condition on a response. */
interface Expectation {
  readonly holds: (received: Received) => boolean
  readonly wanted: string
  /** Default: the clauses of the promise. */
  readonly clause?: string
  /** Default: the promise of the row. */
  readonly promise?: OutsideId
  /** The failed response, in words. Default: `described`. */
  readonly came?: (received: Received) => string
}

/** A request, the expectations on its response, and the promise behind them. If the first expectation fails, the others are not judged. */
export interface Row {
  readonly promise: OutsideId
  readonly question: Question
  readonly expects: readonly Expectation[]
  /** The request is sent after this pause (s). */
  readonly after?: number
  /** The observation to note if all expectations hold. */
  readonly note?: string
}

/** Rows one after the other. Each `yield` returns the response, because a later row may use its tokens. */
export type Rows<Result = void> = Generator<Row, Result, Received>

interface TokenPair {
  readonly accessToken: string
  readonly refreshToken: string
}

/** The facts that are known once two logins have given tokens that the API admits. */
export interface Known {
  /** The newest tokens of the two logins. */
  readonly logins: readonly [TokenPair, TokenPair]
  /** The access token of the first login, and the time of the login (Unix time in ms). */
  readonly first: { readonly accessToken: string; readonly at: number }
  /** The latest access token that the API has admitted, and the status of the response. */
  readonly admitted: { readonly accessToken: string; readonly status: number }
  /** Whether a refresh keeps or replaces the refresh token. Undefined if that is unknown, or if a refresh breaks C6. */
  readonly refreshing?: 'keeps' | 'replaces'
  /** True once the first token was used late, at the end of a used-up window. */
  readonly isUsedLate?: true
  readonly floods?: readonly FloodFigures[]
}

/** A row with one expectation. */
function row(
  promise: OutsideId,
  question: Question,
  holds: readonly number[] | ((received: Received) => boolean),
  wanted: string,
  clause?: string,
): Row {
  const expected = typeof holds === 'function' ? holds : ({ status }: Received) => holds.includes(status)
  return { promise, question, expects: [{ holds: expected, wanted, ...(clause && { clause }) }] }
}

/** RFC 6750 §2.1: the only characters of a token that fit into an `Authorization` field. */
const B64TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/** The tokens in a response, if both are usable. */
function tokensIn(received: Received): TokenPair | undefined {
  const accessToken = textMember(received, 'access_token')
  const refreshToken = textMember(received, 'refresh_token')
  if (accessToken === undefined || refreshToken === undefined) return undefined
  return B64TOKEN.test(accessToken) ? { accessToken, refreshToken } : undefined
}

/** The tokens of a grant after the response to a refresh, which may omit a refresh token that stays the same (RFC 6749 §6). */
export function refreshed(before: TokenPair, received: Received): TokenPair {
  const accessToken = textMember(received, 'access_token')
  if (received.status !== 200 || accessToken === undefined) return before
  return { accessToken, refreshToken: textMember(received, 'refresh_token') ?? before.refreshToken }
}

/** A request with the token of the first login, however often the login was refreshed since. */
export function useOfFirstToken(path: string, { accessToken, at }: Known['first'], now: number): Question {
  return apiRequest(
    path,
    accessToken,
    `with the token of the first login, ${Math.round((now - at) / 1000)} s old`,
  )
}

function memberOf(
  name: string,
  isRight: (value: unknown) => boolean,
  wanted: string,
  promise: OutsideId = 'C4',
  clause = 'device API §2',
): Expectation {
  return {
    promise,
    holds: (received) => isRight(member(received, name)),
    wanted,
    clause,
    came: (received) => `${name}: ${shown(member(received, name))}`,
  }
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

/** The lifetime of an access token (device API §5.6), in seconds. A value that is no integer breaks C4, so C7 does not judge it. */
const LIFETIME = memberOf(
  'expires_in',
  (stated) => !Number.isInteger(stated) || stated === 3600,
  '3600',
  'C7',
  'device API §5.6',
)

/** The expectations on the response to a password grant (C4). */
const LOGIN: readonly Expectation[] = [
  { holds: ({ status }) => status === 200, wanted: '200 with tokens', clause: 'device API §4.1' },
  {
    holds: (received) => mediaTypeOf(received) === 'application/json',
    wanted: 'application/json',
    clause: 'RFC 6749 §5.1',
    came: (received) => `Content-Type: ${mediaTypeOf(received)}`,
  },
  {
    holds: ({ fields }) => listMembers(fields.get('cache-control') ?? []).includes('no-store'),
    wanted: 'Cache-Control: no-store',
    clause: 'RFC 6749 §5.1',
    came: () => '200 without Cache-Control: no-store',
  },
  memberOf('token_type', (value) => /^bearer$/i.test(String(value)) && isText(value), 'the text Bearer'),
  memberOf('expires_in', Number.isInteger, 'an integer'),
  memberOf('access_token', isText, 'an opaque string'),
  memberOf('refresh_token', isText, 'an opaque string'),
  {
    holds: (received) => B64TOKEN.test(textMember(received, 'access_token') ?? 'none'),
    wanted: 'b64token',
    clause: 'RFC 6750 §2.1',
    came: () => 'access_token with characters that no Authorization field takes',
  },
  LIFETIME,
]

/** Expects tokens that differ from those of an earlier login, and from each other: equal tokens can be guessed. */
function unlike({ accessToken, refreshToken }: TokenPair): readonly Expectation[] {
  const rows: readonly (readonly [came: string, holds: Expectation['holds']])[] = [
    ['the same access token for both logins', (other) => textMember(other, 'access_token') !== accessToken],
    [
      'the same refresh token for both logins',
      (other) => textMember(other, 'refresh_token') !== refreshToken,
    ],
    ['a refresh token that is the access token', () => accessToken !== refreshToken],
  ]
  const wanted = 'tokens that cannot be guessed from others'
  return rows.map(([came, holds]) => ({ holds, wanted, clause: 'RFC 6749 §10.10', came: () => came }))
}

const IGNORED = {
  // No entry of `passwords` can have this name: Postern would compare the password with the one of that name.
  username: 'verify@postern',
  client_id: 'postern-verify',
  client_secret: 'none',
  scope: 'all',
  postern_verify: '1',
}

/**
 * C4 and C3: the logins, whose tokens the other rows use. Returns undefined if the API admits none.
 *
 * @param require throws if nothing can be checked after the first response
 */
export function* logins(
  { password, path }: VerifyOptions,
  require: (received: Received) => void,
): Rows<{ readonly known: Known | undefined; readonly third: TokenPair | undefined }> {
  const question = tokenRequest(passwordForm(password), 'with the password')
  const first = yield { promise: 'C4', question, expects: LOGIN }
  require(first)
  const pair = tokensIn(first)
  if (pair === undefined) return { known: undefined, third: undefined }
  const other = tokensIn(yield { promise: 'C4', question, expects: [...LOGIN, ...unlike(pair)] })
  const { accessToken } = pair
  const used = yield row(
    'C4',
    apiRequest(path, accessToken, 'with the token of the first login'),
    ({ status }) => status !== 401 && status !== 0,
    'the response of the API, not 401',
    'device API §5.3',
  )
  if (member(used, 'error') === 'insufficient_scope') require(used)
  const form = tokenRequest(
    { ...passwordForm(password), ...IGNORED },
    'with the password, a username, client credentials, a scope, an unknown parameter and Basic authorization',
  )
  const basic = `Basic ${Buffer.from('postern-verify:none').toString('base64')}`
  const third = yield row(
    'C3',
    { ...form, fields: [...form.fields, 'Authorization', basic] },
    (received) => received.status === first.status && tokensIn(received) !== undefined,
    '200: the password is right, the rest is ignored',
  )
  const { status } = used
  const isAdmitted = other !== undefined && ![0, 401, 429].includes(status)
  const of = { first: { accessToken, at: first.sentAt }, admitted: { accessToken, status } }
  return { known: isAdmitted ? { logins: [pair, other], ...of } : undefined, third: tokensIn(third) }
}

/** C5: a token whose revocation the server has confirmed is not valid any more. */
export function* afterRevocation({ refreshToken }: TokenPair): Rows {
  yield row(
    'C5',
    refreshGrant(refreshToken, 'with a refresh token whose revocation was answered with 200'),
    ({ status }) => status !== 200,
    '400 invalid_grant: the token is revoked',
    'RFC 7009 §2.2; RFC 6749 §5.2',
  )
}

function refusal(promise: 'C2' | 'C5', question: Question, error: string): Row {
  const isRight = (received: Received) => received.status === 400 && member(received, 'error') === error
  return row(promise, { ...question, refused: true }, isRight, `400 ${error}`, 'RFC 6749 §5.2')
}

/** C2 and C5: token requests that must be refused. */
export function* tokenErrors({ password }: VerifyOptions, { admitted: { accessToken } }: Known): Rows {
  const [wrong, unknown] = [`wrong-${randomUUID()}`, `unknown-${randomUUID()}`]
  const form = passwordForm(password)
  const { body } = tokenRequest(form, '')
  const twice = (what: string, more: string): Question => {
    return { ...tokenRequest({}, what), body: `${body}&${more}` }
  }
  const malformed: readonly Question[] = [
    tokenRequest({ password }, 'without grant_type'),
    tokenRequest({ grant_type: 'password' }, 'without password'),
    tokenRequest(passwordForm(''), 'with an empty password'),
    twice('with grant_type twice', 'grant_type=password'),
    twice('with the password twice', String(new URLSearchParams({ password }))),
    {
      ...tokenRequest({}, 'with the password, as JSON'),
      fields: ['Content-Type', 'application/json'],
      body: JSON.stringify(form),
    },
  ]
  for (const question of malformed) yield refusal('C2', question, 'invalid_request')
  yield refusal('C5', tokenRequest(passwordForm(wrong), 'with a wrong password'), 'invalid_grant')
  yield refusal('C5', refreshGrant(unknown, 'with an unknown refresh token'), 'invalid_grant')
  yield refusal('C5', refreshGrant(accessToken, 'with an access token as refresh token'), 'invalid_grant')
  yield refusal('C5', UNSUPPORTED_GRANT, 'unsupported_grant_type')
  // A wrong password, so that no access log gets the right one. A server that reads it answers otherwise than to the bare GET.
  const bare = yield { promise: 'C19', question: GET_TOKEN, expects: [] }
  const query = `${TOKEN_PATH}?${tokenRequest(passwordForm(wrong), '').body}`
  yield row(
    'C2',
    { ...GET_TOKEN, path: query, what: `${GET_TOKEN.what} with a wrong password in the query` },
    (received) => {
      const error = member(received, 'error')
      const isLogin = error === 'invalid_grant' || received.status === 401 || received.status === 200
      return !isLogin || (received.status === bare.status && error === member(bare, 'error'))
    },
    'the response to a GET without a query: a login is a POST',
    'RFC 6749 §2.3.1 and §3.2',
  )
}

/** C6 and C7: one refresh. */
function refresh(before: TokenPair, what: string): Row {
  const expected: Expectation = {
    holds: (received) => refreshed(before, received).accessToken !== before.accessToken,
    wanted: '200 with a new access token',
    clause: 'device API §4.2',
    came: (received) =>
      received.status === 200 && textMember(received, 'access_token') !== undefined
        ? '200 with the access token from before'
        : described(received),
  }
  return { promise: 'C6', question: refreshGrant(before.refreshToken, what), expects: [expected, LIFETIME] }
}

/** C6: the refresh grant, with a refresh token that is kept or replaced. Returns the updated facts. */
export function* refreshes({ path, quick }: VerifyOptions, known: Known): Rows<Known> {
  const [first, other] = known.logins
  const { status } = known.admitted
  function* admits({ accessToken }: TokenPair, what: string, note?: string): Rows<boolean> {
    const question = apiRequest(path, accessToken, what)
    const used = row('C6', question, [status], `${status}, as before`, 'device API §5.6')
    return (yield { ...used, ...(note && { note }) }).status === status
  }
  const one = refreshed(first, yield refresh(first, 'with the refresh token'))
  if (one.accessToken === first.accessToken) return { ...known, logins: [one, other] }
  const replaces = one.refreshToken !== first.refreshToken
  const old = yield* admits(first, 'with the access token from before the refresh')
  const fresh = yield* admits(one, 'with the access token of the refresh')
  const again = replaces ? 'with the refresh token of the refresh' : 'with the refresh token, again'
  const two = refreshed(one, yield refresh(one, again))
  const isNew = two.accessToken !== one.accessToken
  const note = replaces ? 'each refresh replaces the refresh token' : 'the refresh token stays the same'
  const last = isNew && (yield* admits(two, 'with the access token of the second refresh', note))
  const spent = !replaces || (yield* spentToken(other, quick))
  const { accessToken } = last ? two : fresh ? one : first
  const now: Known = { ...known, logins: [two, other], admitted: { accessToken, status } }
  return old && fresh && last && spent ? { ...now, refreshing: replaces ? 'replaces' : 'keeps' } : now
}

/** A pause (s) after which a server must refuse a spent refresh token. C6 allows 10 s for a client that lost the response. */
export const GRACE = 12

/** Presents a replaced refresh token again: at once, and after `GRACE`. Returns whether the server did right each time. */
function* spentToken(login: TokenPair, quick: boolean): Rows<boolean> {
  const next = refreshed(login, yield refresh(login, 'with the refresh token of the second login'))
  if (next.accessToken === login.accessToken) return false
  const shows = (token: string, what: string, holds: Expectation['holds'], wanted: string): Row =>
    row('C6', refreshGrant(token, what), holds, wanted, 'RFC 9700 §4.14.2')
  const isRefused = ({ status }: Received): boolean => status === 400
  const repeats = (received: Received): boolean =>
    isRefused(received) ||
    (received.status === 200 && textMember(received, 'refresh_token') === next.refreshToken)
  const spent = 'with a spent refresh token'
  const same = '400, or the same tokens as for the first time'
  const atOnce = repeats(yield shows(login.refreshToken, `${spent}, at once`, repeats, same))
  if (!atOnce || quick) return atOnce
  const late = shows(login.refreshToken, `${spent}, ${GRACE} s later`, isRefused, '400 invalid_grant')
  if (!isRefused(yield { ...late, after: GRACE })) return false
  const successor = 'with the successor of a refresh token that was used twice'
  const revoked = '400: the whole login is revoked, because one of the two users stole it'
  return isRefused(yield shows(next.refreshToken, successor, isRefused, revoked))
}

/** C7: a late use of the first token. */
export function* lateUse({ path }: VerifyOptions, { first }: Known, now: number): Rows {
  const isAdmitted = ({ status }: Received): boolean => status !== 401
  const wanted = 'no 401: the token is still valid'
  yield row('C7', useOfFirstToken(path, first, now), isAdmitted, wanted, 'device API §5.6')
}

/** C10: a valid token in other spellings, and values that are no valid token. */
export function* bearer({ path }: VerifyOptions, { admitted, logins }: Known): Rows {
  const unknown = `unknown-${randomUUID()}`
  const { accessToken: token, status } = admitted
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
  const names = ['access_token', 'token', 'auth_token', 'bearer', 'Authorization', 'session']
  const cookie = names.map((name) => `${name}=${token}`).join('; ')
  const admits = (what: string, value: string): Row => {
    const question = { ...apiRequest(path, '', what), fields: ['Authorization', value] }
    return row('C10', question, [status], `${status}, as before`, 'RFC 9110 §11.1 and §11.4')
  }
  const refuses = (question: Question, clause = 'device API §5.4'): Row =>
    row('C10', question, [401], '401', clause)
  const either = (fields: Fields, what: string): Row =>
    row('C10', unauthorized(path, fields, what), [400, 401], '400 or 401', 'RFC 9110 §5.3; RFC 6750 §2')

  yield admits('with the scheme in lower case', `bearer ${token}`)
  yield admits('with two spaces before the token', `Bearer  ${token}`)
  yield refuses(unauthorized(path, [], 'without a token'))
  for (const [what, value] of Object.entries(values))
    yield refuses(unauthorized(path, ['Authorization', value], what))
  yield either([...invalid, ...valid], 'with two Authorization fields, the second valid')
  yield either([...valid, ...invalid], 'with two Authorization fields, the first valid')
  yield refuses(unauthorized(path, ['Cookie', cookie], 'with a valid token in a cookie'), 'device API §5.3')
  for (const method of ['HEAD', 'OPTIONS'] as const)
    yield refuses(unauthorized(path, [], 'without a token', method), 'device API §4.3 and §5.4')
  const inQuery = unauthorized(withParameter(path, `access_token=${token}`), [], '')
  const what = `GET ${withParameter(path, 'access_token=***')} with a valid token in the query`
  yield refuses({ ...inQuery, what }, 'device API §5.3')
}

/** The token with upper and lower case swapped. */
function inOtherCase(token: string): string {
  return token.replace(/[a-z]/gi, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))
}

/** C10 over HTTP/2, for which a server may have other checks than for HTTP/1.1. */
export function* bearerOverHttp2({ path }: VerifyOptions): Rows {
  const questions = [
    unauthorized(path, [], 'without a token, over HTTP/2'),
    unauthorized(path, ['Authorization', `Bearer ${randomUUID()}`], 'with an unknown token, over HTTP/2'),
    unauthorized(`/.${path}`, [], 'without a token, over HTTP/2'),
  ]
  for (const question of questions)
    yield row('C10', { ...question, oddity: 'respelled' }, [0, 400, 401, 429], '401', 'device API §5.4')
}

export const LOGIN_SPELLINGS = ['/oauth/token/', '//oauth/token', '/oauth/%74oken', TOKEN_PATH.toUpperCase()]

/** C1, H20 and H24: no other spelling of a path, and no other `Host`, gets past a check. */
export function* spellings({ path, password, url }: VerifyOptions, { admitted }: Known): Rows {
  const isNoLogin = (received: Received): boolean => textMember(received, 'access_token') === undefined
  for (const other of LOGIN_SPELLINGS) {
    const question = tokenRequest(passwordForm(password), 'with the password', other)
    yield row('C1', { ...question, oddity: 'respelled' }, isNoLogin, `401: only ${TOKEN_PATH} gives tokens`)
  }
  const right = apiRequest(path, admitted.accessToken)
  const bare = unauthorized(path, [], 'without a token')
  const [own, other] = [url.host, 'other.invalid']
  const odd: readonly (readonly [question: Question, what: string, ...hosts: readonly string[]])[] = [
    [right, 'and no Host'],
    [right, 'and two Host fields, the second of another server', own, other],
    [bare, 'and two Host fields, the second of another server', own, other],
    [right, 'and two Host fields, the first of another server', other, own],
  ]
  const isRefused = ({ status, failure }: Received): boolean =>
    failure !== undefined || (status >= 400 && status < 500)
  for (const [question, what, ...hosts] of odd)
    yield row(
      'H20',
      { ...question, what: `${question.what} ${what}`, hosts, oddity: 'malformed' },
      isRefused,
      '400',
    )
  // A redirection gives no content, so it is allowed. A server error is not: the server has tried to serve the request.
  const isNoContent = ({ status }: Received): boolean => status < 500 && (status < 200 || status >= 300)
  for (const other of disguises(path)) {
    const question = unauthorized(other, [], 'without a token')
    yield row('H24', { ...question, oddity: 'respelled' }, isNoContent, 'a refusal: 401 or 400')
  }
}

/** Other spellings of a path, and paths that a careless server resolves to it, or takes for the token endpoint or a file. */
export function disguises(path: string): string[] {
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
