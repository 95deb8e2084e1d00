import type { ResponseChanges } from '../config/response-header-field.ts'
import type { Classified, Client } from '../http/admission.ts'
import {
  mergeCookies,
  publicHost,
  publicScheme,
  withoutCookies,
  withoutOwnCookies,
} from '../http/browsers.ts'
import type { Forward, RequestHead } from '../http/exchange.ts'
import {
  asCgi,
  type Fields,
  fieldNamesIn,
  fieldValues,
  isHopByHop,
  keepFields,
  PSEUDONYM,
} from '../http/fields.ts'
import { normalizeAddress } from '../http/ip.ts'
import { isOverride } from '../http/overrides.ts'
import { reported } from '../http/reported.ts'
import { writeRequestLines } from '../http1/request-writer.ts'
import type { SessionNames } from '../sign-in/session-cookies.ts'
import type { ForwardExchange } from './forward-exchange.ts'
import { deviceTags, deviceUrl } from './origins.ts'

/** How header fields change on the way to a service and back, as the configuration says. */
export interface RequestFieldSettings {
  /** The `Host` to send; undefined for the client's own. */
  readonly host: string | undefined
  readonly added: Fields
  /** The fields in which the device gets the name of the login. They replace the client's, even if the login has no name. */
  readonly named: readonly string[]
  /** The names of `added` and `named`, as `asCgi` gives them. */
  readonly set: ReadonlySet<string>
  /** Whether a field is sent, the sidecar's own among them, by its name in lower case; undefined if all are. `added` is always sent. */
  readonly keeps: ((name: string) => boolean) | undefined
  /** Whether the fields pass in which a trusted proxy describes its own peer. Such fields of other peers never pass. */
  readonly claims: boolean
  readonly response: ResponseChanges
  /** The scheme of the device. With the `Host` that the device gets, it replaces Postern's origin in fields of the request. */
  readonly scheme: 'http' | 'https'
  /** Whether Postern's origin is replaced in `Origin` and `Referer`, too, and not only in `Destination` and `If`. */
  readonly referrers: boolean
  /** The further names of the device. */
  readonly names: readonly string[]
  readonly rewrite: boolean
}

/** The part of a request that decides about its header for the device. */
interface Described extends Pick<Forward, 'requestId' | 'scope' | 'confined'> {
  readonly head: Pick<RequestHead, 'version' | 'secure' | 'fields' | 'survey' | 'peer' | 'localPort'>
  readonly client: Pick<Client, 'address' | 'peerTrusted' | 'hops'>
  readonly classified: Pick<Classified, 'host'>
}

/** Whether the sidecar writes the field itself. `Authorization` is the gate's: the device must not see the client's token. */
function isReplaced(lowerName: string): boolean {
  switch (lowerName) {
    case 'authorization':
    case 'host':
    case 'content-length':
    case 'via':
    case 'x-request-id':
    case 'x-forwarded-for':
    case 'x-forwarded-proto':
    case 'x-forwarded-host':
    case 'x-forwarded-port':
      return true
    default:
      return false
  }
}

/** Whether a proxy describes its own peer in the field. Such fields are forwarded only from a trusted proxy. */
function isForwardingField(name: string): boolean {
  return name === 'forwarded' || name === 'x-real-ip' || name.startsWith('x-forwarded-')
}

/**
 * The header of the forwarded request (C22). First the client's fields, without those of its connection, its credentials, and those that
 * only a trusted proxy may set. Then this proxy's own.
 */
