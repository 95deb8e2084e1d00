import { randomUUID } from 'node:crypto'
import { listMembers } from '../../http/fields.ts'
import { SetupError } from '../../system/setup-error.ts'
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
  textMember,
  tokenRequest,
  UNSUPPORTED_GRANT,
} from '../exchange.ts'
import type { VerifyOptions } from '../options.ts'
import type { Server } from '../server.ts'
import { type Broken, broken, kept, untested } from '../verdict.ts'
import { lifetimeFault } from './refresh.ts'
import { type Check, type Findings, type Round, runChecks, type TokenPair } from './round.ts'

/** C4 and C3: the logins. The other rounds use their tokens. */
export const login: Round = {
  promises: ['C3', 'C4'],
  cost: () => ({ logins: 3, requests: 6, seconds: 1 }),
  needsTokens: false,
  async *run(server) {
    const { password, path } = server.options
    const question = tokenRequest(passwordForm(password), 'with the password')
    const first = await server.ask(question)
    requireAccepted(server.options, first)
    yield* loginFaults(question, first)
    if (Number.isInteger(member(first, 'expires_in'))) yield* lifetimeFault(question, first)
    const pair = tokensIn(first)
    if (pair === undefined) return yield* untested(['C3'], 'the first login gave no tokens')
    const second = await server.ask(question)
    const other = tokensIn(second)
    yield* loginFaults(question, second)
    yield* likenesses(question, pair, other)
    const { accessToken } = pair
    const use = apiRequest(path, accessToken, 'with the token of the first login')
    const used = await server.ask(use)
    const { status } = used
    if (member(used, 'error') === 'insufficient_scope')
      throw new SetupError(`the name of this password may not GET ${path}: ${described(used)}`, {
        exitCode: 1,
        remedy: 'name a path that it may read with --path, or verify with a password that may do everything',
      })
    if (status === 401 || status === 0)
      yield broken('C4', use.what, used, 'the response of the API, not 401', 'device API §5.3')
    yield* ignoredParameters(server, first.status)
    yield* kept(['C3', 'C4'])
    if (other === undefined || [0, 401, 429].includes(status)) return undefined
    const admitted = { accessToken, status }
    const of = { accessToken, at: first.sentAt }
    return { logins: [pair, other], first: of, admitted, openings: new Map(), floods: [] }
  },
}

/** Fails if nothing can be checked: no connection, or a password that the server does not take. */
function requireAccepted({ url: { origin }, tls }: VerifyOptions, received: Received): void {
  const { failure, status } = received
  if (failure !== undefined)
    throw new SetupError(`${origin}: ${failure}`, { exitCode: 1, remedy: remedyFor(failure, tls) })
  if (member(received, 'error') !== 'invalid_grant' && status !== 401 && status !== 403) return
  throw new SetupError(`${origin} does not accept the password: ${described(received)}`, {
    exitCode: 1,
    remedy: 'correct the password file; nothing was checked',
  })
}

