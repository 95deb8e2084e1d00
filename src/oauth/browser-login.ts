import { type LoginMessage, type LoginPage, pageResponse } from '../browser/login-page.ts'
import { OWN_PATHS } from '../http/admission.ts'
import { isOfThisOrigin, pageBehind, publicOrigin, showsToken } from '../http/browsers.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Fields, fieldValues } from '../http/fields.ts'
import { escapeHtml, fieldsBesideBody } from '../http/html.ts'
import { isLoopback } from '../http/ip.ts'
import type { LocalResponse, Refusal } from '../http/refusal.ts'
import { isRead } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { Sessions } from './browser-sessions.ts'
import { type FormSettings, readForm } from './form-request.ts'
import type { GrantType, OwnEndpointHandler } from './token-endpoint.ts'

type LoginSettings = FormSettings & {
  readonly config: { readonly realm: string; readonly statusCodes: 'contract' | 'http' }
}

export type BrowserLogin = ReturnType<typeof createBrowserLogin>

/**
 * Empties the browser's cache of the device's pages, and the memory from which Back restores them (W3C Clear Site Data). The page that the
 * browser leaves enters that memory only after this response. So the response leads to a second page, which has the field, too.
 */
const CLEARED_CACHE: Fields = ['Clear-Site-Data', '"cache"']

/** The address of the login page that leads to a path afterwards. */
function loginPath(to: string): string {
  return `${OWN_PATHS.login}?to=${encodeURIComponent(to)}`
}

/** Leads the browser to another page at once. A browser that ignores it shows this page, which says what to do. */
function leadingTo(path: string): string {
  return `\n<meta http-equiv="refresh" content="0; url=${escapeHtml(path)}">`
}

/**
 * The login of browsers: the two endpoints, and the login page as the body of a refusal. A login is a password grant: its tokens stay here,
 * and the browser gets a session. Login and logout show a page for GET. They take only the POST of that page, which the gate checks.
 */
