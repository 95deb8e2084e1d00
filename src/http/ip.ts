import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * Whether a text is an IPv6 address without a zone. `net.isIPv6` is not used: it compiles a large regular expression at its first two
 * calls, which takes 6 ms of the start. The URL parser is native code for the same grammar (RFC 4291 §2.2).
 */
export function isIPv6(text: string): boolean {
  return /^[\da-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]`)
}

function isAddress(text: string): boolean {
  return isIPv4(text) || isIPv6(text)
}

/** A range of addresses, ready to be matched. */
export interface Cidr {
  readonly base: Address
  readonly bits: number
}

/**
 * Parses a range such as `10.0.0.0/8` or `fd00::/8`, or a single address, which is a range of one. Returns undefined for anything else. A
 * range of IPv4-mapped IPv6 addresses becomes the IPv4 range, because `matchesAny` compares addresses in that form.
 */
export function parseCidr(text: string): Cidr | undefined {
  const [, address = '', suffix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  if (!isAddress(address)) return undefined
  const written = ipaddr.parse(address)
  const width = written.kind() === 'ipv4' ? 32 : 128
  const bits = suffix === undefined ? width : Number(suffix)
  if (bits > width) return undefined
  const base = ipaddr.process(address)
  if (base.kind() === written.kind()) return { base, bits }
  return bits >= 96 ? { base, bits: bits - 96 } : { base: written, bits }
}

/** Whether an address is in one of the ranges. Text that is not an address is in none. */
export function matchesAny(address: string, cidrs: readonly Cidr[]): boolean {
  const parsed = parseAddress(address)
  if (parsed === undefined) return false
  return cidrs.some(({ base, bits }) => base.kind() === parsed.kind() && parsed.match(base, bits))
}

export type AdmitsAddress = (address: string) => boolean

/** The rule of a list of ranges: it admits only their addresses, or all addresses if the list is empty. */
export function admitsAddress(allow: readonly string[]): AdmitsAddress {
  const allowed = cidrsOf(allow)
  return (address) => allowed.length === 0 || matchesAny(address, allowed)
}

/** The ranges in a list. Other words in it are ignored. */
export function cidrsOf(list: readonly string[]): readonly Cidr[] {
  return list.map(parseCidr).filter((cidr) => cidr !== undefined)
}

/**
 * The canonical text of an address: IPv6 as in RFC 5952, an IPv4-mapped IPv6 address as IPv4, without a zone. Returns undefined for
 * anything else, including the short, octal and hexadecimal forms of IPv4.
 */
export function normalizeAddress(address: string): string | undefined {
  return parseAddress(address)?.toString()
}

/**
 * The network that counts as one client. An IPv6 client usually has a whole /64 and could use a new address for each request, so
 * its address becomes `2001:db8:1:2::/64`. An IPv4 address, and text that is not an address, is returned unchanged.
 */
export function prefix64(address: string): string {
  const parsed = parseAddress(address)
  if (parsed === undefined || !isVersion6(parsed)) return address
  return prefixOf(parsed, 64)
}

/**
 * The network of a client, by its key (`prefix64`). An IPv6 site usually has a whole /48, so one attacker has 65,536 keys:
 * `2001:db8:1:2::/64` becomes `2001:db8:1::/48`. Every other key is returned unchanged.
 */
export function prefix48(key: string): string {
  const [address = ''] = key.split('/', 1)
  const parsed = parseAddress(address)
  return parsed === undefined || !isVersion6(parsed) ? key : prefixOf(parsed, 48)
}

/** @param bits a multiple of 16 */
function prefixOf({ parts }: ipaddr.IPv6, bits: number): string {
  const network = new ipaddr.IPv6(parts.map((part, at) => (16 * at < bits ? part : 0)))
  return `${network.toString()}/${bits}`
}

/** The bytes of an address in network order; undefined for text that is not an address. */
export function addressBytes(address: string): Uint8Array | undefined {
  const parsed = isAddress(address) ? ipaddr.parse(address) : undefined
  return parsed === undefined ? undefined : Uint8Array.from(parsed.toByteArray())
}

function parseAddress(address: string): Address | undefined {
  const [bare = ''] = address.split('%', 1)
  return isAddress(bare) ? ipaddr.process(bare) : undefined
}

function isVersion6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === 'ipv6'
}

/** Whether a host is loopback: `localhost`, or a loopback address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^(?:127\.|::1$)/.test(normalizeAddress(host) ?? '')
}

/** The parts of `host`, `host:port`, `[IPv6]` or `[IPv6]:port`. */
interface Authority {
  /** Without brackets. It is not checked: each caller has its own rules. */
  readonly host: string
  readonly bracketed: boolean
  /** The digits of the port, possibly empty; undefined without a colon. */
  readonly digits: string | undefined
}

/** Splits a host with an optional port (RFC 3986 §3.2); no other code does. Undefined for a text of another form. */
export function splitAuthority(text: string): Authority | undefined {
  const [, address, name, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d*))?$/.exec(text) ?? []
  const host = address ?? name
  return host === undefined ? undefined : { host, bracketed: address !== undefined, digits }
}

/**
 * A registered name (RFC 3986 §3.2.2). The grammar allows a comma. It is refused here, because it separates two names in
 * `X-Forwarded-Host`.
 */
const REGISTERED_NAME = /^(?:[A-Za-z0-9\-._~!$&'()*+;=]|%[0-9A-Fa-f]{2})+$/

/** Whether a text is a host with an optional port of at most five digits, without userinfo. */
export function isHost(text: string): boolean {
  const parts = splitAuthority(text)
  if (parts === undefined || (parts.digits?.length ?? 0) > 5) return false
  return parts.bracketed ? isIPv6(parts.host) : REGISTERED_NAME.test(parts.host)
}

/** The form of a DNS name in a certificate. `*` may stand for the first label (RFC 9525 §6.3). */
const DNS_NAME = /^(?:\*\.)?(?:[a-z\d_](?:[a-z\d_-]{0,61}[a-z\d_])?\.)*[a-z_](?:[a-z\d_-]{0,61}[a-z\d_])?$/

/**
 * The canonical form of a DNS name or an IP address, for comparisons with the names of a certificate; undefined for anything else, and for
 * an address with a zone (`fe80::1%eth0`), which a certificate cannot contain.
 */
export function canonicalHost(given: string): string | undefined {
  if (given.includes('%')) return undefined
  const name = given.toLowerCase()
  return normalizeAddress(name) ?? (name.length <= 253 && DNS_NAME.test(name) ? name : undefined)
}

/** The host of a URL, without the brackets of an IPv6 address. */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** Whether one of these names is this host, in lower case; `*` may stand for its first label. A name with `*` is no host. */
export function coversHost(names: readonly string[], host: string): boolean {
  if (host.startsWith('*')) return false
  const below = host.replace(/^[^.]+/, '*')
  return names.some((each) => each.toLowerCase() === host || each.toLowerCase() === below)
}
