import type { Answer } from '../device/own-request.ts'
import { fieldValues } from '../http/fields.ts'
import { pathOf } from '../http/request-path.ts'
import type { Clock } from '../system/clock.ts'
import { createFormSession } from './form-session.ts'
import { type Ask, type Login, type RequestLine, type Scheme, type Session, verdictOn } from './scheme.ts'
import { cookiesSetBy, isOver } from './session-cookies.ts'

export interface FormSettings {
  /** Name and value of what the form sends beside the password. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly passwordField: string
  readonly path: string
  /** Where the device sends whoever is not signed in. */
  readonly loginPage: string
  /** The one cookie that makes the session; `undefined` for all that the login sets. */
  readonly sessionCookie: string | undefined
  /** What else a successful login looks like. */
  readonly success: { readonly status?: number; readonly location?: string }
  /** Refused to whoever is not signed in; `undefined` where the answer to the login has to do. */
  readonly checkPath: string | undefined
}

/** A login form, and the session cookies that it gives. Redirects are read, never followed. */
export function createFormScheme(settings: FormSettings, ask: Ask, clock: Clock): Scheme {
  const { path, loginPage, checkPath } = settings

  const asksToSignIn = ({ target }: RequestLine, { status, fields }: Answer): boolean =>
    status === 401 || (isRedirect(status) && leadsTo(fieldValues(fields, 'location')[0], target, loginPage))

  async function submit(password: string): Promise<Login> {
    const login = { method: 'POST', target: path } as const
    const answer = await ask({
      ...login,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
      body: formBody(settings, password),
    })
    const { status } = answer
    if (status >= 500 || status === 404 || status === 405 || status === 423 || status === 429) {
      return { kind: 'unusable', reason: `the login at ${path} answered ${status}` }
    }
    const { sessionCookie } = settings
    const cookies = cookiesSetBy(answer.fields, path, clock).filter(
      (cookie) =>
        cookie.value !== '' &&
        !isOver(cookie, clock.monotonic()) &&
        (sessionCookie === undefined || cookie.name === sessionCookie),
    )
    const right =
      status < 400 &&
      cookies.length > 0 &&
      !asksToSignIn(login, answer) &&
      looksRight(answer, settings.success)
    if (!right) return { kind: 'wrong' }
    const session = createFormSession({ cookies, loginPath: path, clock, proven: checkPath !== undefined })
    return { kind: 'right', session }
  }

  /** Many devices give a cookie to anybody. Whether this one opens anything, only a closed page can tell. */
  async function tried(session: Session, target: string): Promise<Login> {
    const check = { method: 'GET', target } as const
    const ticket = session.ticketFor(check)
    const answer = await ask({ ...check, fields: ticket.fields })
    return asksToSignIn(check, answer) ? { kind: 'wrong' } : verdictOn(answer, target, session)
  }

  return {
    // Whoever signs in by hand, through the sidecar, is led to that page by a wrong password, too.
    isChallenge: (request, answer) =>
      ![path, loginPage].includes(pathOf(request.target)) && asksToSignIn(request, answer),
    async login(password) {
      if (checkPath === undefined) return submit(password)
      const check = { method: 'GET', target: checkPath } as const
      const open = await ask({ ...check, fields: [] })
      if (!asksToSignIn(check, open)) {
        const reason = `${checkPath} answered ${open.status} without asking for a login; set check_path to a path that does`
        return { kind: 'unusable', reason }
      }
      const login = await submit(password)
      return login.kind === 'right' ? tried(login.session, checkPath) : login
    },
  }
}

function formBody({ fields, passwordField }: FormSettings, password: string): string {
  const pairs = [...fields, [passwordField, password] as const]
  return new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString()
}

function looksRight({ status, fields }: Answer, success: FormSettings['success']): boolean {
  const location = fieldValues(fields, 'location')[0] ?? ''
  if (success.status !== undefined && status !== success.status) return false
  return success.location === undefined || pathAndQuery(location).startsWith(success.location)
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

function leadsTo(location: string | undefined, from: string, page: string): boolean {
  const url = location === undefined ? null : URL.parse(location, `http://device${from}`)
  return url?.pathname === page
}

function pathAndQuery(location: string): string {
  const url = URL.parse(location, 'http://device/')
  return url === null ? '' : url.pathname + url.search
}
