import type { UpstreamAuthConfig } from '../config/auth-fields.ts'
import type { OwnResponse } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import { pathOf } from '../http/request-path.ts'
import type { Clock } from '../system/clock.ts'
import {
  type Ask,
  checkedLogin,
  type LoginResult,
  type RequestLine,
  type Scheme,
  type Session,
} from './scheme.ts'
import {
  cookiesSetBy,
  isExpired,
  matchesPath,
  type SessionCookie,
  withoutSession,
} from './session-cookies.ts'

/** `checkPath`: a path that refuses a client that is not signed in; without it the response to the login is the only check. */
type FormSettings = Extract<UpstreamAuthConfig, { readonly form: unknown }>['form']

/** A login form and the session cookies that it sets. Redirects are evaluated but not followed. */
export function createFormScheme(settings: FormSettings, ask: Ask, clock: Clock): Scheme {
  const { path, loginPage = path, checkPath } = settings

  const asksToSignIn = ({ target }: RequestLine, { status, fields }: OwnResponse): boolean =>
    status === 401 || (isRedirect(status) && leadsTo(fieldValues(fields, 'location')[0], target, loginPage))

  async function submit(password: string): Promise<LoginResult> {
    const login = { method: 'POST', target: path } as const
    const response = await ask({
      ...login,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
      body: formBody(settings, password),
    })
    const { status } = response
    if (status >= 500 || status === 404 || status === 405 || status === 423 || status === 429) {
      return { kind: 'unusable', reason: `the login at ${path} answered ${status}` }
    }
    const { sessionCookie } = settings
    const cookies = cookiesSetBy(response.fields, path, clock).filter(
      (cookie) =>
        cookie.value !== '' &&
        !isExpired(cookie, clock.monotonic()) &&
        (sessionCookie === undefined || cookie.name === sessionCookie),
    )
    const right =
      status < 400 &&
      cookies.length > 0 &&
      !asksToSignIn(login, response) &&
      looksRight(response, settings.success)
    if (!right) return { kind: 'wrong' }
    return { kind: 'right', session: createFormSession(cookies, path, checkPath !== undefined, clock) }
  }

  return {
    // A client that signs in at the device itself, through the sidecar, is also redirected to that page by a wrong password.
    isChallenge: (request, response) =>
      ![path, loginPage].includes(pathOf(request.target)) && asksToSignIn(request, response),
    login: (password) =>
      checkPath === undefined
        ? submit(password)
        : checkedLogin(checkPath, ask, asksToSignIn, 'a login', () => submit(password)),
  }
}

function formBody({ fields, user, userField, passwordField }: FormSettings, password: string): string {
  const pairs = fields.map((pair): [string, string] => {
    const equals = pair.indexOf('=')
    return [pair.slice(0, equals), pair.slice(equals + 1)]
  })
  if (user !== undefined) pairs.push([userField, user])
  pairs.push([passwordField, password])
  return new URLSearchParams(pairs).toString()
}

function looksRight({ status, fields }: OwnResponse, success: FormSettings['success']): boolean {
  const location = fieldValues(fields, 'location')[0] ?? ''
  if (success.status !== undefined && status !== success.status) return false
  return success.location === undefined || pathAndQuery(location).startsWith(success.location)
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

function leadsTo(location: string | undefined, from: string, page: string): boolean {
  const url = location === undefined ? null : URL.parse(location, `http://device${from}`)
  // Servlets append `;jsessionid=` for a client whose cookies they do not know.
  return url?.pathname === page || url?.pathname.split(';', 1)[0] === page
}

function pathAndQuery(location: string): string {
  const url = URL.parse(location, 'http://device/')
  return url === null ? '' : url.pathname + url.search
}

/** The cookies of one login. They are sent with every request, and responses update them. */
function createFormSession(
  cookies: readonly SessionCookie[],
  loginPath: string,
  proven: boolean,
  clock: Clock,
): Session {
  let kept = cookies
  const names = new Set(cookies.map(({ name }) => name))

  return {
    proven,
    get expired() {
      const now = clock.monotonic()
      return kept.length < names.size || kept.some((cookie) => isExpired(cookie, now))
    },
    credentialsFor({ target }) {
      const pairs = kept
        .filter((cookie) => matchesPath(cookie, target))
        .map(({ name, value }) => `${name}=${value}`)
      return { fields: pairs.length === 0 ? [] : ['Cookie', pairs.join('; ')], nonce: '' }
    },
    accepted({ target }, { fields }) {
      // A client that signs in at the device as another user must not change the session of all clients.
      if (pathOf(target) === loginPath) return
      for (const cookie of cookiesSetBy(fields, target, clock)) {
        if (!names.has(cookie.name)) continue
        const others = kept.filter(({ name }) => name !== cookie.name)
        kept = isExpired(cookie, clock.monotonic()) || cookie.value === '' ? others : [...others, cookie]
      }
    },
    conceal: (fields) => withoutSession(fields, names),
  }
}
