import { type SessionSettings, sessionFields } from '../config/auth-fields.ts'
import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { KeptCookies } from './kept-cookies.ts'
import type { Session } from './scheme.ts'
import {
  cookiesSetBy,
  isExpired,
  type SessionCookie,
  type SessionNames,
  sessionNames,
} from './session-cookies.ts'
import { isByCookies, isSendable, tokenCookie, tokenIn, unwrapped } from './session-token.ts'

/** The names under which a session travels: those of the configuration, and the cookies that its login set. */
export function namesOf(settings: SessionSettings, set: Iterable<string> = []): SessionNames {
  const { token, send } = settings
  const named = [tokenCookie(token), send?.header.cookie].filter((name) => name !== undefined)
  return sessionNames([...named, ...set], sessionFields(settings))
}

/** The session that the response to a login opens; undefined if it holds none. */
export function sessionIn(
  response: OwnResponse,
  settings: SessionSettings,
  clock: Clock,
): Session | undefined {
  const { token, send, login } = settings
  const named = tokenCookie(token)
  // Without a field that carries its value, the named cookie alone is the session.
  const only = send === undefined ? named : undefined
  const now = clock.monotonic()
  const set = cookiesSetBy(response.fields, login.path, clock).filter(
    (cookie) =>
      cookie.value !== '' && !isExpired(cookie, now) && (only === undefined || cookie.name === only),
  )
  const text = tokenIn(response, settings)
  const isOpen = isByCookies(token)
    ? set.some(({ name }) => named === undefined || name === named)
    : text !== undefined
  return isOpen ? createSession(settings, new KeptCookies(set, clock), text, clock) : undefined
}

/**
 * Requests carry the cookies and the token. Responses to clients change neither, because they may be about another account.
 *
 * @param opened the token, if it is no cookie
 */
function createSession(
  settings: SessionSettings,
  cookies: KeptCookies,
  opened: string | undefined,
  clock: Clock,
): Session {
  const { token, send } = settings
  const byCookies = isByCookies(token)
  const named = tokenCookie(token)
  const carrying = byCookies ? [] : sessionFields(settings)
  const { name: sentName = '', before = '', after = '', cookie: sentCookie } = send?.header ?? {}
  let text = opened
  let isReplaced = false
  let isDeleted = false

  function takeToken(shown: string, own: boolean): void {
    if (shown === '' || shown === text) return
    if (own && isSendable(shown, send)) text = shown
    else isReplaced = true
  }

  function takeCookie(cookie: SessionCookie, target: string, own: boolean): void {
    if (byCookies || cookie.name !== sentCookie) cookies.take(cookie, target, own)
    else if (cookies.isOver(cookie)) isDeleted = true
    else takeToken(cookie.value, own)
  }

  return {
    // Many devices set cookies for every client. Only a request shows whether they are a session.
    proven: !byCookies,
    names: namesOf(settings, cookies.names),
    // Beside a token, the cookies only go along.
    get expired() {
      return isDeleted || (byCookies && !cookies.complete)
    },
    get changed() {
      return isReplaced || (byCookies && cookies.replaced)
    },
    credentialsFor({ target }) {
      const sent = cookies.for(target)
      // The path is outside of the session.
      if (byCookies && sent.length === 0) return { fields: [], nonce: '' }
      const value = named === undefined ? text : cookies.valueOf(named)
      const carried = send === undefined || value === undefined ? [] : [before + value + after]
      const pairs = sent
        .filter(({ name }) => name !== sentCookie)
        .map(({ name, value }) => `${name}=${value}`)
        .concat(sentCookie === undefined ? [] : carried)
      return {
        fields: [
          ...(sentCookie === undefined ? carried.flatMap((each) => [sentName, each]) : []),
          ...(pairs.length === 0 ? [] : ['Cookie', pairs.join('; ')]),
        ],
        nonce: '',
      }
    },
    accepted({ target }, { fields }, _nonce, own) {
      for (const name of carrying)
        takeToken(unwrapped(fieldValues(fields, name.toLowerCase())[0] ?? '', send), own)
      for (const cookie of cookiesSetBy(fields, target, clock)) takeCookie(cookie, target, own)
    },
  }
}
