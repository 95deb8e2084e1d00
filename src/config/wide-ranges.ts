import { type Cidr, parseCidr } from '../http/ip.ts'

/** Addresses of networks that are not the internet: private, loopback, link-local, and of carriers (RFC 6890). */
const INNER = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
  'fe80::/10',
]

/** The prefix length of a range that is too large for a list of proxies. */
const WIDE = { ipv4: 8, ipv6: 16 }

type Span = readonly [from: bigint, to: bigint]

/** Whether ranges together hold as many internet addresses as an IPv4 /8 or an IPv6 /16. Ignores other texts, such as `unix`. */
export function areWide(ranges: readonly string[]): boolean {
  return (['ipv4', 'ipv6'] as const).some((kind) => {
    const [given, inner] = [spansOf(ranges, kind), spansOf(INNER, kind)]
    const common = given.flatMap(([from, to]) =>
      inner.map(([a, b]): Span => [from > a ? from : a, to < b ? to : b]).filter(([a, b]) => a < b),
    )
    return sizeOf(given) - sizeOf(common) >= 1n << BigInt(widthOf(kind) - WIDE[kind])
  })
}

const widthOf = (kind: 'ipv4' | 'ipv6'): number => (kind === 'ipv4' ? 32 : 128)

const sizeOf = (spans: readonly Span[]): bigint => spans.reduce((sum, [from, to]) => sum + to - from, 0n)

/** The ranges of a kind, without overlaps. `to`: the first address after the range. */
function spansOf(ranges: readonly string[], kind: 'ipv4' | 'ipv6'): readonly Span[] {
  const spans = ranges
    .map(parseCidr)
    .filter((cidr) => cidr !== undefined)
    .filter(({ base }) => base.kind() === kind)
    .map((cidr) => spanOf(cidr, widthOf(kind)))
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
  const merged: [bigint, bigint][] = []
  for (const [from, to] of spans) {
    const last = merged.at(-1)
    if (last === undefined || from > last[1]) merged.push([from, to])
    else if (to > last[1]) last[1] = to
  }
  return merged
}

function spanOf({ base, bits }: Cidr, width: number): Span {
  const size = 1n << BigInt(width - bits)
  const address = base.toByteArray().reduce((sum, byte) => (sum << 8n) + BigInt(byte), 0n)
  const from = address - (address % size)
  return [from, from + size]
}
