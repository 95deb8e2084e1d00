import { publicOrigin } from '../http/browsers.ts'
import type { Exchange } from '../http/exchange.ts'
import { fieldValues } from '../http/fields.ts'
import { isLoopback } from '../http/ip.ts'
import type { Refusal, Reply } from '../http/refusal.ts'
import { type FormSettings, readForm } from './form-request.ts'
import { escaped, type LoginPage, type Message, pageReply } from './login-page.ts'
import { CLEARED_COOKIE, type Sessions } from './sessions.ts'
import type { GrantType, OwnEndpointHandler } from './token-endpoint.ts'

type LoginSettings = FormSettings & {
  readonly config: { readonly realm: string; readonly statusCodes: 'contract' | 'http' }
}

export type BrowserLogin = ReturnType<typeof createBrowserLogin>

/**
 * The login of browsers: the two endpoints, and the login page as the body of a refusal. A login is a password grant: its tokens stay
 * here, and the browser gets a session. Login and logout show a page for GET, and take the POST of that page only, which the gate checks.
 */
export function createBrowserLogin(grant: GrantType, sessions: Sessions, settings: LoginSettings) {
  function page(exchange: Exchange, to: string, message?: Message): LoginPage {
    const { realm } = settings.config
    const confidential = isConfidential(exchange)
    return {
      realm,
      languages: fieldValues(exchange.head.fields, 'accept-language')[0],
      message: confidential ? message : 'cleartext',
      form: confidential ? { kind: 'login', action: `/oauth/login?to=${encodeURIComponent(to)}` } : undefined,
    }
  }

  /** Sends the browser to a path of the device. The documented API has no redirect, so with `status_codes: contract` a page does it. */
  function leadTo(to: string, cookie: string): Reply {
    const fields = ['Set-Cookie', cookie]
    if (settings.config.statusCodes === 'http') {
      return { status: 303, fields: ['Location', to, 'Cache-Control', 'no-store', ...fields], body: '' }
    }
    const { realm } = settings.config
    const blank: LoginPage = { realm, languages: undefined, message: undefined, form: undefined }
    return pageReply(200, blank, fields, `\n<meta http-equiv="refresh" content="0; url=${escaped(to)}">`)
  }

  const login: OwnEndpointHandler = async (exchange) => {
    if (exchange.head.method !== 'POST') return { kind: 'unauthorized', cause: 'missing' }
    if (!isConfidential(exchange)) return { kind: 'invalid-request', description: 'The login needs TLS.' }
    const form = await readForm(exchange, settings)
    if ('kind' in form) return form
    const issued = await grant.exchange(form, exchange)
    if ('kind' in issued) return issued
    // The new cookie replaces that of an earlier session, which would otherwise live on.
    await sessions.end(exchange.head.fields)
    return { reply: leadTo(askedFor(exchange), sessions.begin(issued)), grant: issued.grant }
  }

  const logout: OwnEndpointHandler = async (exchange) => {
    if (exchange.head.method === 'POST') {
      const ended = await sessions.end(exchange.head.fields)
      return ended === 'unavailable' ? { kind: 'store-unavailable' } : { reply: leadTo('/', CLEARED_COOKIE) }
    }
    const form = { kind: 'logout', action: '/oauth/logout' } as const
    return { reply: pageReply(200, { ...page(exchange, '/'), form }) }
  }

  return {
    login,
    logout,
    /** The reply to a refused request: to a browser that opens a page the login page, with the status and the fields of `reply`. */
    withPage(exchange: Exchange, refusal: Refusal, reply: Reply): Reply {
      const { kind } = refusal
      const helps =
        kind === 'unauthorized' ||
        kind === 'cross-origin' ||
        (exchange.classified.ownEndpoint === 'login' && kind !== 'address-denied')
      const showsToken = exchange.head.survey.authorization.some((value) => /^bearer\b/i.test(value))
      if (!helps || showsToken || !opensPage(exchange)) return reply
      const { fields, status } = reply
      const others = fields.filter((_, i) => !ABOUT_BODY.test(fields[i - (i % 2)] ?? ''))
      return pageReply(status, page(exchange, askedFor(exchange), messageOf(refusal)), others)
    },
  }
}

/** Fields that the page has itself. */
const ABOUT_BODY = /^(?:content-(?:type|length)|cache-control|pragma)$/i

function messageOf({ kind }: Refusal): Message | undefined {
  if (kind === 'unauthorized') return undefined
  if (kind === 'invalid-grant') return 'wrong'
  if (kind === 'cross-origin') return 'foreign'
  return kind === 'rate-limited' || kind === 'wrong-passwords' ? 'wait' : 'busy'
}

/** Whether a browser shows the response as a page. `Sec-Fetch-Mode` says so; browsers send it over TLS and to loopback. */
function opensPage({ head: { fields, upgrade } }: Exchange): boolean {
  const [mode] = fieldValues(fields, 'sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return !upgrade && fieldValues(fields, 'accept').some((types) => /\btext\/html\b/i.test(types))
}

/** A path with exactly one slash before its first name: browsers read `//` and `/\` as the beginning of a host. */
const PATH = /^\/(?![/\\])[!-~]*$/

/**
 * The path for the browser after the login: that of the request, or for the login page the one in its query. A link of another origin leads
 * to the first page instead: firmware changes its state by GET, and after the login the request would be one of this origin.
 */
function askedFor({ head, classified: { ownEndpoint, target } }: Exchange): string {
  if (fieldValues(head.fields, 'sec-fetch-site').some((site) => /^(?!same-origin$|none$)/.test(site)))
    return '/'
  const query = target.slice(target.indexOf('?') + 1)
  const to = ownEndpoint === undefined ? target : (new URLSearchParams(query).get('to') ?? '/')
  return PATH.test(to) && !/^\/oauth\/log(?:in|out)(?:\?|$)/.test(to) ? to : '/'
}

/** Whether the password is safe on its way: over TLS, here or at a trusted proxy, or within this machine. */
function isConfidential(exchange: Exchange): boolean {
  const { address } = exchange.client
  return publicOrigin(exchange)?.startsWith('https:') === true || address === 'unix' || isLoopback(address)
}
