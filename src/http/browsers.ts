import type { Classified } from './admission.ts'
import type { RequestHead } from './exchange.ts'
import { type Fields, fieldValues, withoutBlanks } from './fields.ts'
import { isHost } from './ip.ts'
import { type Reported, reported } from './reported.ts'
import { percentDecoded } from './request-path.ts'

/**
 * The cookie of a browser's session. `__Host-`: browsers accept it only over TLS, for this host alone, and from no other host of the
 * domain.
 */
export const SESSION_COOKIE = '__Host-postern'

/** The name of a pair. `trim` also removes bytes that are no blanks, such as 0xA0: firmware that does the same would read that name. */
function nameOf(pair: string): string {
  return pair.split('=', 1)[0]?.trim() ?? ''
}

function pairsIn(fields: readonly string[]): string[] {
  return fields
    .flatMap((value) => value.split(';'))
    .map(withoutBlanks)
    .filter((pair) => pair !== '')
}

/**
 * The value of the session cookie; undefined if there is none, or if there are several cookies of that name: a browser has one, and another
 * is an attempt to choose the session (cookie tossing). Other cookies may contain the name: anyone in the domain can set them.
 */
export function sessionCookieIn(fields: Fields): string | undefined {
  const cookies = fieldValues(fields, 'cookie').filter((value) => value.includes(SESSION_COOKIE))
  const [pair, another] = pairsIn(cookies).filter((each) => each.startsWith(`${SESSION_COOKIE}=`))
  return another === undefined ? pair?.slice(SESSION_COOKIE.length + 1) : undefined
}

/** The cookies of Postern: those of browsers, and those of the live page (`admin/page-sessions.ts`), because cookies ignore ports. */
const OWN_NAME = /^(?:__Host-postern|postern-[0-9a-f]{12})$/

/** A `Cookie` field without sessions of Postern, with which the device could act as their owner. Undefined if none is left. */
export function withoutOwnCookies(cookies: string): string | undefined {
  if (!cookies.includes('postern')) return cookies
  const pairs = cookies.split(';')
  const kept = pairs.filter((pair) => !OWN_NAME.test(nameOf(pair)))
  if (kept.length === pairs.length) return cookies
  const rest = withoutBlanks(kept.join(';'))
  return rest === '' ? undefined : rest
}

/** Some browsers take `=name=x` for a cookie without a name, and send its value as it is. */
const SETS_SESSION = /^[\s=]*__Host-postern\s*(?:=|;|$)/i

/** Whether a `Set-Cookie` of the device sets a cookie that would come back as the session of a browser: the device may not choose it. */
export function setsSessionCookie(value: string): boolean {
  return SETS_SESSION.test(value)
}

/**
 * The session at the device, then the client's own cookies, unchanged, without those of the same names. A client can neither choose the
 * session nor hide it behind a quotation mark that it does not close.
 */
export function mergeCookies(client: readonly string[], session: string): string {
  const names = new Set(session.split(';').map((pair) => looseCookieName(nameOf(pair))))
  return [session, ...pairsIn(client).filter((pair) => !mayName(pair, names))].join('; ')
}

/** A `Cookie` field without the cookies of these names, which `looseCookieName` gave. Undefined if none is left. */
export function withoutCookies(cookies: string, names: ReadonlySet<string>): string | undefined {
  const pairs = cookies.split(';')
  const kept = pairs.filter((pair) => !mayName(pair, names))
  if (kept.length === pairs.length) return cookies
  const rest = withoutBlanks(kept.join(';'))
  return rest === '' ? undefined : rest
}

/**
 * The name of a cookie as the most lenient firmware reads it: in any letter case, percent-encoded, in quotes, and with `.`, `[` or a
 * blank in place of `_`, as PHP does. For PHP, `sid[]` and `sid[a]` are `sid`, too. PHP until 2020 (CVE-2020-7070) takes `+` for a
 * blank, and ends a name at a NUL, as programs in C do.
 */
