import {
  apiRequest,
  member,
  type Question,
  type Received,
  refreshGrant,
  shown,
  textMember,
} from '../exchange.ts'
import type { Server } from '../server.ts'
import { type Broken, broken, conclude, untested, wrongResponse } from '../verdict.ts'
import { type Facts, type Round, refreshed, runChecks, type TokenPair, useOfFirstToken } from './round.ts'

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
    const { status: usual } = admitted
    const one = await refreshOnce(server, first, 'with the refresh token')
    const found = [...one.found]
    const finish = (pair: TokenPair, facts: Partial<Facts> = {}, note = '') => ({
      judgements: conclude(['C6'], [...found, ...one.lifetime], note),
      facts: { logins: [pair, other], ...facts },
    })
    if (found.length > 0) return finish(one.pair)

    const replaces = one.pair.refreshToken !== first.refreshToken
    const use = ({ accessToken }: TokenPair, what: string): Promise<readonly Broken[]> => {
      const question = apiRequest(server.options.path, accessToken, what)
      const holds = ({ status }: Received): boolean => status === usual
      const wanted = `${usual}, as before`
      return runChecks(server, [{ promise: 'C6', question, holds, wanted, clause: 'device API §5.6' }])
    }
    const old = await use(first, 'with the access token from before the refresh')
    const fresh = await use(one.pair, 'with the access token of the refresh')
    const again = replaces ? 'with the refresh token of the refresh' : 'with the refresh token, again'
    const two = await refreshOnce(server, one.pair, again)
    const second = 'with the access token of the second refresh'
    const last = two.found.length > 0 ? two.found : await use(two.pair, second)
    found.push(...old, ...fresh, ...last, ...(replaces ? await spentToken(server, other) : []))
    const { accessToken } = last.length === 0 ? two.pair : fresh.length === 0 ? one.pair : first
    const facts = { admitted: { accessToken, status: usual } }
    if (found.length > 0) return finish(two.pair, facts)
    const note = replaces ? 'each refresh replaces the refresh token' : 'the refresh token stays the same'
    return finish(two.pair, { ...facts, refreshing: replaces ? 'replaces' : 'keeps' }, note)
  },
}

/** `found` is of C6, `lifetime` of C7. */
async function refreshOnce(server: Server, before: TokenPair, what: string) {
  const question = refreshGrant(before.refreshToken, what)
  const received = await server.ask(question)
  const clause = 'device API §4.2'
  const wanted = 'a new access token'
  const pair = refreshed(before, received)
  const found: Broken[] = []
  if (received.status !== 200 || textMember(received, 'access_token') === undefined)
    found.push(wrongResponse('C6', question, received, `200 with ${wanted}`, clause))
  else if (pair.accessToken === before.accessToken)
    found.push(broken('C6', question.what, '200 with the access token from before', wanted, clause))
  return { pair, found, lifetime: lifetimeFault(question, received) }
}

/** Shows a refresh token that was replaced: at once, and when no server takes it for a retry any more (RFC 9700 §4.14.2). */
async function spentToken(server: Server, login: TokenPair): Promise<readonly Broken[]> {
  const { pair, found } = await refreshOnce(server, login, 'with the refresh token of the second login')
  if (found.length > 0) return found
  const refused = (token: string, what: string, wanted: string, holds = (_: Received) => false) => {
    const check = {
      promise: 'C6',
      question: refreshGrant(token, what),
      wanted,
      clause: 'RFC 9700 §4.14.2',
    } as const
    return runChecks(server, [{ ...check, holds: (received) => received.status === 400 || holds(received) }])
  }
  const spent = 'with a spent refresh token'
  const repeats = (received: Received): boolean =>
    received.status === 200 && textMember(received, 'refresh_token') === pair.refreshToken
  const same = '400, or the same tokens as for the first time'
  const wrong = await refused(login.refreshToken, `${spent}, at once`, same, repeats)
  if (wrong.length > 0 || server.options.quick) return wrong
  server.say(`refresh: waits ${GRACE} s, then shows a replaced refresh token again`)
  await server.pause(GRACE * 1000)
  const accepted = await refused(login.refreshToken, `${spent}, ${GRACE} s later`, '400 invalid_grant')
  if (accepted.length > 0) return accepted
  const successor = 'with the successor of a refresh token that was used twice'
  const revoked = '400: the whole login is revoked, because one of the two users stole it'
  return refused(pair.refreshToken, successor, revoked)
}

/** C7: the lifetime that a response states, if it states one. */
export function lifetimeFault({ what }: Question, received: Received): Broken[] {
  const stated = member(received, 'expires_in')
  if (received.status !== 200 || stated === LIFETIME || stated === undefined) return []
  return [broken('C7', what, `expires_in: ${shown(stated)}`, String(LIFETIME), 'device API §5.6')]
}

/** C7: a late use of the first token, which a used-up window has seen if the run waited for its end. */
export const lifetime: Round = {
  promises: ['C7'],
  cost: () => ({ requests: 1, seconds: 1 }),
  async run(server, { first, openings }) {
    if (first === undefined) return { judgements: untested(['C7'], 'no login gave tokens') }
    if (server.options.quick)
      return { judgements: conclude(['C7'], [], 'only expires_in was read, because of --quick') }
    const late = openings.get('api')
    const question = late?.question ?? useOfFirstToken(server, first)
    const received = late?.received ?? (await server.ask(question))
    const wanted = 'no 401: the token is still valid'
    const refused = wrongResponse('C7', question, received, wanted, 'device API §5.6')
    const note = 'that tokens expire would take an hour and a week to see'
    return { judgements: conclude(['C7'], received.status === 401 ? [refused] : [], note) }
  },
}
