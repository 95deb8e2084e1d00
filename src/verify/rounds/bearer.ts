import { randomUUID } from 'node:crypto'
import type { Fields } from '../../http/fields.ts'
import { apiRequest, type Question, unauthorized, withParameter } from '../question.ts'
import type { Received } from '../received.ts'
import type { Server } from '../server.ts'
import { type Broken, broken, conclude, untested } from '../verdict.ts'
import { type Admitted, type Check, type Round, runChecks } from './round.ts'

const MISSING = 'device API §5.4'

/** C10 and C11: requests with a right token in other spellings, and with everything that is not a right token. */
export const bearer: Round = {
  promises: ['C10', 'C11'],
  cost: () => ({ requests: 23, seconds: 1 }),
  async run(server, { logins: [login], admitted }) {
    if (login === undefined || admitted === undefined)
      return { judgements: untested(['C10', 'C11'], 'no token was admitted') }
    const { path } = server.options
    const unknown = `unknown-${randomUUID()}`
    for (const marker of [unknown, admitted.accessToken]) server.records.addMarker(marker)
    const challenges: Broken[] = []
    const wrong = [
      ...wrongFields({ ...login, ...admitted, unknown }).map(
        ([fields, what, clause = MISSING, ...more]): Check => {
          const question = unauthorized(path, fields, what)
          return refusal(question, [401, ...more], clause)
        },
      ),
      ...(['HEAD', 'OPTIONS'] as const).map((method) =>
        refusal(unauthorized(path, [], 'without a token', method), [401], 'device API §4.3 and §5.4'),
      ),
      refusal(inQuery(path, admitted), [401], 'device API §5.3'),
    ]
    const found = await runChecks(server, [
      ...rightSpellings(path, admitted),
      ...wrong.map((check) => ({
        ...check,
        holds(received: Received) {
          if (received.status === 401) challenges.push(...challengeFaults(check.question, received))
          return check.holds(received)
        },
      })),
    ])
    found.push(...(await overHttp2(server)))
    // One departure says it all: a server without the challenge never sends it.
    return { judgements: conclude(['C10', 'C11'], [...found, ...challenges.slice(0, 1)]) }
  },
}

function refusal(question: Question, statuses: readonly number[], clause: string): Check {
  const holds = ({ status }: Received): boolean => statuses.includes(status)
  return { promise: 'C10', question, holds, wanted: statuses.toSorted().join(' or '), clause }
}

function rightSpellings(path: string, { accessToken, status: usual }: Admitted): Check[] {
  const right = apiRequest(path, accessToken)
  const spellings: readonly (readonly [string, string])[] = [
    [`bearer ${accessToken}`, 'with the scheme in lower case'],
    [`Bearer  ${accessToken}`, 'with two spaces before the token'],
  ]
  return spellings.map(([value, what]) => ({
    promise: 'C10',
    question: { ...right, fields: ['Authorization', value], what: `GET ${path} ${what}` },
    holds: ({ status }) => status === usual,
    wanted: `${usual}, as before`,
    clause: 'RFC 9110 §11.1 and §11.4',
  }))
}

/** Fields that hold no credential, or a wrong one; the clause if it is a special one, and another status that is right. */
type Wrong = readonly [fields: Fields, what: string, clause?: string, ...others: 400[]]

interface Credentials {
  readonly accessToken: string
  readonly refreshToken: string
  readonly unknown: string
}

function wrongFields({ accessToken, refreshToken, unknown }: Credentials): readonly Wrong[] {
  const swapped = inOtherCase(accessToken)
  const authorization = (value: string, what: string): Wrong => [['Authorization', value], what]
  const twice = (first: string, second: string, what: string): Wrong => {
    const fields = ['Authorization', `Bearer ${first}`, 'Authorization', `Bearer ${second}`]
    return [fields, `with two Authorization fields, ${what}`, 'RFC 9110 §5.3; RFC 6750 §2', 400]
  }
  const names = ['access_token', 'token', 'auth_token', 'bearer', 'Authorization', 'session']
  const cookie = names.map((name) => `${name}=${accessToken}`).join('; ')
  return [
    [[], 'without a token'],
    authorization(`Bearer ${unknown}`, 'with an unknown token'),
    authorization('Bearer', 'with the scheme Bearer and no token'),
    authorization(accessToken, 'with a valid token and no scheme'),
    authorization(`Basic ${accessToken}`, 'with a valid token in the scheme Basic'),
    authorization(`Bearer ${accessToken}x`, 'with a character after a valid token'),
    authorization(`Bearer ${accessToken.slice(0, -1)}`, 'with a valid token without its last character'),
    // A token without letters has no other case.
    ...(swapped === accessToken
      ? []
      : [authorization(`Bearer ${swapped}`, 'with the letters of a valid token in other case')]),
    authorization(`Bearer ${refreshToken}`, 'with a refresh token as access token'),
    authorization(
      `Bearer ${unknown}, Bearer ${accessToken}`,
      'with an unknown and a valid token in one field',
    ),
    twice(unknown, accessToken, 'the second valid'),
    twice(accessToken, unknown, 'the first valid'),
    [['Cookie', cookie], 'with a valid token in a cookie', 'device API §5.3'],
  ]
}

/** Upper case as lower case, and the reverse. */
function inOtherCase(token: string): string {
  return token.replace(/[a-z]/gi, (letter) =>
    /[a-z]/.test(letter) ? letter.toUpperCase() : letter.toLowerCase(),
  )
}

function inQuery(path: string, { accessToken }: Admitted): Question {
  const question = unauthorized(withParameter(path, `access_token=${accessToken}`), [], '')
  return {
    ...question,
    what: `GET ${withParameter(path, 'access_token=***')} with a valid token in the query`,
  }
}

/** C11: a 401 names the scheme that the server expects (RFC 9110 §15.5.2, RFC 6750 §3). */
function challengeFaults({ what }: Question, { fields }: Received): Broken[] {
  const challenges = fields.get('www-authenticate') ?? []
  if (challenges.some((challenge) => /(?:^|,\s*)bearer(?:\s|,|$)/i.test(challenge))) return []
  const [scheme = 'another scheme'] = /\b(?:Basic|Digest|Negotiate|NTLM)\b/i.exec(challenges.join()) ?? []
  const came = challenges.length === 0 ? '401 without WWW-Authenticate' : `WWW-Authenticate: ${scheme}`
  return [broken('C11', { sent: what, came, wanted: 'WWW-Authenticate: Bearer ...', clause: 'RFC 6750 §3' })]
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
  ].map((question) => ({ ...question, oddity: 'respelled' }) as const)
  const checks = questions.map((question) => refusal(question, [0, 400, 401, 429], MISSING))
  const found = await runChecks(
    { ask: (question) => server.send(question, client) },
    checks.map((check) => ({ ...check, wanted: '401' })),
  )
  client.close()
  return found
}
