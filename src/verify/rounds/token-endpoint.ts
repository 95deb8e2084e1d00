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

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

/** The members of a token response (device API §2), and what holds of each. The lifetime itself is a matter of C7. */
const MEMBERS: readonly (readonly [name: string, holds: (value: unknown) => boolean, wanted: string])[] = [
  ['token_type', (value) => /^bearer$/i.test(String(value)) && isText(value), 'the text Bearer'],
  ['expires_in', Number.isInteger, 'an integer'],
  ['access_token', isText, 'an opaque string'],
  ['refresh_token', isText, 'an opaque string'],
]

/** What a response to a password grant lacks. */
function* loginFaults({ what }: Question, received: Received): Iterable<Broken> {
  if (received.status !== 200) return yield broken('C4', what, received, '200 with tokens', 'device API §4.1')
  const type = mediaTypeOf(received)
  if (type !== 'application/json')
    yield broken('C4', what, `Content-Type: ${type}`, 'application/json', 'RFC 6749 §5.1')
  const noStore = 'Cache-Control: no-store'
  if (!listMembers(received.fields.get('cache-control') ?? []).includes('no-store'))
    yield broken('C4', what, `200 without ${noStore}`, noStore, 'RFC 6749 §5.1')
  for (const [name, holds, wanted] of MEMBERS) {
    const value = member(received, name)
    if (!holds(value)) yield broken('C4', what, `${name}: ${shown(value)}`, wanted, 'device API §2')
  }
  const unfit = 'access_token with characters that no Authorization field takes'
  if (!B64TOKEN.test(textMember(received, 'access_token') ?? 'none'))
    yield broken('C4', what, unfit, 'b64token', 'RFC 6750 §2.1')
}

/** Tokens of two logins that are equal: then they can be guessed from others. */
function likenesses({ what }: Question, first: TokenPair, second: TokenPair | undefined): Broken[] {
  const found = {
    'the same access token for both logins': first.accessToken === second?.accessToken,
    'the same refresh token for both logins': first.refreshToken === second?.refreshToken,
    'a refresh token that is the access token': first.accessToken === first.refreshToken,
  }
  const [wanted, clause] = ['tokens that cannot be guessed from others', 'RFC 6749 §10.10']
  return Object.entries(found).flatMap(([came, isSo]) =>
    isSo ? [broken('C4', `${what}, twice`, came, wanted, clause)] : [],
  )
}

const IGNORED = {
  // No entry of `passwords` has such a name: Postern holds a password against the name that comes with it.
  username: 'verify@postern',
  client_id: 'postern-verify',
  client_secret: 'none',
  scope: 'all',
  postern_verify: '1',
}

/** C3: the response is the same as without them. C5: what the server says it has revoked is not valid any more. */
async function* ignoredParameters(server: Server, usual: number): Findings {
  const form = tokenRequest(
    { ...passwordForm(server.options.password), ...IGNORED },
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
    yield* runChecks(server, [reuse])
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
  const { body } = tokenRequest(form, '')
  return [
    tokenRequest({ password }, 'without grant_type'),
    tokenRequest({ grant_type: 'password' }, 'without password'),
    tokenRequest(passwordForm(''), 'with an empty password'),
    { ...tokenRequest({}, 'with grant_type twice'), body: `${body}&grant_type=password` },
    { ...tokenRequest({}, 'with the password twice'), body: `${body}&${new URLSearchParams({ password })}` },
    {
      ...tokenRequest({}, 'with the password, as JSON'),
      fields: ['Content-Type', 'application/json'],
      body: JSON.stringify(form),
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
