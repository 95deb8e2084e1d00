import { apiRequest, type Question, refreshGrant } from '../question.ts'
import { member, type Received, shown, textMember } from '../received.ts'
import type { Server } from '../server.ts'
import { type Broken, broken, conclude, untested, wrongResponse } from '../verdict.ts'
import {
  type Admitted,
  type Check,
  type Facts,
  type Round,
  refreshed,
  runChecks,
  type TokenPair,
} from './round.ts'

/** The lifetime of an access token (device API §5.6), in seconds. */
const LIFETIME = 3600

/** Longer than a server may accept a spent refresh token again, for a client that lost the response (s): C6 allows 10. */
const GRACE = 12

/** C6: the refresh grant, with a refresh token that is kept or replaced. C7: the lifetime that it states. */
export const refresh: Round = {
  promises: ['C6', 'C7'],
  cost: ({ quick }) => ({ requests: 13, seconds: quick ? 1 : GRACE + 1 }),
  async run(server, { logins: [first, other], admitted }) {
    if (first === undefined || other === undefined || admitted === undefined)
      return { judgements: untested(['C6'], 'no two logins gave tokens that the API admits') }
    const one = await refreshOnce(server, first, 'with the refresh token')
    const found = [...one.found]
    const finish = (pair: TokenPair, facts: Partial<Facts> = {}, note = '') => ({
      judgements: conclude(['C6'], found, note),
      facts: { logins: [pair, other], ...facts },
    })
    if (found.some(({ promise }) => promise === 'C6')) return finish(one.pair)

    const replaces = one.pair.refreshToken !== first.refreshToken
    const { path } = server.options
    const use = ({ accessToken }: TokenPair, what: string): Promise<Broken[]> =>
      runChecks(server, [admission(apiRequest(path, accessToken, what), admitted)])
    const old = await use(first, 'with the access token from before the refresh')
    const fresh = await use(one.pair, 'with the access token of the refresh')
    const again = replaces ? 'with the refresh token of the refresh' : 'with the refresh token, again'
    const two = await refreshOnce(server, one.pair, again)
    const failed = two.found.filter(({ promise }) => promise === 'C6')
    const last =
      failed.length > 0 ? failed : await use(two.pair, 'with the access token of the second refresh')
    found.push(...old, ...fresh, ...last, ...(replaces ? await spentToken(server, other) : []))
    const latest = last.length === 0 ? two.pair : fresh.length === 0 ? one.pair : first
    const facts = { admitted: { ...admitted, accessToken: latest.accessToken } }
    if (found.some(({ promise }) => promise === 'C6')) return finish(two.pair, facts)
    const note = replaces ? 'each refresh replaces the refresh token' : 'the refresh token stays the same'
    return finish(two.pair, { ...facts, refreshing: replaces ? 'replaces' : 'keeps' }, note)
  },
}

function admission(question: Question, { status: usual }: Admitted): Check {
  const wanted = `${usual}, as before`
  return {
    promise: 'C6',
    question,
    holds: ({ status }) => status === usual,
    wanted,
    clause: 'device API §5.6',
  }
}

interface Refreshed {
  readonly pair: TokenPair
  readonly found: readonly Broken[]
}

async function refreshOnce(server: Server, before: TokenPair, what: string): Promise<Refreshed> {
  const question = refreshGrant(before.refreshToken, what)
  const received = await server.ask(question)
  const clause = 'device API §4.2'
  if (received.status !== 200 || textMember(received, 'access_token') === undefined) {
    const wanted = '200 with a new access token'
    return { pair: before, found: [wrongResponse('C6', question, received, wanted, clause)] }
  }
  const pair = refreshed(before, received)
  const came = '200 with the access token from before'
  const same = broken('C6', { sent: question.what, came, wanted: 'a new access token', clause })
  const isSame = pair.accessToken === before.accessToken
  return { pair, found: [...lifetimeFault(question, received), ...(isSame ? [same] : [])] }
}

/** Shows a refresh token that was replaced: at once, and when no server takes it for a retry any more (RFC 9700 §4.14.2). */
async function spentToken(server: Server, login: TokenPair): Promise<Broken[]> {
  const spent = login.refreshToken
  const { pair, found } = await refreshOnce(server, login, 'with the refresh token of the second login')
  if (found.some(({ promise }) => promise === 'C6')) return [...found]
  const refused = (
    question: Question,
    wanted: string,
    holds: Check['holds'] = () => false,
  ): Promise<Broken[]> => {
    const check = { promise: 'C6', question, wanted, clause: 'RFC 9700 §4.14.2' } as const
    return runChecks(server, [{ ...check, holds: (received) => received.status === 400 || holds(received) }])
  }
  const repeats = (received: Received): boolean =>
    received.status === 200 && textMember(received, 'refresh_token') === pair.refreshToken
  const retry = refreshGrant(spent, 'with a spent refresh token, at once')
  const wrong = await refused(retry, '400, or the same tokens as for the first time', repeats)
  if (wrong.length > 0 || server.options.quick) return wrong

  server.say(`refresh: waits ${GRACE} s, then shows a replaced refresh token again`)
  await server.pause(GRACE * 1000)
  const reuse = refreshGrant(spent, `with a spent refresh token, ${GRACE} s later`)
  const accepted = await refused(reuse, '400 invalid_grant')
  if (accepted.length > 0) return accepted
  const successor = refreshGrant(
    pair.refreshToken,
    'with the successor of a refresh token that was used twice',
  )
  return refused(successor, '400: the whole login is revoked, because one of the two users stole it')
}

/** C7: the lifetime that a response states, if it states one. */
export function lifetimeFault({ what }: Question, received: Received): Broken[] {
  const stated = member(received, 'expires_in')
  if (received.status !== 200 || stated === LIFETIME || stated === undefined) return []
  const came = `expires_in: ${shown(stated)}`
  return [broken('C7', { sent: what, came, wanted: String(LIFETIME), clause: 'device API §5.6' })]
}

/** C7: a late use of the first token, which a used-up window has seen if the run waited for its end. */
export const lifetime: Round = {
  promises: ['C7'],
  cost: () => ({ requests: 1, seconds: 1 }),
  async run(server, { first, lateUse }) {
    if (first === undefined) return { judgements: untested(['C7'], 'no login gave tokens') }
    if (server.options.quick)
      return { judgements: conclude(['C7'], [], 'only expires_in was read, because of --quick') }
    const late = lateUse === undefined || lateUse.received.status === 429 ? undefined : lateUse
    const question = late?.question ?? useOfFirstToken(server, first)
    const received = late?.received ?? (await server.ask(question))
    const wanted = 'no 401: the token is still valid'
    const refused = wrongResponse('C7', question, received, wanted, 'device API §5.6')
    const note = 'that tokens expire would take an hour and a week to see'
    return { judgements: conclude(['C7'], received.status === 401 ? [refused] : [], note) }
  },
}

/** A request with the token of the first login, however often the login was refreshed since. */
export function useOfFirstToken(
  { options, clock }: Server,
  { accessToken, at }: NonNullable<Facts['first']>,
): Question {
  const age = Math.round((clock.wall() - at) / 1000)
  return apiRequest(options.path, accessToken, `with the token of the first login, ${age} s old`)
}
