import { isIPv4 } from 'node:net'
import { isIPv6, isLoopback, normalizeAddress, splitAuthority } from '../http/ip.ts'
import { isAmbiguousPath } from '../http/request-path.ts'
import { type ListenAddress, socketLengthProblem } from '../system/listen-address.ts'
import type { Parsed } from './yaml.ts'

export const ADDRESS_FORMS = 'host:port, [IPv6]:port, unix:/path or fd:3'

/**
 * Parses `host:port` (an IPv6 address in brackets), `unix:/path` or `fd:3`.
 *
 * @param every the host that an error message names for every address of the machine
 */
export function parseAddress(text: string, every = '0.0.0.0'): Parsed<ListenAddress> {
  if (text.startsWith('unix:')) return parseUnix(text.slice('unix:'.length))
  if (text.startsWith('fd:')) return parseDescriptor(text.slice('fd:'.length))
  return parseTcp(text, every)
}

/** The port for clients, unless the operator names another one. */
const PUBLIC_PORT = '8443'

/**
 * The address of the public listener while the key is unset: IPv4 only, so that an upgrade opens nothing to IPv6. It is recognised by its
 * identity, because an operator can also write this address.
 */
export const UNSET_ADDRESS: ListenAddress = { kind: 'tcp', host: '0.0.0.0', port: Number(PUBLIC_PORT) }

export const PUBLIC_FORMS = `auto, auto:port, ${ADDRESS_FORMS}`

/** As `parseAddress`, and parses `auto`, with or without a port: every IPv4 and IPv6 address of the machine. */
export function parsePublicAddress(text: string): Parsed<ListenAddress> {
  const [auto, port = PUBLIC_PORT] = /^auto(?::(\d+))?$/.exec(text) ?? []
  if (auto === undefined) return parseAddress(text, 'auto')
  const problem = portProblem(port, 0)
  return problem === undefined
    ? { value: { kind: 'tcp', host: '::', port: Number(port), orIPv4: true } }
    : { problem }
}

/** Whether only users of this machine can reach a listener. False for a descriptor, because its address is unknown. */
export function isLocal(address: ListenAddress): boolean {
  return address.kind === 'unix' || (address.kind === 'tcp' && isLoopback(address.host))
}

/**
 * Control characters, line ends and bidirectional marks. Where a path with them is shown, it could look like other lines (CVE-2021-42574).
 */
export const CONTROLS: RegExp = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

/** Why a text cannot be the path of a file; `undefined` if it can. */
export function filePathProblem(path: string): string | undefined {
  return path.search(CONTROLS) >= 0 ? 'must not contain control characters' : undefined
}

/** Why a path cannot name a Unix socket; `undefined` if it can. */
export function socketPathProblem(path: string): string | undefined {
  if (!path.startsWith('/')) return 'must name the socket by an absolute path, such as /run/postern.sock'
  return filePathProblem(path) ?? socketLengthProblem(path)
}

/**
 * Splits `host` or `host:port`. `valid`: the host is a name or an address, and has brackets exactly if it is an IPv6 address. Undefined if
 * the text has neither form.
 */
export function parseAuthority(
  text: string,
): { readonly host: string; readonly valid: boolean; readonly digits: string | undefined } | undefined {
  const { host, bracketed, digits } = splitAuthority(text) ?? {}
  if (host === undefined || digits === '') return undefined
  // The zone of an address names an interface of this machine.
  return {
    host,
    valid: bracketed === true ? isIPv6(host.replace(/%[\w.:-]+$/, '')) : isHostName(host),
    digits,
  }
}

/** Whether a text is a host, with or without a port. */
export function isAuthority(text: string): boolean {
  const { valid = false, digits = '0' } = parseAuthority(text) ?? {}
  return valid && portProblem(digits, 0) === undefined
}

function isHostName(host: string): boolean {
  // Digits and dots alone are meant as an IPv4 address, so they have to be a valid one.
  if (/^[\d.]+$/.test(host)) return isIPv4(host)
  return host.length <= 253 && /^[a-z\d_](?:[a-z\d_.-]*[a-z\d_])?$/i.test(host)
}

function parseUnix(path: string): Parsed<ListenAddress> {
  const problem = socketPathProblem(path)
  return problem === undefined ? { value: { kind: 'unix', path } } : { problem }
}

function parseDescriptor(digits: string): Parsed<ListenAddress> {
  const fd = /^\d{1,4}$/.test(digits) ? Number(digits) : -1
  if (fd < 3) return { problem: 'must be fd: and a descriptor from 3 on, as socket activation passes them' }
  return { value: { kind: 'fd', fd } }
}

function parseTcp(text: string, every: string): Parsed<ListenAddress> {
  if (/^\d+$/.test(text)) {
    return { problem: `must be ${ADDRESS_FORMS}; for a port on every interface write ${every}:${text}` }
  }
  if (/^:\d+$/.test(text)) return { problem: `must name the host too: ${every}${text} is every interface` }
  if (isIPv6(text.replace(/%[\w.:-]+$/, '')))
    return {
      problem: `must be ${ADDRESS_FORMS}; an IPv6 address needs brackets and a port, such as "[::1]:8443"`,
    }
  const { host, valid, digits } = parseAuthority(text) ?? {}
  if (host === undefined || digits === undefined) return { problem: `must be ${ADDRESS_FORMS}` }
  if (!valid) return { problem: `must be ${ADDRESS_FORMS}; the host is neither a name nor an address` }
  const problem = portProblem(digits, 0)
  return problem === undefined ? { value: { kind: 'tcp', host, port: Number(digits) } } : { problem }
}