export function requestFields(
  request: Described,
  framing: Classified['framing'],
  settings: RequestFieldSettings,
): string[] {
  const { host, added, named, set, keeps, claims } = settings
  const { head, client, scope, confined } = request
  const passesClaims = client.peerTrusted && claims
  const options = head.survey.connection
  const target = host ?? request.classified.host
  const fields: string[] = target === '' ? [] : ['Host', target]
  let hasCookie = false
  for (let i = 0; i + 1 < head.fields.length; i += 2) {
    const name = head.fields[i] ?? ''
    const lower = name.toLowerCase()
    if (isReplaced(lower) || isHopByHop(lower) || options.includes(lower)) continue
    if (set.size > 0 && set.has(asCgi(lower))) continue
    if (confined && isOverride(lower)) continue
    if (!passesClaims && isForwardingField(lower)) continue
    // An HTTP/2 client may split its cookies over several fields. HTTP/1 needs one field (RFC 9113 §8.2.3).
    const isSplit = lower === 'cookie' && head.version === '2'
    if (isSplit && hasCookie) continue
    if (isSplit) hasCookie = true
    let value: string | undefined = isSplit
      ? fieldValues(head.fields, lower).join('; ')
      : (head.fields[i + 1] ?? '')
    if (lower === 'cookie') value = withoutOwnCookies(value)
    else if (target !== '') value = naming(lower, value, request, target, settings)
    if (value !== undefined) fields.push(head.version === '2' ? canonicalName(name) : name, value)
  }
  if (typeof framing === 'number') fields.push('Content-Length', String(framing))
  pushForwarding(fields, request)
  const kept = keeps === undefined ? fields : keepFields(fields, keeps)
  kept.push(...added)
  if (scope !== undefined) for (const name of named) kept.push(name, scope.name)
  return kept
}

/**
 * The value of a field for the device, with the device's origin in place of Postern's. WebDAV servers compare the host of a URL with
 * `Host`, and its scheme with their own.
 *
 * @param host the `Host` that the device gets
 */
function naming(
  lower: string,
  value: string,
  request: Described,
  host: string,
  { scheme, referrers }: RequestFieldSettings,
): string {
  switch (lower) {
    case 'origin':
    case 'referer':
      return referrers ? deviceUrl(value, request, `${scheme}://${host}`, 'same') : value
    case 'destination':
      return deviceUrl(value, request, `${scheme}://${host}`, 'either')
    case 'if':
      return deviceTags(value, request, `${scheme}://${host}`)
    default:
      return value
  }
}

const ID_FIELD = 'X-Request-Id'

/**
 * The head of the forwarded request as text, for a request without a body. The same head on the same connection gives the same text except
 * for the request id, so the text is kept with the head. Undefined if the text cannot be written: the caller sends the fields.
 */
export function requestLines(exchange: ForwardExchange, settings: RequestFieldSettings): string | undefined {
  const { head, client, requestId, classified, scope, confined } = exchange
  const known = head.outgoing
  const isSame = known?.settings === settings && known.client === client && known.scope === scope
  if (isSame && known.confined === confined) {
    return known.after === '' ? known.before : known.before + requestId + known.after
  }
  if (classified.framing !== null || (settings.host ?? classified.host) === '') return undefined
  const { method } = head
  const { target, framing } = classified
  const fields = requestFields(exchange, framing, settings)
  const lines = writeRequestLines({ method, target, fields, framing }, '')
  if (lines === undefined) return undefined
  const at = lines.indexOf(`\r\n${ID_FIELD}: ${requestId}\r\n`)
  const id = at + `\r\n${ID_FIELD}: `.length
  // If `upstream.headers` leaves the id out, the text is always the same.
  const [before, after] = at < 0 ? [lines, ''] : [lines.slice(0, id), lines.slice(id + requestId.length)]
  head.outgoing = { settings, client, scope, confined, before, after }
  return lines
}

/** In `Via`, each proxy on the way appends its name, with the HTTP version that it received (RFC 9110 §7.6.3). */
function pushForwarding(fields: string[], request: Described): void {
  const { head, client, requestId } = request
  const before = client.peerTrusted ? head.survey.forwardedFor : NONE
  const peer = client.peerTrusted ? (normalizeAddress(head.peer) ?? 'unix') : client.address
  const host = publicHost(request)
  const named = reported(request, 'x-forwarded-port') ?? ''
  const port = isPort(named) ? named : String(head.localPort)
  fields.push('X-Forwarded-For', [...before, peer].join(', '), 'X-Forwarded-Proto', publicScheme(request))
  if (host !== '') fields.push('X-Forwarded-Host', host)
  if (port !== '0') fields.push('X-Forwarded-Port', port)
  fields.push('Via', [...head.survey.via, `${head.version} ${PSEUDONYM}`].join(', '))
  fields.push(ID_FIELD, requestId)
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) <= 65_535
}

