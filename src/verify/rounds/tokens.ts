import { listMembers } from '../../http/fields.ts'
import { SetupError } from '../../system/setup-error.ts'
import { type Answer, member } from '../answer.ts'
import type { VerifyOptions } from '../options.ts'
import {
  apiRequest,
  passwordForm,
  passwordGrant,
  type Question,
  refreshGrant,
  tokenRequest,
} from '../question.ts'
import { revoke } from '../revocation.ts'
import type { Grant, Stage } from '../stage.ts'
import type { Departure, Finding } from '../verdict.ts'
import { broken, conclude, type Round, untested } from './round.ts'

/** C4 and C3: the logins. The other rounds use their tokens. */
export const tokens: Round = {
  promises: ['C3', 'C4'],
  cost: () => ({ logins: 3, requests: 6, seconds: 1 }),
  async run(stage) {
    const { password, path } = stage.options
    const login = passwordGrant(password)
    const first = await stage.ask(login)
    requireAccepted(stage, first)
    const departures = tokenDepartures(stage, login, first)
    const grant = grantIn(first)
    if (grant === undefined) {
      return [...conclude('C4', departures), ...untested(['C3'], 'the first login gave no tokens')]
    }
    stage.grants.push(grant)
    const { accessToken } = grant
    stage.firstLogin = { accessToken, at: first.sentAt, expiresIn: member(first, 'expires_in') }

    const second = await stage.ask(login)
    departures.push(...tokenDepartures(stage, login, second))
    const other = grantIn(second)
    if (other !== undefined) {
      stage.grants.push(other)
      departures.push(...differenceDepartures(login, grant, other))
    }

    const use = apiRequest(path, grant.accessToken, 'with the token of the first login')
    const used = await stage.ask(use)
    if (used.status === 401 || used.status === 0) {
      departures.push(stage.departure(use, used, 'the response of the API, not 401', 'device API §5.3'))
    } else if (used.status !== 429) stage.admitted = { accessToken, status: used.status }
    return [...conclude('C4', departures), ...(await ignoredParameters(stage, first.status))]
  },
}

/** In the words of OpenSSL and Node. */
function remedyFor(failure: string, { ca }: VerifyOptions['tls']): string {
  if (/certificate|hostname|altnames|unable to verify/i.test(failure)) {
    return ca === undefined
      ? 'name its certificate, or that of its authority, with --ca (--insecure accepts any)'
      : 'the file of --ca has to hold its certificate, or that of its authority, for this name'
  }
  return /wrong version number|packet length too long/i.test(failure)
    ? 'it may speak http, not https, at this port'
    : 'check address and port'
}

/** Fails if nothing can be checked: no connection, or a password that the server does not take. */
function requireAccepted(stage: Stage, answer: Answer): void {
  const { origin } = stage.options.url
  // Only of a failure: masking looks for each token of a response that has tokens, which takes 40 ms.
  const came = (): string => stage.departure({ what: '' }, answer, '', '').came
  if (answer.failure !== undefined) {
    throw new SetupError(`${origin}: ${came()}`, {
      exitCode: 1,
      remedy: remedyFor(answer.failure, stage.options.tls),
    })
  }
  if (member(answer, 'error') === 'invalid_grant' || answer.status === 401 || answer.status === 403) {
    throw new SetupError(`${origin} does not accept the password: ${came()}`, {
      exitCode: 1,
      remedy: 'correct the password file; nothing was checked',
    })
  }
}

/** The tokens in a response, if both are usable. */
export function grantIn(answer: Answer): Grant | undefined {
  const accessToken = member(answer, 'access_token')
  const refreshToken = member(answer, 'refresh_token')
  if (typeof accessToken !== 'string' || typeof refreshToken !== 'string') return undefined
  return refreshToken === '' || !B64TOKEN.test(accessToken) ? undefined : { accessToken, refreshToken }
}

