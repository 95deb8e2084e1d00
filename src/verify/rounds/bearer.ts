import { randomUUID } from 'node:crypto'
import type { Fields } from '../../http/fields.ts'
import { apiRequest, type Question, type Received, unauthorized, withParameter } from '../exchange.ts'
import type { Server } from '../server.ts'
import { type Broken, conclude } from '../verdict.ts'
import { type Check, type Known, type Round, runChecks, withToken } from './round.ts'

const PROMISES = ['C10', 'C11'] as const

/**
 * C10: requests with a right token in other spellings, and with everything that is not a right token. What their 401 lacks (C11) the
 * records read.
 */
export const bearer: Round = {
  promises: PROMISES,
  cost: () => ({ requests: 23, seconds: 1 }),
  run: withToken(PROMISES, async (server, known) => {
    const unknown = `unknown-${randomUUID()}`
    for (const marker of [unknown, known.admitted.accessToken]) server.records.addMarker(marker)
    const checks = [...rightTokens(server, known), ...wrongTokens(server, known, unknown)]
    const found = [...(await runChecks(server, checks)), ...(await overHttp2(server))]
    return { judgements: conclude(PROMISES, found) }
  }),
}

function expectStatus(
  question: Question,
  statuses: readonly number[],
  clause: string,
  wanted?: string,
): Check {
  const holds = ({ status }: Received): boolean => statuses.includes(status)
  return { promise: 'C10', question, holds, wanted: wanted ?? statuses.join(' or '), clause }
}

function rightTokens({ options: { path } }: Server, { admitted }: Known): readonly Check[] {
  const { accessToken, status } = admitted
  const spelled = (value: string, what: string): Check => {
    const question = { ...apiRequest(path, '', what), fields: ['Authorization', value] }
    return expectStatus(question, [status], 'RFC 9110 §11.1 and §11.4', `${status}, as before`)
  }
  return [
    spelled(`bearer ${accessToken}`, 'with the scheme in lower case'),
    spelled(`Bearer  ${accessToken}`, 'with two spaces before the token'),
  ]
}

function wrongTokens(server: Server, { admitted, login }: Known, unknown: string): readonly Check[] {
  const { path } = server.options
  const { accessToken: token } = admitted
  const refused = (question: Question, clause = 'device API §5.4', statuses = [401]): Check =>
    expectStatus(question, statuses, clause)
  const inField = (fields: Fields, what: string, clause?: string, statuses?: number[]): Check =>
    refused(unauthorized(path, fields, what), clause, statuses)
  const twice = (first: string, second: string, what: string): Check => {
    const fields = ['Authorization', `Bearer ${first}`, 'Authorization', `Bearer ${second}`]
    return inField(fields, `with two Authorization fields, ${what}`, 'RFC 9110 §5.3; RFC 6750 §2', [400, 401])
  }
  const swapped = inOtherCase(token)
  const values: Readonly<Record<string, string>> = {
    [`Bearer ${unknown}`]: 'with an unknown token',
    Bearer: 'with the scheme Bearer and no token',
    [token]: 'with a valid token and no scheme',
    [`Basic ${token}`]: 'with a valid token in the scheme Basic',
    [`Bearer ${token}x`]: 'with a character after a valid token',
    [`Bearer ${token.slice(0, -1)}`]: 'with a valid token without its last character',
    // A token without letters has no other case.
    ...(swapped === token
      ? {}
      : { [`Bearer ${swapped}`]: 'with the letters of a valid token in other case' }),
    [`Bearer ${login.refreshToken}`]: 'with a refresh token as access token',
    [`Bearer ${unknown}, Bearer ${token}`]: 'with an unknown and a valid token in one field',
  }
  const names = ['access_token', 'token', 'auth_token', 'bearer', 'Authorization', 'session']
  const cookie = names.map((name) => `${name}=${token}`).join('; ')
  const inQuery = unauthorized(withParameter(path, `access_token=${token}`), [], '')
  const shown = `GET ${withParameter(path, 'access_token=***')} with a valid token in the query`
  return [
    inField([], 'without a token'),
    ...Object.entries(values).map(([value, what]) => inField(['Authorization', value], what)),
    twice(unknown, token, 'the second valid'),
    twice(token, unknown, 'the first valid'),
    inField(['Cookie', cookie], 'with a valid token in a cookie', 'device API §5.3'),
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
async function overHttp2(server: Server): Promise<Broken[]> {
  const client = await server.http2()
  if (typeof client === 'string') return []
  const { path } = server.options
  const questions = [
    unauthorized(path, [], 'without a token, over HTTP/2'),
    unauthorized(path, ['Authorization', `Bearer ${randomUUID()}`], 'with an unknown token, over HTTP/2'),
    unauthorized(`/.${path}`, [], 'without a token, over HTTP/2'),
  ]
  const checks = questions.map((question) =>
    expectStatus(question, [0, 400, 401, 429], 'device API §5.4', '401'),
  )
  const found = await runChecks(server, checks, (question) =>
    server.send({ ...question, oddity: 'respelled' }, client),
  )
  client.close()
  return found
}