const NONE: readonly string[] = []

/**
 * A request header without the cookies and fields that carry the sidecar's session at the device. A client must not choose a session there,
 * so they are removed even from a request to which the sidecar adds none.
 */
export function withoutClientSession(fields: Fields, { cookies, headers }: SessionNames): Fields {
  if (cookies.size === 0 && headers.size === 0) return fields
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    const folded = asCgi(name)
    if (headers.has(folded)) continue
    const rest = folded === 'cookie' ? withoutCookies(value, cookies) : value
    if (rest !== undefined) kept.push(name, rest)
  }
  return kept
}

/** Adds the sidecar's credentials to a request header. They replace `Authorization`, and precede the client's cookies. */
export function withCredentials(fields: Fields, own: Fields): string[] {
  if (own.length === 0) return [...fields]
  const session = fieldValues(own, 'cookie').join('; ')
  const replaced = new Set(fieldNamesIn(own).values().map(asCgi))
  const merged = session === '' ? [] : ['Cookie', mergeCookies(fieldValues(fields, 'cookie'), session)]
  return [
    ...keepFields(fields, (name) => !replaced.has(asCgi(name))),
    ...keepFields(own, (name) => name !== 'cookie'),
    ...merged,
  ]
}

/** Names with other letter case than one capital per word, as the IANA registry of field names or their own specification writes them. */
const EXCEPTIONS = `A-IM ALPN AMP-Cache-Transform C-PEP C-PEP-Info CDN-Loop CMCD-Object CMCD-Request CMCD-Session CMCD-Status
  CTA-Common-Access-Token Cal-Managed-ID CalDAV-Timezones Content-ID Content-MD5 DASL DAV DNT DPR DPoP Dictionary-ID
  Differential-ID ECT EDIINT-Features ETag GetProfile IM Include-Referred-Token-Binding-ID Last-Event-ID MIME-Version
  OData-EntityId OData-Isolation OData-MaxVersion OData-Version OSCORE OSLC-Core-Version P3P PEP PICS-Label ProfileObject RTT
  Repeatability-Client-ID Repeatability-Request-ID SLUG SOAPAction Sec-CH-DPR Sec-CH-Device-Memory Sec-CH-Prefers-Color-Scheme
  Sec-CH-Prefers-Reduced-Motion Sec-CH-UA Sec-CH-UA-Arch Sec-CH-UA-Bitness Sec-CH-UA-Form-Factors Sec-CH-UA-Full-Version
  Sec-CH-UA-Full-Version-List Sec-CH-UA-Mobile Sec-CH-UA-Model Sec-CH-UA-Platform Sec-CH-UA-Platform-Version Sec-CH-UA-WoW64
  Sec-CH-Viewport-Height Sec-CH-Viewport-Width Sec-CH-Width Sec-GPC SetProfile Status-URI TCN TTL URI WWW-Authenticate
  X-CSRF-Token X-DNS-Prefetch-Control X-UA-Compatible X-XSS-Protection`

/** By the name in lower case. Names that clients send are added: at most `MOST_NAMES` in all, none longer than `LONGEST_NAME`. */
const names = new Map(EXCEPTIONS.split(/\s+/).map((name) => [name.toLowerCase(), name]))
const MOST_NAMES = 1000
const LONGEST_NAME = 64

/**
 * The name of a field in the letter case in which HTTP/1 programs write it: HTTP/2 has lower case only (RFC 9113 §8.2.1), and old
 * firmware compares names byte by byte.
 *
 * @param lower in lower case
 */
function canonicalName(lower: string): string {
  const known = names.get(lower)
  if (known !== undefined) return known
  const name = lower.replace(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase())
  if (lower.length <= LONGEST_NAME && names.size < MOST_NAMES) names.set(lower, name)
  return name
}
