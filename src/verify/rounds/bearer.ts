import { randomUUID } from 'node:crypto'
import type { Fields } from '../../http/fields.ts'
import type { Answer } from '../answer.ts'
import { apiRequest, type Question, unauthorized } from '../question.ts'
import type { Grant, Stage } from '../stage.ts'
import type { Departure } from '../verdict.ts'
import { conclude, type Round, untested } from './round.ts'

/** C10 and C11: requests with a right token in other spellings, and with everything that is not a right token. */
export const bearer: Round = {
  promises: ['C10', 'C11'],
  cost: () => ({ requests: 23, seconds: 1 }),
  async run(stage) {
    const [grant] = stage.grants
    const { admitted } = stage
    if (grant === undefined || admitted === undefined)
      return untested(['C10', 'C11'], 'no token was admitted')
    const access: (Departure | undefined)[] = []
    const challenges: (Departure | undefined)[] = []
    for (const question of rightSpellings(stage.options.path, admitted.accessToken)) {
      const answer = await stage.ask(question)
      if (answer.status !== admitted.status)
        access.push(
          stage.departure(question, answer, `${admitted.status}, as before`, 'RFC 9110 §11.1 and §11.4'),
        )
    }
    for (const { question, statuses, clause } of wrongCredentials(stage, {
      ...grant,
      accessToken: admitted.accessToken,
    })) {
      const answer = await stage.ask(question)
      if (!statuses.includes(answer.status))
        access.push(stage.departure(question, answer, statuses.join(' or '), clause))
      if (answer.status === 401) challenges.push(challengeDeparture(question, answer))
    }
    access.push(...(await overHttp2(stage)))
    // One departure says it all: a server without the challenge never sends it.
    return [...conclude('C10', access), ...conclude('C11', firstOf(challenges))]
  },
}

/** A server may check HTTP/2 in another place than HTTP/1.1. */
async function overHttp2(stage: Stage): Promise<Departure[]> {
  const client = await stage.http2()
  if (typeof client === 'string') return []
  const { path } = stage.options
  const unknown = ['Authorization', `Bearer ${randomUUID()}`]
  const departures: Departure[] = []
  for (const question of [
    unauthorized(path, [], 'without a token, over HTTP/2'),
    unauthorized(path, unknown, 'with an unknown token, over HTTP/2'),
    unauthorized(`/.${path}`, [], 'without a token, over HTTP/2'),
  ]) {
    const answer = await stage.send({ ...question, oddity: 'respelled' }, client)
    const refusals = [400, 401, 429]
    if (answer.status !== 0 && !refusals.includes(answer.status))
      departures.push(stage.departure(question, answer, '401', MISSING))
  }
  client.close()
  return departures
}

function firstOf(departures: readonly (Departure | undefined)[]): readonly (Departure | undefined)[] {
  return departures.filter((departure) => departure !== undefined).slice(0, 1)
}

function rightSpellings(path: string, accessToken: string): Question[] {
  const right = apiRequest(path, accessToken)
  return [
    {
      ...right,
      fields: ['Authorization', `bearer ${accessToken}`],
      what: `GET ${path} with the scheme in lower case`,
    },
    {
      ...right,
      fields: ['Authorization', `Bearer  ${accessToken}`],
      what: `GET ${path} with two spaces before the token`,
    },
  ]
}

interface WrongCredential {
  readonly question: Question
  readonly statuses: readonly number[]
  readonly clause: string
}

const MISSING = 'device API §5.4'

function wrongCredentials({ options, records }: Stage, grant: Grant): WrongCredential[] {
  const { path } = options
  const { accessToken, refreshToken } = grant
  const unknown = `unknown-${randomUUID()}`
  for (const marker of [unknown, accessToken]) records.addMarker(marker)
  const wrong = (fields: Fields, what: string, clause = MISSING): WrongCredential => ({
    question: unauthorized(path, fields, what),
    statuses: [401],
    clause,
  })
  const authorization = (value: string, what: string): WrongCredential =>
    wrong(['Authorization', value], what)
  const without = (method: 'HEAD' | 'OPTIONS'): WrongCredential => ({
    question: unauthorized(path, [], 'without a token', method),
    statuses: [401],
    clause: 'device API §4.3 and §5.4',
  })
  const twice = (values: readonly string[], what: string): WrongCredential => ({
    ...wrong(
      values.flatMap((value) => ['Authorization', value]),
      what,
      'RFC 9110 §5.3; RFC 6750 §2',
    ),
    statuses: [400, 401],
  })
  const query = `${path}${path.includes('?') ? '&' : '?'}access_token=`
  return [
    wrong([], 'without a token'),
    without('HEAD'),
    without('OPTIONS'),
    authorization(`Bearer ${unknown}`, 'with an unknown token'),
    authorization('Bearer', 'with the scheme Bearer and no token'),
    authorization(accessToken, 'with a valid token and no scheme'),
    authorization(`Basic ${accessToken}`, 'with a valid token in the scheme Basic'),
    authorization(`Bearer ${accessToken}x`, 'with a character after a valid token'),
    authorization(`Bearer ${accessToken.slice(0, -1)}`, 'with a valid token without its last character'),
    ...(inOtherCase(accessToken) === accessToken
      ? []
      : [
          authorization(
            `Bearer ${inOtherCase(accessToken)}`,
            'with the letters of a valid token in other case',
          ),
        ]),
    authorization(`Bearer ${refreshToken}`, 'with a refresh token as access token'),
    wrong(
      ['Cookie', ['access_token', 'token', 'bearer'].map((name) => `${name}=${accessToken}`).join('; ')],
      'with a valid token in a cookie',
      'device API §5.3',
    ),
    authorization(
      `Bearer ${unknown}, Bearer ${accessToken}`,
      'with an unknown and a valid token in one field',
    ),
    twice([`Bearer ${unknown}`, `Bearer ${accessToken}`], 'with two Authorization fields, the second valid'),
    twice([`Bearer ${accessToken}`, `Bearer ${unknown}`], 'with two Authorization fields, the first valid'),
    {
      question: {
        ...unauthorized(`${query}${accessToken}`, [], ''),
        what: `GET ${query}*** with a valid token in the query`,
      },
      statuses: [401],
      clause: 'device API §5.3',
    },
  ]
}

/** Upper case as lower case, and the reverse. */
function inOtherCase(token: string): string {
  return token.replace(/[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )
}

/** C11: a 401 names the scheme that the server expects (RFC 9110 §15.5.2, RFC 6750 §3). */
function challengeDeparture({ what }: Question, answer: Answer): Departure | undefined {
  const challenges = answer.fields.get('www-authenticate') ?? []
  if (challenges.some((challenge) => /(?:^|,\s*)bearer(?:\s|,|$)/i.test(challenge))) return undefined
  const came =
    challenges.length === 0 ? '401 without WWW-Authenticate' : `WWW-Authenticate: ${challenges.join(', ')}`
  return { sent: what, came, wanted: 'WWW-Authenticate: Bearer ...', clause: 'RFC 6750 §3' }
}