export function looseCookieName(name: string): string {
  const [decoded = ''] = percentDecoded(name.replaceAll('+', ' ')).split('\0', 1)
  const plain = decoded.replace(/["']/g, '').trim().toLowerCase()
  const bracket = plain.indexOf('[', 1)
  const isArray = bracket > 0 && plain.indexOf(']', bracket) > 0
  return (isArray ? plain.slice(0, bracket) : plain).replace(/[.[\s]/g, '_')
}

/**
 * Whether a pair sets one of these names for some program: many also begin a pair behind a comma (RFC 2965 §3.3.4) or a blank. Python's
 * `http.cookies` reads `secure sid=1` as an attribute and a cookie.
 */
function mayName(pair: string, names: ReadonlySet<string>): boolean {
  if (names.has(looseCookieName(nameOf(pair)))) return true
  return pair
    .split('=')
    .slice(0, -1)
    .some((text) => names.has(looseCookieName(text.trimEnd().split(/[,\s]/).at(-1) ?? '')))
}

/** Whether a request shows a bearer token, as programs do and browsers do not. */
export function showsToken({ survey: { authorization } }: Pick<RequestHead, 'survey'>): boolean {
  return authorization.some((value) => /^bearer\b/i.test(value))
}

/**
 * Whether a browser shows the response to a request as a page. `Sec-Fetch-Mode` says so (Fetch Metadata §2.2); browsers send it over TLS
 * and to loopback. Without it, `Accept` says so if it prefers HTML, unless the request shows a token: Java's `HttpURLConnection` prefers
 * HTML by default.
 */
export function isNavigation(head: Pick<RequestHead, 'fields' | 'survey' | 'upgrade'>): boolean {
  if (!head.survey.mayNavigate || head.upgrade) return false
  const [mode, another] = fieldValues(head.fields, 'sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate' && another === undefined
  return !showsToken(head) && prefersHtml(fieldValues(head.fields, 'accept'))
}

/** So much of `Accept` is read (bytes). That of a browser has about 150. */
const LONGEST_ACCEPT = 1024

/** The ranges that decide how welcome JSON is, the most specific first (RFC 9110 §12.5.1). */
const OF_JSON = ['application/json', 'application/*', '*/*']

/**
 * Whether `Accept` names HTML and prefers it to JSON. If both have the same weight, HTML must be named and JSON not: Internet Explorer asks
 * for `text/html` and for anything else alike.
 */
export function prefersHtml(accepted: readonly string[]): boolean {
  const weights = new Map<string, number>()
  for (const member of accepted.join(',').slice(0, LONGEST_ACCEPT).toLowerCase().split(',')) {
    const [range = '', ...parameters] = member.split(';').map(withoutBlanks)
    // A range with a parameter of its own, such as `text/html;level=1`, is about a variant. Only its weight counts here.
    const weight = parameters.find((each) => each.startsWith('q='))?.slice(2) ?? '1'
    if (WEIGHT.test(weight) && !weights.has(range)) weights.set(range, Number(weight))
  }
  const html = weights.get('text/html') ?? 0
  const nearest = OF_JSON.find((range) => weights.has(range)) ?? ''
  const json = weights.get(nearest) ?? 0
  return html > json || (html > 0 && html === json && nearest !== OF_JSON[0])
}

/** RFC 9110 §12.4.2; Java writes `.2`. */
const WEIGHT = /^(?:0?\.\d+|0|1(?:\.0*)?|0\.)$/

/** The parts of a request that say by which name the client reached Postern. */
export interface Addressed extends Reported {
  readonly head: Pick<RequestHead, 'fields' | 'secure'>
  readonly classified: Pick<Classified, 'host'>
}

/**
 * Host and port that the client used. A trusted proxy in front names them, or passes on what the client wrote: what is no host is left aside.
 * Otherwise they are those of this request.
 */
export function publicHost(request: Addressed): string {
  const named = reported(request, 'x-forwarded-host')
  return named !== undefined && isHost(named) ? named : request.classified.host
}

/** The origin that the client used. */
export function publicOrigin(request: Addressed): string | undefined {
  const host = publicHost(request)
  return host === '' ? undefined : `${publicScheme(request)}://${host}`
}

/** The scheme that the client used. A trusted proxy in front names it; what is no scheme of HTTP is left aside. */
export function publicScheme(request: Pick<Addressed, 'head' | 'client'>): 'http' | 'https' {
  const named = reported(request, 'x-forwarded-proto')?.toLowerCase() ?? ''
  return SCHEMES.get(named) ?? (request.head.secure ? 'https' : 'http')
}

/** What a value of `X-Forwarded-Proto` means. Traefik writes the schemes of WebSockets for these. */
const SCHEMES: ReadonlyMap<string, 'http' | 'https'> = new Map([
  ['https', 'https'],
  ['wss', 'https'],
  ['http', 'http'],
  ['ws', 'http'],
])

/** Requests that no page of this address sent, and that pass all the same. */
interface OtherSenders {
  /** The user caused the request: an address that was typed, a bookmark. */
  readonly typed: boolean
  /** The request does not say who caused it, such as one of a program. */
  readonly silent: boolean
}

/** The values of a field, by its name in lower case. */
type ValuesOf = (name: string) => readonly string[]

/**
 * Fields by which browsers mark a request that they send before the user asks for the page: `Sec-Purpose` (Fetch §3.8), and those of
 * older browsers. Speculation rules of any page of the site cause such requests, with the cookie and `Sec-Fetch-Site: none`. A request ahead
 * from the address bar looks the same, so it is refused, too; the browser repeats it when the user opens the page.
 */
const AHEAD = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

/**
 * Whether a page of this address sent the request, or one of the `others` did. Browsers send `Sec-Fetch-Site`, for which they compare scheme,
 * host and port, over TLS and to loopback; they send `Origin` with every POST and WebSocket. Two requests have `none` though no user typed
 * their address: one that the browser sends ahead, and one for a page of another origin, with its `Origin` (background fetch of Chromium).
 *
 * @param address host and port of this listener, behind `https://` if the client is known to use TLS; rarely needed
 */
export function isFromHere(valuesOf: ValuesOf, address: () => string, others: OtherSenders): boolean {
  const site = single(valuesOf('sec-fetch-site'))
  if (site === 'same-origin') return true
  const isAhead = (): boolean => AHEAD.some((name) => valuesOf(name).length > 0)
  const isTyped = site === 'none' && others.typed && !isAhead()
  if (site !== undefined && !isTyped) return false
  const origin = single(valuesOf('origin'))
  if (origin !== undefined) return isSameHost(origin, address())
  return isTyped || (others.silent && !isAhead())
}

/** The same for a request to the public listener. */
export function isOfThisOrigin(exchange: Addressed, others: OtherSenders): boolean {
  const { fields } = exchange.head
  return isFromHere(
    (name) => fieldValues(fields, name),
    () => publicOrigin(exchange) ?? '',
    others,
  )
}

/** The path and query of the page that sent a request, if it is a page of this address and `Referer` names it. */
export function pageBehind(exchange: Addressed): string | undefined {
  const referer = single(fieldValues(exchange.head.fields, 'referer')) ?? ''
  const page = isSameHost(referer, publicOrigin(exchange) ?? '') ? URL.parse(referer) : null
  return page === null ? undefined : page.pathname + page.search
}

/** The value of a field; the empty text if it is repeated, which equals nothing that is looked for. */
function single(values: readonly string[]): string | undefined {
  return values.length > 1 ? '' : values[0]
}

/**
 * Without TLS here, the scheme is not compared, because a proxy in front may terminate it. `null`, which sandboxed frames and some
 * redirects send, is no URL, so it equals no host.
 */
function isSameHost(origin: string, address: string): boolean {
  const from = URL.parse(origin)
  const [, scheme = '', host = ''] = /^(?:(https?:)\/\/)?(.*)$/s.exec(address) ?? []
  if (from === null || !/^https?:$/.test(from.protocol) || from.host === '' || /[/?#@\\\s]/.test(host))
    return false
  // A page that came over cleartext may be an attacker's on the way (RFC 6454 §3.2).
  if (scheme === 'https:' && from.protocol !== scheme) return false
  // The scheme decides which port may be left out.
  return URL.parse(`${from.protocol}//${host}`)?.host === from.host
}