/** RFC 6750 §2.1: the only characters of a token that fit into an `Authorization` field. */
const B64TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/** What a response to a password grant lacks, apart from the lifetime (C7). */
function tokenDepartures(stage: Stage, question: Question, answer: Answer): Departure[] {
  const depart = (came: string, wanted: string, clause: string): Departure => ({
    sent: question.what,
    came,
    wanted,
    clause,
  })
  if (answer.status !== 200) return [stage.departure(question, answer, '200 with tokens', 'device API §4.1')]
  const found: Departure[] = []
  const type = answer.fields.get('content-type')?.join(', ') ?? 'none'
  if (!/^application\/json\b/i.test(type))
    found.push(depart(`Content-Type: ${type}`, 'application/json', 'RFC 6749 §5.1'))
  const cache = answer.fields.get('cache-control') ?? []
  if (!listMembers(cache).includes('no-store')) {
    const came = cache.length === 0 ? '200 without Cache-Control' : `Cache-Control: ${cache.join(', ')}`
    found.push(depart(came, 'Cache-Control: no-store', 'RFC 6749 §5.1'))
  }
  const kind = member(answer, 'token_type')
  if (typeof kind !== 'string' || kind.toLowerCase() !== 'bearer')
    found.push(depart(`token_type: ${shown(kind)}`, 'Bearer', 'device API §2'))
  const lifetime = member(answer, 'expires_in')
  if (!Number.isInteger(lifetime))
    found.push(depart(`expires_in: ${shown(lifetime)}`, 'an integer', 'device API §2'))
  for (const name of ['access_token', 'refresh_token']) {
    const token = member(answer, name)
    if (typeof token !== 'string' || token === '')
      found.push(depart(`${name}: ${shown(token)}`, 'an opaque string', 'device API §2'))
    else if (name === 'access_token' && !B64TOKEN.test(token))
      found.push(
        depart(`${name} with characters that no Authorization field takes`, 'b64token', 'RFC 6750 §2.1'),
      )
  }
  return found
}

/** A member of a response as JSON, unless it could be a secret. */
function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  return typeof value === 'string' && value.length > 20 ? 'a long string' : JSON.stringify(value)
}

function differenceDepartures(login: Question, first: Grant, second: Grant): Departure[] {
  const depart = (came: string): Departure => ({
    sent: `${login.what}, twice`,
    came,
    wanted: 'tokens that nobody can guess from others',
    clause: 'RFC 6749 §10.10',
  })
  const found: Departure[] = []
  if (first.accessToken === second.accessToken) found.push(depart('the same access token for both logins'))
  if (first.refreshToken === second.refreshToken) found.push(depart('the same refresh token for both logins'))
  if (first.accessToken === first.refreshToken) found.push(depart('a refresh token that is the access token'))
  return found
}

/** C5: what the server says it has revoked is not valid any more. */
async function revokeAndCheck(stage: Stage, { refreshToken }: Grant): Promise<Finding[]> {
  if ((await revoke(stage, refreshToken)) !== undefined) return []
  const question = refreshGrant(refreshToken, 'with a refresh token whose revocation was answered with 200')
  const answer = await stage.ask(question)
  if (answer.status !== 200) return []
  stage.noRevocation = `${stage.options.revocationPath}: 200, but the token still works: the tokens of the run are left`
  const wanted = '400 invalid_grant: the token is revoked'
  return [broken('C5', stage.departure(question, answer, wanted, 'RFC 7009 §2.2; RFC 6749 §5.2'))]
}

/** C3: the response is the same as without them. */
async function ignoredParameters(stage: Stage, usual: number): Promise<readonly Finding[]> {
  const extra: readonly [string, string][] = [
    ['username', 'admin'],
    ['client_id', 'postern-verify'],
    ['client_secret', 'none'],
    ['scope', 'all'],
    ['postern_verify', '1'],
  ]
  const login = tokenRequest(
    [...passwordForm(stage.options.password), ...extra],
    'with the password, a username, client credentials, a scope, an unknown parameter and Basic authorization',
    { fields: ['Authorization', `Basic ${Buffer.from('postern-verify:none').toString('base64')}`] },
  )
  const answer = await stage.ask(login)
  const extraGrant = grantIn(answer)
  // The run needs no third login.
  const revocation = extraGrant === undefined ? [] : await revokeAndCheck(stage, extraGrant)
  const clause = 'device API §4.1; RFC 6749 §3.2'
  const refused =
    answer.status === usual && extraGrant !== undefined
      ? undefined
      : stage.departure(login, answer, '200: the password is right, the rest is ignored', clause)
  return [...conclude('C3', [refused]), ...revocation]
}