/** @param failure in the words of OpenSSL and Node */
function remedyFor(failure: string, { ca }: VerifyOptions['tls']): string {
  if (/certificate|hostname|altnames|unable to verify/i.test(failure))
    return ca === undefined
      ? 'name its certificate, or that of its authority, with --ca (--insecure accepts any)'
      : 'the file of --ca has to hold its certificate, or that of its authority, for this name'
  const plain = /wrong version number|packet length too long/i.test(failure)
  return plain ? 'it may speak http, not https, at this port' : 'check address and port'
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

type Row = readonly [holds: boolean, came: string, wanted: string, clause?: string]

/** The rows of C4 that do not hold. */
function unmet(what: string, rows: readonly Row[]): Broken[] {
  return rows.flatMap(([holds, came, wanted, clause = 'device API §2']) =>
    holds ? [] : [broken('C4', what, came, wanted, clause)],
  )
}

/** What a response to a password grant lacks, apart from the lifetime (C7). */
function loginFaults({ what }: Question, received: Received): Broken[] {
  if (received.status !== 200) return [broken('C4', what, received, '200 with tokens', 'device API §4.1')]
  const kind = member(received, 'token_type')
  const lifetime = member(received, 'expires_in')
  const token = textMember(received, 'access_token')
  const type = mediaTypeOf(received)
  const noStore = listMembers(received.fields.get('cache-control') ?? []).includes('no-store')
  const isBearer = typeof kind === 'string' && kind.toLowerCase() === 'bearer'
  const opaque = (name: string): Row => {
    const holds = textMember(received, name) !== undefined
    return [holds, `${name}: ${shown(member(received, name))}`, 'an opaque string']
  }
  const unfit = 'access_token with characters that no Authorization field takes'
  return unmet(what, [
    [type === 'application/json', `Content-Type: ${type}`, 'application/json', 'RFC 6749 §5.1'],
    [noStore, '200 without Cache-Control: no-store', 'Cache-Control: no-store', 'RFC 6749 §5.1'],
    [isBearer, `token_type: ${typeof kind === 'string' ? 'another' : shown(kind)}`, 'Bearer'],
    [Number.isInteger(lifetime), `expires_in: ${shown(lifetime)}`, 'an integer'],
    opaque('access_token'),
    opaque('refresh_token'),
    [token === undefined || B64TOKEN.test(token), unfit, 'b64token', 'RFC 6750 §2.1'],
  ])
}

function likenesses({ what }: Question, first: TokenPair, second: TokenPair | undefined): Broken[] {
  const wanted = 'tokens that cannot be guessed from others'
  const clause = 'RFC 6749 §10.10'
  return unmet(`${what}, twice`, [
    [first.accessToken !== second?.accessToken, 'the same access token for both logins', wanted, clause],
    [first.refreshToken !== second?.refreshToken, 'the same refresh token for both logins', wanted, clause],
    [first.accessToken !== first.refreshToken, 'a refresh token that is the access token', wanted, clause],
  ])
}

const IGNORED = [
  ['username', 'admin'],
  ['client_id', 'postern-verify'],
  ['client_secret', 'none'],
  ['scope', 'all'],
  ['postern_verify', '1'],
] as const

/** C3: the response is the same as without them. C5: what the server says it has revoked is not valid any more. */
async function* ignoredParameters(server: Server, usual: number): Findings {
  const form = tokenRequest(
    [...passwordForm(server.options.password), ...IGNORED],
    'with the password, a username, client credentials, a scope, an unknown parameter and Basic authorization',
  )
  const basic = `Basic ${Buffer.from('postern-verify:none').toString('base64')}`
  const question = { ...form, fields: [...form.fields, 'Authorization', basic] }
  const received = await server.ask(question)
  const pair = tokensIn(received)
  // The run needs no third login.
  if (pair !== undefined && (await server.revoke(pair.refreshToken)) === undefined) {
    const reuse: Check = {
      promise: 'C5',
      question: refreshGrant(
        pair.refreshToken,
        'with a refresh token whose revocation was answered with 200',
      ),
      holds: ({ status }) => status !== 200,
      wanted: '400 invalid_grant: the token is revoked',
      clause: 'RFC 7009 §2.2; RFC 6749 §5.2',
    }
    if (!(yield* runChecks(server, [reuse]))) server.noteIneffective()
  }
  if (received.status !== usual || pair === undefined)
    yield broken('C3', question.what, received, '200: the password is right, the rest is ignored')
}

/** C2 and C5: requests for tokens that have to be refused. */
export const tokenErrors: Round = {
  promises: ['C2', 'C5', 'C9', 'C19'],
  cost: () => ({ logins: 4, wrongPasswords: 3, requests: 12, seconds: 1 }),
  needsTokens: true,
  async *run(server, { admitted: { accessToken } }) {
    const wrong = `wrong-${randomUUID()}`
    const unknown = `unknown-${randomUUID()}`
    for (const text of [wrong, unknown, accessToken]) server.records.seek(text)
    yield* runChecks(server, [
      ...malformedForms(server.options.password).map((form) => refusal('C2', form, 'invalid_request')),
      refusal('C5', tokenRequest(passwordForm(wrong), 'with a wrong password'), 'invalid_grant'),
      refusal('C5', refreshGrant(unknown, 'with an unknown refresh token'), 'invalid_grant'),
      refusal('C5', refreshGrant(accessToken, 'with an access token as refresh token'), 'invalid_grant'),
      refusal('C5', UNSUPPORTED_GRANT, 'unsupported_grant_type'),
    ])
    yield* loginByGet(server, wrong)
    return yield* kept(['C2', 'C5'])
  },
}

function refusal(promise: 'C2' | 'C5', question: Question, error: string): Check {
  return {
    promise,
    question: { ...question, refused: true },
    holds: (received) => received.status === 400 && member(received, 'error') === error,
    wanted: `400 ${error}`,
    clause: 'RFC 6749 §5.2',
  }
}

function malformedForms(password: string): readonly Question[] {
  const form = passwordForm(password)
  return [
    tokenRequest(form.slice(1), 'without grant_type'),
    tokenRequest(form.slice(0, 1), 'without password'),
    tokenRequest(passwordForm(''), 'with an empty password'),
    tokenRequest([...form, ...form.slice(0, 1)], 'with grant_type twice'),
    tokenRequest([...form, ...form.slice(1)], 'with the password twice'),
    {
      ...tokenRequest([], 'with the password, as JSON'),
      fields: ['Content-Type', 'application/json'],
      body: JSON.stringify(Object.fromEntries(form)),
    },
  ]
}

/**
 * A login whose form is the query of a GET, which an access log may keep. The password is wrong, so that no log gets the right one:
 * a server that looks at it refuses it in another way than a GET without a form. C19 reads the statuses of both.
 */
async function* loginByGet(server: Server, wrong: string): Findings {
  const path = `${GET_TOKEN.path}?${tokenRequest(passwordForm(wrong), '').body}`
  const question = { ...GET_TOKEN, path, what: `${GET_TOKEN.what} with a wrong password in the query` }
  const bare = await server.ask(GET_TOKEN)
  const received = await server.ask(question)
  const error = member(received, 'error')
  const isLogin = error === 'invalid_grant' || received.status === 401 || received.status === 200
  if (!isLogin || (received.status === bare.status && error === member(bare, 'error'))) return
  const wanted = 'the response to a GET without a query: a login is a POST'
  yield broken('C2', question.what, received, wanted, 'RFC 6749 §2.3.1 and §3.2')
}
