import { type Answer, member, textMember } from '../answer.ts'
import { apiRequest, refreshGrant } from '../question.ts'
import type { Grant, Stage } from '../stage.ts'
import type { Departure } from '../verdict.ts'
import { lifetimeDeparture } from './lifetime.ts'
import { broken, conclude, type Round, untested } from './round.ts'

/** Longer than a server may accept a spent refresh token again, for a client that lost the response (s): C6 allows 10. */
const GRACE = 12

/** C6: the refresh grant, with a refresh token that is kept or replaced. C7: the lifetime that it states. */
export const refresh: Round = {
  promises: ['C6', 'C7'],
  cost: ({ quick }) => ({ requests: 13, seconds: quick ? 1 : GRACE + 1 }),
  async run(stage) {
    const [grant, other] = stage.grants
    if (grant === undefined || other === undefined || stage.admitted === undefined)
      return untested(['C6'], 'no two logins gave tokens that the API admits')
    const before = { ...grant }
    const stated: Departure[] = []
    const departures = await refreshOnce(stage, grant, 'with the refresh token', stated)
    if (departures.length > 0) return conclude('C6', departures)
    const replaces = grant.refreshToken !== before.refreshToken
    departures.push(
      ...(await mustPass(stage, before.accessToken, 'with the access token from before the refresh')),
      ...(await mustPass(stage, grant.accessToken, 'with the access token of the refresh')),
    )
    const again = replaces ? 'with the refresh token of the refresh' : 'with the refresh token, again'
    const failed = await refreshOnce(stage, grant, again)
    departures.push(
      ...failed,
      ...(failed.length > 0
        ? []
        : await mustPass(stage, grant.accessToken, 'with the access token of the second refresh')),
    )
    if (replaces) departures.push(...(await spentToken(stage, other)))
    if (departures.length === 0) stage.refreshing = replaces ? 'replaces' : 'keeps'
    const note = replaces ? 'each refresh replaces the refresh token' : 'the refresh token stays the same'
    return [...conclude('C6', departures, note), ...stated.map((departure) => broken('C7', departure))]
  },
}

/** Refreshes a grant, whose tokens become those of the response. Adds what is wrong with the stated lifetime to `stated`. */
async function refreshOnce(
  stage: Stage,
  grant: Grant,
  what: string,
  stated: Departure[] = [],
): Promise<Departure[]> {
  const question = refreshGrant(grant.refreshToken, what)
  const answer = await stage.ask(question)
  const accessToken = textMember(answer, 'access_token')
  if (answer.status !== 200 || accessToken === undefined) {
    return [stage.departure(question, answer, '200 with a new access token', 'device API §4.2')]
  }
  const wrong = lifetimeDeparture(question.what, member(answer, 'expires_in'))
  if (wrong !== undefined) stated.push(wrong)
  const same = accessToken === grant.accessToken
  takeTokens(grant, answer)
  if (!same) return []
  const came = '200 with the access token from before'
  return [{ sent: question.what, came, wanted: 'a new access token', clause: 'device API §4.2' }]
}

/** Replaces the tokens of a grant by those of a response to its refresh. */
export function takeTokens(grant: Grant | undefined, answer: Answer): void {
  const accessToken = member(answer, 'access_token')
  if (grant === undefined || answer.status !== 200 || typeof accessToken !== 'string') return
  grant.accessToken = accessToken
  // A response may leave the refresh token out when it stays the same (RFC 6749 §6).
  grant.refreshToken = textMember(answer, 'refresh_token') ?? grant.refreshToken
}

async function mustPass(stage: Stage, accessToken: string, what: string): Promise<Departure[]> {
  const question = apiRequest(stage.options.path, accessToken, what)
  const answer = await stage.ask(question)
  if (answer.status === stage.admitted?.status) {
    stage.admitted = { accessToken, status: answer.status }
    return []
  }
  return [stage.departure(question, answer, `${stage.admitted?.status}, as before`, 'device API §5.6')]
}

/** Shows a refresh token that was replaced: at once, and when no server takes it for a retry any more (RFC 9700 §4.14.2). */
async function spentToken(stage: Stage, grant: Grant): Promise<Departure[]> {
  const spent = grant.refreshToken
  const first = await refreshOnce(stage, grant, 'with the refresh token of the second login')
  if (first.length > 0) return first
  const successor = { ...grant }
  const retry = refreshGrant(spent, 'with a spent refresh token, at once')
  const answer = await stage.ask(retry)
  const clause = 'RFC 9700 §4.14.2'
  const repeated = answer.status === 200 && textMember(answer, 'refresh_token') === successor.refreshToken
  if (answer.status !== 400 && !repeated)
    return [stage.departure(retry, answer, '400, or the same tokens as for the first time', clause)]
  if (stage.options.quick) return []

  stage.say(`refresh: waits ${GRACE} s, then shows a replaced refresh token again`)
  await stage.pause(GRACE * 1000)
  const reuse = refreshGrant(spent, `with a spent refresh token, ${GRACE} s later`)
  const late = await stage.ask(reuse)
  if (late.status !== 400) return [stage.departure(reuse, late, '400 invalid_grant', clause)]
  const theft = refreshGrant(
    successor.refreshToken,
    'with the successor of a refresh token that was used twice',
  )
  const after = await stage.ask(theft)
  return after.status === 400
    ? []
    : [
        stage.departure(
          theft,
          after,
          '400: the whole login is revoked, because one of the two users stole it',
          clause,
        ),
      ]
}
