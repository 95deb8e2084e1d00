import { type SessionSettings, sessionFields } from '../config/auth-fields.ts'
import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { KeptCookies } from './kept-cookies.ts'
import type { Session } from './scheme.ts'
import {
  cookiesSetBy,
  type DeviceCookie,
  isExpired,
  type SessionNames,
  sessionNames,
} from './session-cookies.ts'
import { isByCookies, isSendable, tokenCookie, tokenIn, unwrapped } from './session-token.ts'

/** The names under which a session travels: those in the configuration, and those of its cookies. */
export function namesOf(settings: SessionSettings, cookies: readonly DeviceCookie[] = []): SessionNames {
  const named = [tokenCookie(settings), settings.send?.header.cookie].filter((name) => name !== undefined)
  return sessionNames([...named, ...cookies.map(({ name }) => name)], sessionFields(settings))
}

/** The session that the response to a login opens; undefined if the response holds none. */
export function sessionIn(
  response: OwnResponse,
  settings: SessionSettings,
  clock: Clock,
): Session | undefined {
  const { token, send, login } = settings
  // Without a field that carries its value, the named cookie is the whole session.
  const only = send === undefined ? tokenCookie(settings) : undefined
  const received = cookiesSetBy(response.fields, login.path, clock)
  const now = clock.monotonic()
  const set = received.filter(
    (cookie) =>
      cookie.value !== '' && !isExpired(cookie, now) && (only === undefined || cookie.name === only),
  )
  const text = tokenIn(response, settings, set)
  if (token === undefined ? set.length === 0 : text === undefined) return undefined
  return createSession(settings, set, text, clock)
}

/** A session of cookies, a token, or both. Responses to clients replace neither, because they may be about another account. */
function createSession(
  settings: SessionSettings,
  set: readonly DeviceCookie[],
  opened: string | undefined,
  clock: Clock,
): Session {
  const named = tokenCookie(settings)
  const byCookies = isByCookies(settings)
  const { header } = settings.send ?? {}
  const field = header?.cookie === undefined ? header : undefined
  const carrier =
    header?.cookie === undefined || opened === undefined
      ? undefined
      : {
          name: header.cookie,
          value: opened,
          path: '/',
          until: set.findLast(({ name }) => name === named)?.until,
        }
  const all = carrier === undefined ? set : [...set.filter(({ name }) => name !== carrier.name), carrier]
  const cookies = new KeptCookies(
    all,
    {
      isVital: (name) => byCookies || name === carrier?.name,
      tells: (name) => (byCookies && (named === undefined || name === named)) || name === carrier?.name,
    },
    clock,
  )
  let text = opened
  let replaced = false

  function takeToken(shown: string, own: boolean): void {
    if (shown === '' || shown === text) return
    if (own && field !== undefined && isSendable(shown)) text = shown
    else replaced = true
  }

  return {
    // Many devices set cookies for every client. Only a request shows whether the cookies are a session.
    proven: !byCookies,
    names: namesOf(settings, all),
    get expired() {
      return cookies.over
    },
    get changed() {
      return replaced || cookies.replaced
    },
    credentialsFor({ target }) {
      const sent = cookies.for(target)
      const value = named === undefined ? text : cookies.valueOf(named)
      const pairs = sent.map((each) => `${each.name}=${each.value}`)
      return {
        fields: [
          ...(field === undefined || value === undefined
            ? []
            : [field.name, field.before + value + field.after]),
          ...(pairs.length === 0 ? [] : ['Cookie', pairs.join('; ')]),
        ],
        nonce: '',
      }
    },
    accepted({ target }, { fields }, _nonce, own) {
      // A token in a cookie is judged as a cookie.
      for (const name of byCookies ? [] : sessionFields(settings))
        takeToken(unwrapped(fieldValues(fields, name.toLowerCase())[0] ?? '', field), own)
      for (const cookie of cookiesSetBy(fields, target, clock)) cookies.take(cookie, target, own)
    },
  }
}
