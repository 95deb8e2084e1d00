import type { Classified } from './admission.ts'
import type { RequestHead } from './exchange.ts'
import { type Fields, fieldValues, withoutBlanks } from './fields.ts'
import { isHost } from './ip.ts'
import { type Reported, reported } from './reported.ts'
import { percentDecoded } from './request-path.ts'

/** A cookie with the id of a session. */
export interface SessionCookie {
  readonly name: string
  readonly secure: boolean
  /** How long the browser keeps it (s); undefined: until it is closed. */
  readonly maxAge?: number
  /** If a request has several of these cookies: none of them counts, or each is tried until one has a session. */
  readonly several: 'none-counts' | 'each-is-tried'
}

/**
 * The cookie of a browser's session at the device. By the prefix `__Host-`, browsers accept it only over TLS and only from this host, and
 * send it to no other host of the domain. A browser sends one: a second one is an attempt to choose the session (cookie tossing).
 */
export const DEVICE_LOGIN_COOKIE: SessionCookie = {
  name: '__Host-postern',
  secure: true,
  several: 'none-counts',
}

/** The value of `Set-Cookie` for a session. An empty id, with a `maxAge` of 0, removes the cookie. */
export function setCookie({ name, secure, maxAge }: SessionCookie, id: string): string {
  const lasting = maxAge === undefined ? '' : `; Max-Age=${maxAge}`
  return `${name}=${id}; Path=/; ${secure ? 'Secure; ' : ''}HttpOnly; SameSite=Strict${lasting}`
}

/** The name of a cookie pair. `trim` also removes bytes that are no blanks in HTTP, such as 0xA0, because firmware may do the same. */
function cookieName(pair: string): string {
  return pair.split('=', 1)[0]?.trim() ?? ''
}

function pairsIn(fields: readonly string[]): string[] {
  return fields
    .flatMap((value) => value.split(';'))
    .map(withoutBlanks)
    .filter((pair) => pair !== '')
}

/** The ids in the session cookies of a request. Other cookies may contain the name, because every host of the domain can set them. */
export function sessionIdsIn(fields: Fields, { name, several }: SessionCookie): readonly string[] {
  const cookies = fieldValues(fields, 'cookie').filter((value) => value.includes(name))
  const own = pairsIn(cookies).filter((pair) => pair.startsWith(`${name}=`))
  return own.length > 1 && several === 'none-counts' ? [] : own.map((pair) => pair.slice(name.length + 1))
}

/** The name of the cookie of a session at the live page, before 12 hexadecimal digits. */
export const VIEWER_COOKIE = 'postern-'

/** Postern's session cookies. Those of the live page may come to the public listener, because cookies ignore ports. */
const OWN_NAME = new RegExp(`^(?:${DEVICE_LOGIN_COOKIE.name}|${VIEWER_COOKIE}[0-9a-f]{12})$`)

/** A `Cookie` field without Postern's session cookies: with them the device could act as the user. Undefined if no cookie is left. */
export function withoutOwnCookies(cookies: string): string | undefined {
  if (!cookies.includes('postern')) return cookies
  const pairs = cookies.split(';')
  const kept = pairs.filter((pair) => !OWN_NAME.test(cookieName(pair)))
  if (kept.length === pairs.length) return cookies
  const rest = withoutBlanks(kept.join(';'))
  return rest === '' ? undefined : rest
}

/** Some browsers take `=name=x` for a cookie without a name, and send back `name=x`. */
const SETS_SESSION = new RegExp(String.raw`^[\s=]*${DEVICE_LOGIN_COOKIE.name}\s*(?:=|;|$)`, 'i')

/** Whether a `Set-Cookie` of the device sets a cookie that would come back as the session cookie. The device must not choose a session. */
export function setsSessionCookie(value: string): boolean {
  return SETS_SESSION.test(value)
}

/**
 * The `Cookie` field for the device: the cookies of the sidecar's session there, then the client's cookies, unchanged, without those of the
 * same names. So a client cannot choose the session. It cannot hide it behind an unclosed quotation mark either, because the session comes
 * first.
 */
