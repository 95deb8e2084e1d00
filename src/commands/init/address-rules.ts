import { lookup } from 'node:dns/promises'
import type { Config } from '../../config/schema.ts'
import { servicesOf } from '../../config/upstream-fields.ts'
import { isLoopback, normalizeAddress, parseCidr } from '../../http/ip.ts'
import { formatAddress, type ListenAddress } from '../../system/listen-address.ts'

/** A server that the configuration names, or this machine's own address. */
interface Peer {
  /** Where the configuration names it, such as `upstream.url`. */
  readonly key: string
  readonly host: string
}

/** A rule that the drop-in leaves out: the reason, and lines for the operator to take in by hand. */
interface LeftOut {
  readonly reason: string
  readonly lines?: readonly string[]
  /** Whether the configuration needs the rule: without it something stops working. */
  readonly used?: boolean
}

const DHCP =
  'A device or a server that gets another address, by DHCP for example: give it a fixed one, or allow its network, such as 192.0.2.0/24.'

/** The rules of systemd's address filter for the servers of a configuration, and the rules that it cannot have. */
export interface AddressRules {
  /** The servers on other machines that the configuration names by address. */
  readonly allowed: readonly Peer[]
  readonly leftOut: readonly LeftOut[]
  /** Whether the configuration has a host name, so that the resolver's servers are needed. */
  readonly hasNames: boolean
}

/** The rules for a configuration. Looks up host names, so that the operator can take in their present addresses by hand. */
export async function addressRules(config: Config): Promise<AddressRules> {
  const peers = peersOf(config).filter(({ host }) => !isLoopback(host))
  const named = peers.filter(isNamed)
  return {
    allowed: peers.filter((peer) => !isNamed(peer)),
    leftOut: [
      ...(await Promise.all(named.map(leftOutName))).flat(),
      adminOverNetwork(config),
      { reason: DHCP },
    ],
    hasNames: named.length > 0,
  }
}

/** The servers that the sidecar connects to, and this machine's address at which `postern healthy` asks during a start. */
function peersOf({ upstream, tokens, admin }: Config): readonly Peer[] {
  const services = servicesOf(upstream).flatMap(({ path, service: { url } }) =>
    url.kind === 'tcp' ? [{ key: [...path, 'url'].join('.'), host: url.host }] : [],
  )
  const { store } = tokens
  return [
    ...services,
    ...(typeof store !== 'string' && 'host' in store.server
      ? [{ key: 'tokens.store', host: store.server.host }]
      : []),
    ...(overNetwork(admin.address) && !EVERY.has(normalizeAddress(admin.address.host) ?? '')
      ? [{ key: 'admin.address, for this machine itself', host: admin.address.host }]
      : []),
  ]
}

/** The addresses of a listener on every address: `postern healthy` asks it on loopback. */
const EVERY: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Whether other machines can reach the listener through a socket that the service itself opens. */
export function overNetwork(
  address: Config['admin']['address'],
): address is ListenAddress & { readonly kind: 'tcp' } {
  return address !== 'off' && address.kind === 'tcp' && !isLoopback(address.host)
}

const isNamed = ({ host }: Peer): boolean => normalizeAddress(host) === undefined

/** The line for an address or a range. An IPv4 address in IPv6 form is written as IPv4, because its packets are IPv4. */
export function allow(range: string): string {
  const { base, bits } = parseCidr(normalizeAddress(range) ?? range) ?? {}
  const width = base?.kind() === 'ipv4' ? 32 : 128
  return `IPAddressAllow=${base}${bits === width ? '' : `/${bits}`}`
}

/** The entry for a host name; none if all its addresses are on loopback. The lookup only fills the lines to take in by hand. */
async function leftOutName({ key, host }: Peer): Promise<readonly LeftOut[]> {
  const found = await lookup(host, { all: true }).catch(() => [])
  const lines = found.map(({ address }) => address)
  if (lines.length > 0 && lines.every(isLoopback)) return []
  const now =
    lines.length === 0
      ? 'It has no address now: write IPAddressAllow= with those that it will have.'
      : 'The addresses that it has now are below, to take in by hand if they stay.'
  const reason = `${key}: ${host} is a name, and systemd filters addresses. ${now}`
  return [{ reason, lines: lines.map(allow), used: true }]
}

function adminOverNetwork({ admin }: Config): LeftOut {
  if (!overNetwork(admin.address)) {
    return {
      reason:
        "The admin page, or a Prometheus, over the network: that socket would be the service's own, which no rule here opens.",
    }
  }
  const from =
    admin.allow.length === 0
      ? 'Write IPAddressAllow= for the machines that need it.'
      : 'The machines of admin.allow are below, to take in by hand.'
  return {
    reason: `admin.address: ${formatAddress(admin.address)} is a socket of the service's own, so the admin page and Prometheus work on this machine only. ${from} The service can then connect to them, too.`,
    lines: admin.allow.map(allow),
    used: true,
  }
}