export function createBrowserLogin(
  grant: GrantType,
  sessions: Sessions,
  settings: LoginSettings,
  clock: Pick<Clock, 'after'>,
) {
  function page(
    exchange: Exchange,
    message: LoginMessage | undefined,
    action: LoginPage['action'],
  ): LoginPage {
    const confidential = isConfidential(exchange)
    return {
      realm: settings.config.realm,
      languages: fieldValues(exchange.head.fields, 'accept-language')[0],
      message: confidential ? message : 'cleartext',
      action: confidential ? action : undefined,
    }
  }

  const login: OwnEndpointHandler = async (exchange) => {
    const { method, fields } = exchange.head
    if (method !== 'POST') return { kind: 'unauthorized', cause: 'missing' }
    if (!isConfidential(exchange)) return { kind: 'invalid-request', description: 'The login needs TLS.' }
    const form = await readForm(exchange, settings, clock)
    if ('kind' in form) return form
    const issued = await grant.exchange(form, exchange)
    if ('kind' in issued) return issued
    // The new cookie replaces that of an earlier session, which would otherwise live on.
    const cleared = (await sessions.replace(fields, issued.grant)) === 'ended' ? CLEARED_CACHE : []
    const cookie = sessions.begin(issued)
    if (cookie === undefined) return { kind: 'unauthorized', cause: 'missing' }
    const more = ['Set-Cookie', cookie, ...cleared]
    return { response: loggedIn(exchange, askedFor(exchange), more), grant: issued.grant }
  }

  /** Sends the browser to a path of the device. The documented API has no redirect, so with `status_codes: contract` a page does it. */
  function loggedIn(exchange: Exchange, to: string, more: Fields): LocalResponse {
    if (settings.config.statusCodes === 'http')
      return { status: 303, fields: ['Location', to, 'Cache-Control', 'no-store', ...more], body: '' }
    const onward = page(exchange, undefined, { kind: 'link-to-device', to })
    return pageResponse(200, onward, more, leadingTo(to))
  }

  const logout: OwnEndpointHandler = async (exchange) => {
    const { method, fields } = exchange.head
    const goodbye = page(exchange, 'out', { kind: 'link-to-login', to: '/' })
    if (method === 'POST') {
      await sessions.end(fields)
      const more = ['Set-Cookie', sessions.clearedCookie, ...CLEARED_CACHE]
      return { response: pageResponse(200, goodbye, more, leadingTo(OWN_PATHS.logout)) }
    }
    // A link of another site carries no cookie, so its request does not show whether there is a session.
    if (sessions.stateOf(fields) === 'open' || !isOfThisOrigin(exchange, { typed: true, silent: false }))
      return { response: pageResponse(200, page(exchange, undefined, { kind: 'logout' })) }
    return { response: pageResponse(200, goodbye, CLEARED_CACHE) }
  }

  /** What the login page says and offers in place of a refused request. */
  function offered(exchange: Exchange, { kind }: Refusal): Pick<LoginPage, 'message' | 'action'> {
    const { head, classified } = exchange
    const to = askedFor(exchange)
    const action = { kind: 'form', to: loginPath(to) } as const
    if (kind === 'invalid-grant') return { message: 'wrong', action }
    if (kind === 'rate-limited' || kind === 'wrong-passwords') return { message: 'wait', action }
    // The cookie is `SameSite=Strict`: this user may have a session, which a request by a link of this page would show.
    const mayBeLoggedIn = fieldValues(head.fields, 'sec-fetch-site').includes('cross-site')
    if (kind === 'cross-origin' || (kind === 'unauthorized' && mayBeLoggedIn))
      return { message: 'foreign', action: { kind: 'link-to-device', to: '/' } }
    if (kind !== 'unauthorized') return { message: 'busy', action }
    if (classified.ownEndpoint !== undefined) return { message: reasonIn(exchange), action }
    if (!isRead(head.method)) return { message: 'unsent', action }
    return { message: sessions.stateOf(head.fields) === 'ended' ? 'ended' : undefined, action }
  }

  return {
    login,
    logout,
    /**
     * The login page, with the status and the fields of `response`, for a browser that opens a page and is refused. Undefined if a login
     * would not help.
     */
    pageFor(exchange: Exchange, refusal: Refusal, response: LocalResponse): LocalResponse | undefined {
      const { head, classified } = exchange
      const { kind } = refusal
      const helps =
        kind === 'unauthorized' ||
        kind === 'cross-origin' ||
        (classified.ownEndpoint === 'login' && kind !== 'address-denied')
      if (!helps || showsToken(head)) return undefined
      const { status } = response
      const others = fieldsBesideBody(response)
      const { message, action } = offered(exchange, refusal)
      const shown = page(exchange, message, action)
      if (kind !== 'unauthorized' || shown.action === undefined || sessions.stateOf(head.fields) !== 'ended')
        return pageResponse(status, shown, others)
      const again = classified.ownEndpoint === undefined && shown.action.kind === 'form'
      const next = again ? leadingTo(`${loginPath(askedFor(exchange))}&why=${message}`) : ''
      return pageResponse(status, shown, [...others, ...CLEARED_CACHE], next)
    },
  }
}

/** Why the page at `/oauth/login` is shown: the page that led there has written it into the query. */
function reasonIn({ classified: { target } }: Exchange): LoginMessage | undefined {
  const why = new URLSearchParams(queryOf(target)).get('why')
  return why === 'ended' || why === 'unsent' ? why : undefined
}

/** A path with exactly one slash before its first name: browsers read `//` and `/\` as the beginning of a host. */
const PATH = /^\/(?![/\\])[!-~]*$/

/**
 * The path for the browser after the login:
 *
 * - the path of the request, or for the login page the one in its query;
 * - for a request that is not a read, the page that sent it, because its input is lost;
 * - for a request of another origin, the first page: firmware changes its state by GET, and after the login the request would be one of
 *   this origin (CSRF).
 */
function askedFor(exchange: Exchange): string {
  const { head, classified } = exchange
  if (!isOfThisOrigin(exchange, { typed: true, silent: true })) return '/'
  if (classified.ownEndpoint !== undefined) return mayLeadTo(toIn(classified.target))
  return mayLeadTo(isRead(head.method) ? classified.target : pageBehind(exchange))
}

/** The path, or the first page if the browser must not be led to that path. */
function mayLeadTo(path = '/'): string {
  return PATH.test(path) && !/^\/oauth\/log(?:in|out)(?:\?|$)/.test(path) ? path : '/'
}

/** The path in the query of the login page. */
function toIn(target: string): string | undefined {
  return new URLSearchParams(queryOf(target)).get('to') ?? undefined
}

function queryOf(target: string): string {
  return target.replace(/^[^?]*/, '')
}

/** Whether the password is safe on its way: over TLS, here or at a trusted proxy, or within this machine. */
function isConfidential(exchange: Exchange): boolean {
  const { address } = exchange.client
  return publicOrigin(exchange)?.startsWith('https:') === true || address === 'unix' || isLoopback(address)
}