/** Why digits are no port; undefined if they are one. */
export function portProblem(digits: string, least: 0 | 1): string | undefined {
  const port = Number(digits)
  return port >= least && port <= 65_535
    ? undefined
    : `must have a port from ${least} to 65535, not ${digits}`
}

/**
 * The address of the device. `host` has no brackets; `origin` has them, and omits the default port. Only `host` has the zone of an IPv6
 * address, which names an interface of this machine and never stands in `Host` (RFC 6874 §4).
 */
export type UpstreamUrl =
  | {
      readonly kind: 'tcp'
      readonly protocol: 'http' | 'https'
      readonly host: string
      readonly port: number
      readonly origin: string
    }
  | { readonly kind: 'unix'; readonly path: string; readonly origin: 'http://localhost' }

const URL_PROBLEM =
  "must be the device's address, such as http://127.0.0.1:8080, https://device or http+unix:/run/device.sock"

/** Parses the device's address. Refuses a user, a path or a query, because they would change each forwarded request. */
export function parseUpstreamUrl(text: string): Parsed<UpstreamUrl> {
  if (text.startsWith('http+unix:')) return parseUnixUrl(text.slice('http+unix:'.length))
  const { bare, zone } = withoutZone(text)
  // `URL.parse` is too lenient: it drops tabs, spaces and line ends, and takes http:host for http://host.
  const url = /^https?:\/\/[^\s/\\]/i.test(bare) && !/[\s\\]/.test(bare) ? URL.parse(bare) : null
  if (url === null) {
    const [, digits] = /^https?:\/\/[^\s/\\]+:(\d+)\/?$/i.exec(text) ?? []
    return { problem: (digits === undefined ? undefined : portProblem(digits, 1)) ?? URL_PROBLEM }
  }
  const protocol = url.protocol === 'https:' ? 'https' : 'http'
  if (url.username !== '' || url.password !== '' || /^\w+:\/\/[^/?#]*@/.test(text)) {
    return {
      problem: 'must not contain a user or password; set Authorization under upstream.headers, from a file',
    }
  }
  if (url.pathname !== '/' || /[?#]/.test(text)) {
    return {
      problem: `must end after the port: the client's own path and query are used; write ${url.origin}`,
    }
  }
  const port = url.port === '' ? (protocol === 'https' ? 443 : 80) : Number(url.port)
  if (port === 0) return { problem: portProblem('0', 1) ?? URL_PROBLEM }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1') + zone
  return { value: { kind: 'tcp', protocol, host, port, origin: url.origin } }
}

/** The text that `parseUpstreamUrl` parses to this address. */
export function formatUpstreamUrl(url: UpstreamUrl): string {
  if (url.kind === 'unix') return `http+unix:${url.path}`
  return url.origin.replace(']', `${zoneIn(url.host)}]`)
}

/** Whether two addresses lead to the same port of the same machine. A name is another address than that to which it resolves, except `localhost`. */
export function isSameAddress(one: UpstreamUrl, other: UpstreamUrl): boolean {
  if (one.kind === 'unix' || other.kind === 'unix')
    return one.kind === 'unix' && other.kind === 'unix' && one.path === other.path
  return one.port === other.port && machineOf(one.host) === machineOf(other.host)
}

/** One spelling of each host. */
function machineOf(given: string): string {
  const host = given.toLowerCase()
  const address = normalizeAddress(host)
  const name = address === undefined ? host.replace(/\.$/, '') : `${address}${zoneIn(host)}`
  return /^(?:127\.0\.0\.1|::1|(?:.+\.)?localhost)$/.test(name) ? 'localhost' : name
}

/** The zone of an IPv6 address, with its percent sign; empty without one. */
export function zoneIn(host: string): string {
  return /%.*$/.exec(host)?.[0] ?? ''
}

/** Takes the zone out of the address in a URL, because `URL.parse` refuses it. The percent sign may be escaped (RFC 6874 §2). */
function withoutZone(text: string): { readonly bare: string; readonly zone: string } {
  const [, before = '', zone, after = ''] =
    /^(https?:\/\/\[[\da-f:.]+)%(?:25(?=[^\]]))?([\w.:-]+)(\].*)$/is.exec(text) ?? []
  return zone === undefined ? { bare: text, zone: '' } : { bare: before + after, zone: `%${zone}` }
}

function parseUnixUrl(rest: string): Parsed<UpstreamUrl> {
  const path = rest.startsWith('///') ? rest.slice('//'.length) : rest
  const problem = path.startsWith('//') ? URL_PROBLEM : socketPathProblem(path)
  return problem === undefined ? { value: { kind: 'unix', path, origin: 'http://localhost' } } : { problem }
}

/** Why a text cannot be the target of a request; undefined if it can. */
export function targetProblem(given: string): string | undefined {
  const fits = /^\/[!-~]*$/.test(given) && !given.includes('#')
  return fits ? undefined : 'must be a path that begins with / and contains no spaces'
}

const REQUEST_PATH = 'must be a path such as /login, or /static/ for everything below it'

/** Why a text is not the path of a request; `undefined` if it is one. */
export function requestPathProblem(given: string): string | undefined {
  return /^\/[!$&'()*+,\-./0-9:;=@A-Z_a-z~%]*$/.test(given) ? undefined : REQUEST_PATH
}

/** Why no request has this path, or why two programs could read it differently; undefined if neither. */
export function plainPathProblem(path: string): string | undefined {
  const problem = requestPathProblem(path)
  if (problem !== undefined || !isAmbiguousPath(path)) return problem
  return 'must be a plain path, without dot segments, empty segments or escapes'
}