export function mergeCookies(client: readonly string[], session: string): string {
  const names = new Set(session.split(';').map((pair) => looseCookieName(cookieName(pair))))
  return [session, ...pairsIn(client).filter((pair) => !mayName(pair, names))].join('; ')
}

/** A `Cookie` field without the cookies of these names. `names` are results of `looseCookieName`. Undefined if no cookie is left. */
export function withoutCookies(cookies: string, names: ReadonlySet<string>): string | undefined {
  const pairs = cookies.split(';')
  const kept = pairs.filter((pair) => !mayName(pair, names))
  if (kept.length === pairs.length) return cookies
  const rest = withoutBlanks(kept.join(';'))
  return rest === '' ? undefined : rest
}

/**
 * The name of a cookie as the most lenient firmware reads it. Such firmware ignores letter case, decodes percent-encoding and removes
 * quotes. PHP replaces `.`, `[` and blanks by `_`, and takes `sid[]` and `sid[a]` for `sid`. PHP until 2020 (CVE-2020-7070) also decodes
 * `+` to a blank. Programs in C, and PHP, end a name at a NUL.
 */
export function looseCookieName(name: string): string {
  const [decoded = ''] = percentDecoded(name.replaceAll('+', ' ')).split('\0', 1)
  const plain = decoded.replace(/["']/g, '').trim().toLowerCase()
  const bracket = plain.indexOf('[', 1)
  const isArray = bracket > 0 && plain.indexOf(']', bracket) > 0
  return (isArray ? plain.slice(0, bracket) : plain).replace(/[.[\s]/g, '_')
}

/**
 * Whether some program reads one of these names in a pair. Many programs also begin a new pair after a comma (RFC 2965 §3.3.4) or a blank:
 * Python's `http.cookies` reads `secure sid=1` as an attribute and a cookie.
 */
function mayName(pair: string, names: ReadonlySet<string>): boolean {
  if (names.has(looseCookieName(cookieName(pair)))) return true
  return pair
    .split('=')
    .slice(0, -1)
    .some((text) => names.has(looseCookieName(text.trimEnd().split(/[,\s]/).at(-1) ?? '')))
}

/** Whether a request has a bearer token in `Authorization`. Programs send one, browsers do not. */
export function showsToken({ survey: { authorization } }: Pick<RequestHead, 'survey'>): boolean {
  return authorization.some((value) => /^bearer\b/i.test(value))
}

/**
 * Whether a browser will show the response as a page. `Sec-Fetch-Mode` decides (Fetch Metadata §2.2); browsers send it over TLS and to
 * loopback. Without that field, a request is a navigation if `Accept` prefers HTML and there is no bearer token: Java's
 * `HttpURLConnection` prefers HTML by default.
 */
export function isNavigation(head: Pick<RequestHead, 'fields' | 'survey' | 'upgrade'>): boolean {
  if (!head.survey.mayNavigate || head.upgrade) return false
  const [mode, another] = fieldValues(head.fields, 'sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate' && another === undefined
  return !showsToken(head) && prefersHtml(fieldValues(head.fields, 'accept'))
}

/** The part of `Accept` that is read (bytes). A browser sends about 150. */
const LONGEST_ACCEPT = 1024

/** The media ranges that match JSON, the most specific first (RFC 9110 §12.5.1). */
const OF_JSON = ['application/json', 'application/*', '*/*']

/**
 * Whether `Accept` names `text/html` with a higher weight than JSON has. At equal weight, JSON must not be named itself: Internet Explorer
 * sends the same weight for `text/html` and for any other type.
 */
export function prefersHtml(accepted: readonly string[]): boolean {
  const weights = new Map<string, number>()
  for (const member of accepted.join(',').slice(0, LONGEST_ACCEPT).toLowerCase().split(',')) {
    const [range = '', ...parameters] = member.split(';').map(withoutBlanks)
    // Other parameters of a range, such as in `text/html;level=1`, are ignored. Only the weight counts here.
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

/** The parts of a request that tell the host and the scheme that the client used. */
export interface Addressed extends Reported {
  readonly head: Pick<RequestHead, 'fields' | 'secure'>
  readonly classified: Pick<Classified, 'host'>
}

/**
 * The host and port that the client used: those in `X-Forwarded-Host` of a trusted proxy, otherwise those of this request. A proxy may pass
 * on any text that the client wrote, so a value that is no host is ignored.
 */
export function publicHost(request: Addressed): string {
  const named = reported(request, 'x-forwarded-host')
  return named !== undefined && isHost(named) ? named : request.classified.host
}

/** The origin that the client used; undefined without a host. */
export function publicOrigin(request: Addressed): string | undefined {
  const host = publicHost(request)
  return host === '' ? undefined : `${publicScheme(request)}://${host}`
}

/** The scheme that the client used: that in `X-Forwarded-Proto` of a trusted proxy if it is one of HTTP, otherwise that of this request. */
export function publicScheme(request: Pick<Addressed, 'head' | 'client'>): 'http' | 'https' {
  const named = reported(request, 'x-forwarded-proto')?.toLowerCase() ?? ''
  return SCHEMES.get(named) ?? (request.head.secure ? 'https' : 'http')
}

/** The scheme by the value of `X-Forwarded-Proto`. For a WebSocket, Traefik writes `wss` or `ws`. */
const SCHEMES: ReadonlyMap<string, 'http' | 'https'> = new Map([
  ['https', 'https'],
  ['wss', 'https'],
  ['http', 'http'],
  ['ws', 'http'],
])

/** The requests from elsewhere that pass. */
interface OtherSenders {
  /** The user caused the request: a typed address, a bookmark. */
  readonly typed: boolean
  /** The request does not name its sender: most programs send such requests. */
  readonly silent: boolean
}

/** The values of a field, by its name in lower case. */
type ValuesOf = (name: string) => readonly string[]

/**
 * The fields of a prefetch, which a browser sends before the user asks for the page: `Sec-Purpose` (Fetch §3.8), and those of older
 * browsers. The speculation rules of any page of the site can cause a prefetch with the cookie and `Sec-Fetch-Site: none`. A prefetch
 * from the address bar looks the same, so it is refused, too. The browser repeats the request when the user opens the page.
 */
const AHEAD = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

/**
 * Whether a page of this origin sent the request, or one of the `others` did. Browsers send `Sec-Fetch-Site` over TLS and to loopback, and
 * compare scheme, host and port for it. They send `Origin` with every POST and WebSocket. `Sec-Fetch-Site: none` does not prove that the
 * user typed the address: a prefetch has it, and so has Chromium's background fetch for a page of another origin, but with an `Origin`.
 *
 * @param address host and port of this listener, after `https://` if the client is known to use TLS; called only if `Origin` is needed
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

/** `isFromHere` for a request to the public listener. */
export function isOfThisOrigin(exchange: Addressed, others: OtherSenders): boolean {
  const { fields } = exchange.head
  return isFromHere(
    (name) => fieldValues(fields, name),
    () => publicOrigin(exchange) ?? '',
    others,
  )
}

/** The path and query of the page in `Referer`; undefined if it is not a page of this origin. */
export function pageBehind(exchange: Addressed): string | undefined {
  const referer = single(fieldValues(exchange.head.fields, 'referer')) ?? ''
  const page = isSameHost(referer, publicOrigin(exchange) ?? '') ? URL.parse(referer) : null
  return page === null ? undefined : page.pathname + page.search
}

/** The value of a field; the empty text, which matches no expected value, if the field is repeated. */
function single(values: readonly string[]): string | undefined {
  return values.length > 1 ? '' : values[0]
}

/**
 * Whether an origin has the host and port of `address`. The scheme is compared only if `address` has `https://`: otherwise a proxy in front
 * may terminate TLS. The origin `null` of sandboxed frames and some redirects is no URL, so it never matches.
 */
function isSameHost(origin: string, address: string): boolean {
  const from = URL.parse(origin)
  const [, scheme = '', host = ''] = /^(?:(https?:)\/\/)?(.*)$/s.exec(address) ?? []
  if (from === null || !/^https?:$/.test(from.protocol) || from.host === '' || /[/?#@\\\s]/.test(host))
    return false
  // An attacker on the path can replace a page in cleartext (RFC 6454 §3.2).
  if (scheme === 'https:' && from.protocol !== scheme) return false
  // The scheme decides which port may be left out.
  return URL.parse(`${from.protocol}//${host}`)?.host === from.host
}
