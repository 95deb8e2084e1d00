import type { FormAccount } from '../config/auth-fields.ts'
import type { OwnResponse } from '../device/own-request.ts'
import type { RequestLine } from '../device/request.ts'
import { fieldValues } from '../http/fields.ts'
import { loosePathOf } from '../http/request-path.ts'
import type { Clock } from '../system/clock.ts'
import { type Ask, checkedLogin, type LoginResult, type Scheme, type Session } from './scheme.ts'
import { cookiesSetBy, isExpired, matchesPath, type SessionCookie, sessionNames } from './session-cookies.ts'

/**
 * A login form and the session cookies that it sets. Redirects are evaluated but not followed. `checkPath`: a path that refuses a client
 * that is not signed in; without it the response to the login is the only check.
 */
export function createFormScheme(account: FormAccount, ask: Ask, clock: Clock): Scheme {
  const { form, checkPath, onChange } = account
  const { path, loginPage = path, sessionCookie } = form
  const loginPaths = new Set([path, loginPage].map(loosePathOf))
  const isLogin = ({ target }: RequestLine): boolean => loginPaths.has(loosePathOf(target))

  const asksToSignIn = ({ target }: RequestLine, { status, fields }: OwnResponse): boolean =>
    status === 401 || (isRedirect(status) && leadsTo(fieldValues(fields, 'location')[0], target, loginPage))

  async function submit(password: string): Promise<LoginResult> {
    const login = { method: 'POST', target: path } as const
    const response = await ask({
      ...login,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
      body: formBody(account, password),
    })
    const { status } = response
    if (status >= 500 || status === 404 || status === 405 || status === 423 || status === 429) {
      return { kind: 'unusable', reason: `the login at ${path} answered ${status}` }
    }
    const cookies = cookiesSetBy(response.fields, path, clock).filter(
      (cookie) =>
        cookie.value !== '' &&
        !isExpired(cookie, clock.monotonic()) &&
        (sessionCookie === undefined || cookie.name === sessionCookie),
    )
    const right = status < 400 && cookies.length > 0 && !asksToSignIn(login, response)
    if (!right) return { kind: 'wrong' }
    const follows = (request: RequestLine): boolean => onChange === 'follow' && !isLogin(request)
    return {
      kind: 'right',
      session: createFormSession(cookies, follows, checkPath !== undefined, clock),
    }
  }

  // A client that signs in at the device itself, through the sidecar, is also redirected to that page by a wrong password.
  const isChallenge: Scheme['isChallenge'] = (request, response) =>
    asksToSignIn(request, response) && !isLogin(request)

  return {
    isChallenge,
    names: sessionNames(sessionCookie === undefined ? [] : [sessionCookie]),
    async look(session) {
      const request = { method: 'GET', target: checkPath ?? '/' }
      const { fields, nonce } = session.credentialsFor(request)
      const response = await ask({ ...request, fields })
      if (isChallenge(request, response)) return false
      session.accepted?.(request, response, nonce, true)
      return response.status < 400 ? true : undefined
    },
    login: (password) =>
      checkPath === undefined
        ? submit(password)
        : checkedLogin(checkPath, ask, asksToSignIn, 'a login', () => submit(password)),
  }
}

function formBody({ user, form }: FormAccount, password: string): string {
  const { fields, userField, passwordField } = form
  const pairs = fields.map((pair): [string, string] => {
    const equals = pair.indexOf('=')
    return [pair.slice(0, equals), pair.slice(equals + 1)]
  })
  if (user !== undefined) pairs.push([userField, user])
  pairs.push([passwordField, password])
  return new URLSearchParams(pairs).toString()
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

function leadsTo(location: string | undefined, from: string, page: string): boolean {
  const url = location === undefined ? null : URL.parse(location, `http://device${from}`)
  // Servlets append `;jsessionid=` for a client whose cookies they do not know.
  return url?.pathname === page || url?.pathname.split(';', 1)[0] === page
}

/**
 * The cookies of one login. They are sent with every request, and responses update their expiry.
 *
 * @param follows whether a response to this request of a client may change the session
 */
function createFormSession(
  cookies: readonly SessionCookie[],
  follows: (request: RequestLine) => boolean,
  proven: boolean,
  clock: Clock,
): Session {
  let kept = cookies
  let changed = false
  const names = new Set(cookies.map(({ name }) => name))

  function take(cookie: SessionCookie, target: string, mayChange: boolean): void {
    const same = kept.filter((each) => each.name === cookie.name)
    const sent = same.filter((each) => matchesPath(each, target))
    // The request did not carry the session, so its response says nothing about it.
    if (sent.length === 0) return
    const isOver = isExpired(cookie, clock.monotonic()) || cookie.value === ''
    const known = sent.find(({ value }) => value === cookie.value)
    if (isOver) {
      if (sent.some(({ path }) => path === cookie.path)) kept = kept.filter((each) => !same.includes(each))
    } else if (known !== undefined) {
      kept = kept.map((each) => (each === known ? { ...each, until: cookie.until } : each))
    } else if (mayChange) {
      kept = [...kept.filter((each) => !same.includes(each)), cookie]
    } else changed = true
  }

  return {
    proven,
    names: sessionNames([...names]),
    get expired() {
      const now = clock.monotonic()
      return kept.length < names.size || kept.some((cookie) => isExpired(cookie, now))
    },
    get changed() {
      return changed
    },
    credentialsFor({ target }) {
      const pairs = kept
        .filter((cookie) => matchesPath(cookie, target))
        .map(({ name, value }) => `${name}=${value}`)
      return { fields: pairs.length === 0 ? [] : ['Cookie', pairs.join('; ')], nonce: '' }
    },
    accepted(request, { fields }, _nonce, own) {
      const { target } = request
      for (const cookie of cookiesSetBy(fields, target, clock)) take(cookie, target, own || follows(request))
    },
  }
}
