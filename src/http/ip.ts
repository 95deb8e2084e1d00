import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** A range of addresses, ready to be matched. */
export interface Cidr {
  readonly base: Address
  readonly bits: number
}

/**
 * Reads `10.0.0.0/8`, `fd00::/8` or a single address (all of its bits count). `undefined` when it is neither.
 * A range of IPv4-mapped addresses becomes the IPv4 range, because that is how the addresses are compared.
 */
export function parseCidr(text: string): Cidr | undefined {
  const [, address = '', suffix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  if (isIP(address) === 0 || address.includes('%')) return undefined
  const written = ipaddr.parse(address)
  const width = written.kind() === 'ipv4' ? 32 : 128
  const bits = suffix === undefined ? width : Number(suffix)
  if (bits > width) return undefined
  const base = ipaddr.process(address)
  if (base.kind() === written.kind()) return { base, bits }
  return bits >= 96 ? { base, bits: bits - 96 } : { base: written, bits }
}

/** Whether an address lies in one of the ranges. What is no address lies in none. */
export function matchesAny(address: string, cidrs: readonly Cidr[]): boolean {
  const parsed = parseAddress(address)
  if (parsed === undefined) return false
  return cidrs.some(({ base, bits }) => base.kind() === parsed.kind() && parsed.match(base, bits))
}

/**
 * The one text by which an address is known here: IPv6 as in RFC 5952, an IPv4-mapped IPv6 address as IPv4, the zone
 * dropped. `undefined` for anything else; the short, octal and hexadecimal forms of IPv4 count as anything else.
 */
export function normalizeAddress(address: string): string | undefined {
  return parseAddress(address)?.toString()
}

/**
 * What one client owns: an IPv6 client has a whole /64 to itself and could otherwise take a new address for every
 * request, so it becomes `2001:db8:1:2::/64`. IPv4, and what is no address, comes back as it is.
 */
export function prefix64(address: string): string {
  const parsed = parseAddress(address)
  if (parsed === undefined || !isVersion6(parsed)) return address
  const network = new ipaddr.IPv6([...parsed.parts.slice(0, 4), 0, 0, 0, 0])
  return `${network.toString()}/64`
}

function parseAddress(address: string): Address | undefined {
  const [bare = ''] = address.split('%', 1)
  return isIP(bare) === 0 ? undefined : ipaddr.process(bare)
}

function isVersion6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === 'ipv6'
}
