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
import { type Broken, broken, kept } from '../verdict.ts'
import {
  type Facts,
  type Findings,
  type Round,
  refreshed,
  runChecks,
  type TokenPair,
  useOfFirstToken,
} from './round.ts'

/** The lifetime of an access token (device API §5.6), in seconds. */
const LIFETIME = 3600

/** Longer than a server may accept a spent refresh token again, for a client that lost the response (s): C6 allows 10. */
const GRACE = 12

/** C6: the refresh grant, with a refresh token that is kept or replaced. C7: the lifetime that it states. */
export const refresh: Round = {
  promises: ['C6', 'C7'],
  cost: ({ quick }) => ({ requests: 13, seconds: quick ? 1 : GRACE + 1 }),
  needsTokens: true,
  async *run(server, before) {
    const [first, other] = before.logins
    const { status } = before.admitted
    const admits = ({ accessToken }: TokenPair, what: string) =>
      runChecks(server, [
        {
          promise: 'C6',
          question: apiRequest(server.options.path, accessToken, what),
          holds: [status],
          wanted: `${status}, as before`,
          clause: 'device API §5.6',
        },
      ])
    const one = yield* refreshOnce(server, first, 'with the refresh token')
    if (!one.right) return { ...before, logins: [one.pair, other] }

    const replaces = one.pair.refreshToken !== first.refreshToken
    const old = yield* admits(first, 'with the access token from before the refresh')
    const fresh = yield* admits(one.pair, 'with the access token of the refresh')
    const again = replaces ? 'with the refresh token of the refresh' : 'with the refresh token, again'
    const two = yield* refreshOnce(server, one.pair, again)
    const last = two.right && (yield* admits(two.pair, 'with the access token of the second refresh'))
    const spent = !replaces || (yield* spentToken(server, other))
    const { accessToken } = last ? two.pair : fresh ? one.pair : first
    const facts: Facts = { ...before, logins: [two.pair, other], admitted: { accessToken, status } }
    if (!old || !fresh || !last || !spent) return facts
    yield* kept(
      ['C6'],
      replaces ? 'each refresh replaces the refresh token' : 'the refresh token stays the same',
    )
    return { ...facts, refreshing: replaces ? 'replaces' : 'keeps' }
  },
}

/** Returns the newest tokens, and whether the response gives what C6 wants. */
async function* refreshOnce(
  server: Server,
  before: TokenPair,
  what: string,
): Findings<{ readonly pair: TokenPair; readonly right: boolean }> {
  const question = refreshGrant(before.refreshToken, what)
  const received = await server.ask(question)
  const pair = refreshed(before, received)
  const gives = received.status === 200 && textMember(received, 'access_token') !== undefined
  const right = gives && pair.accessToken !== before.accessToken
  const came = gives ? '200 with the access token from before' : received
  if (!right) yield broken('C6', question.what, came, '200 with a new access token', 'device API §4.2')
  yield* lifetimeFault(question, received)
  return { pair, right }
}

/** Shows a refresh token that was replaced: at once, and when no server takes it for a retry any more (RFC 9700 §4.14.2). */
async function* spentToken(server: Server, login: TokenPair): Findings<boolean> {
  const { pair, right } = yield* refreshOnce(server, login, 'with the refresh token of the second login')
  if (!right) return false
  const refused = (token: string, what: string, wanted: string, holds = (_: Received) => false) =>
    runChecks(server, [
      {
        promise: 'C6',
        question: refreshGrant(token, what),
        holds: (received) => received.status === 400 || holds(received),
        wanted,
        clause: 'RFC 9700 §4.14.2',
      },
    ])
  const spent = 'with a spent refresh token'
  const repeats = (received: Received): boolean =>
    received.status === 200 && textMember(received, 'refresh_token') === pair.refreshToken
  const same = '400, or the same tokens as for the first time'
  const atOnce = yield* refused(login.refreshToken, `${spent}, at once`, same, repeats)
  if (!atOnce || server.options.quick) return atOnce
  server.say(`refresh: waits ${GRACE} s, then shows a replaced refresh token again`)
  await server.pause(GRACE * 1000)
  if (!(yield* refused(login.refreshToken, `${spent}, ${GRACE} s later`, '400 invalid_grant'))) return false
  const successor = 'with the successor of a refresh token that was used twice'
  const revoked = '400: the whole login is revoked, because one of the two users stole it'
  return yield* refused(pair.refreshToken, successor, revoked)
}

/** C7: the lifetime that a response states, if it states one. */
export function lifetimeFault({ what }: Question, received: Received): readonly Broken[] {
  const stated = member(received, 'expires_in')
  if (received.status !== 200 || stated === LIFETIME || stated === undefined) return []
  return [broken('C7', what, `expires_in: ${shown(stated)}`, String(LIFETIME), 'device API §5.6')]
}

/** C7: a late use of the first token, which a used-up window has seen if the run waited for its end. */
export const lifetime: Round = {
  promises: ['C7'],
  cost: () => ({ requests: 1, seconds: 1 }),
  needsTokens: true,
  async *run(server, { first, openings }) {
    if (server.options.quick) return yield* kept(['C7'], 'only expires_in was read, because of --quick')
    const late = openings.get('api')
    const question = late?.question ?? useOfFirstToken(server, first)
    const received = late?.received ?? (await server.ask(question))
    const wanted = 'no 401: the token is still valid'
    if (received.status !== 401)
      return yield* kept(['C7'], 'that tokens expire would take an hour and a week to see')
    return yield broken('C7', question.what, received, wanted, 'device API §5.6')
  },
}
