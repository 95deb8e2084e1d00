import { randomUUID } from 'node:crypto'
import type { Fields } from '../../http/fields.ts'
import { apiRequest, unauthorized, withParameter } from '../question.ts'
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
    const { path } = server.options
    const { accessToken, status: usual } = known.admitted
    const unknown = `unknown-${randomUUID()}`
    for (const marker of [unknown, accessToken]) server.records.addMarker(marker)
    const inQuery = unauthorized(withParameter(path, `access_token=${accessToken}`), [], '')
    const shownPath = withParameter(path, 'access_token=***')
    const found = await runChecks(server, [
      ...RIGHT.map(([scheme, what]): Check => {
        const question = apiRequest(path, accessToken, what)
        return {
          promise: 'C10',
          question: { ...question, fields: ['Authorization', `${scheme}${accessToken}`] },
          holds: ({ status }) => status === usual,
          wanted: `${usual}, as before`,
          clause: 'RFC 9110 §11.1 and §11.4',
        }
      }),
      ...wrongFields(known, unknown).map(([fields, what, clause, ...more]) =>
        refusal(unauthorized(path, fields, what), [401, ...more], clause),
      ),
      ...(['HEAD', 'OPTIONS'] as const).map((method) =>
        refusal(unauthorized(path, [], 'without a token', method), [401], 'device API §4.3 and §5.4'),
      ),
      refusal(
        { ...inQuery, what: `GET ${shownPath} with a valid token in the query` },
        [401],
        'device API §5.3',
      ),
    ])
    return { judgements: conclude(PROMISES, [...found, ...(await overHttp2(server))]) }
  }),
}

/** Credentials that are right, too. */
const RIGHT = [
  ['bearer ', 'with the scheme in lower case'],
  ['Bearer  ', 'with two spaces before the token'],
] as const

function refusal(
  question: Check['question'],
  statuses: readonly number[],
  clause = 'device API §5.4',
  wanted: string = statuses.toSorted().join(' or '),
): Check {
  return { promise: 'C10', question, holds: ({ status }) => statuses.includes(status), wanted, clause }
}

/** Fields that hold no credential, or a wrong one; the clause if it is a special one, and another status that is right. */
type Wrong = readonly [fields: Fields, what: string, clause?: string, ...others: 400[]]

function wrongFields({ admitted: { accessToken }, login }: Known, unknown: string): readonly Wrong[] {
  const authorization = (value: string, what: string): Wrong => [['Authorization', value], what]
  const twice = (first: string, second: string, what: string): Wrong => {
    const fields = ['Authorization', `Bearer ${first}`, 'Authorization', `Bearer ${second}`]
    return [fields, `with two Authorization fields, ${what}`, 'RFC 9110 §5.3; RFC 6750 §2', 400]
  }
  const swapped = inOtherCase(accessToken)
  const names = ['access_token', 'token', 'auth_token', 'bearer', 'Authorization', 'session']
  const cookie = names.map((name) => `${name}=${accessToken}`).join('; ')
  const both = `Bearer ${unknown}, Bearer ${accessToken}`
  const all = [
    [[], 'without a token'] as const,
    authorization(`Bearer ${unknown}`, 'with an unknown token'),
    authorization('Bearer', 'with the scheme Bearer and no token'),
    authorization(accessToken, 'with a valid token and no scheme'),
    authorization(`Basic ${accessToken}`, 'with a valid token in the scheme Basic'),
    authorization(`Bearer ${accessToken}x`, 'with a character after a valid token'),
    authorization(`Bearer ${accessToken.slice(0, -1)}`, 'with a valid token without its last character'),
    authorization(`Bearer ${swapped}`, 'with the letters of a valid token in other case'),
    authorization(`Bearer ${login.refreshToken}`, 'with a refresh token as access token'),
    authorization(both, 'with an unknown and a valid token in one field'),
    twice(unknown, accessToken, 'the second valid'),
    twice(accessToken, unknown, 'the first valid'),
    [['Cookie', cookie], 'with a valid token in a cookie', 'device API §5.3'] as const,
  ]
  // A token without letters has no other case.
  return swapped === accessToken ? all.filter(([, what]) => !what.endsWith('in other case')) : all
}

/** Upper case as lower case, and the reverse. */
function inOtherCase(token: string): string {
  return token.replace(/[a-z]/gi, (letter) =>
    /[a-z]/.test(letter) ? letter.toUpperCase() : letter.toLowerCase(),
  )
}

/** A server may check HTTP/2 in another place than HTTP/1.1. */
async function overHttp2(server: Server): Promise<Broken[]> {
  const client = await server.http2()
  if (typeof client === 'string') return []
  const { path } = server.options
  const unknown = ['Authorization', `Bearer ${randomUUID()}`]
  const questions = [
    unauthorized(path, [], 'without a token, over HTTP/2'),
    unauthorized(path, unknown, 'with an unknown token, over HTTP/2'),
    unauthorized(`/.${path}`, [], 'without a token, over HTTP/2'),
  ]
  const found = await runChecks(
    { ask: (question) => server.send({ ...question, oddity: 'respelled' }, client) },
    questions.map((question) => refusal(question, [0, 400, 401, 429], undefined, '401')),
  )
  client.close()
  return found
}
