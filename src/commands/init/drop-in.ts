import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { areDiscovered } from '../../config/store-fields.ts'
import { servicesOf } from '../../config/upstream-fields.ts'
import { isLoopback, normalizeAddress, parseCidr } from '../../http/ip.ts'
import { formatAddress, type ListenAddress } from '../../system/listen-address.ts'
import { codeOf, reasonOf, SetupError } from '../../system/setup-error.ts'
import { columnsOf, WIDTH, wrapped } from '../columns.ts'
import type { CommandIo, ExitCode } from '../command.ts'
import { configPath, loadedFrom, located } from '../configuration.ts'

export interface DropInOptions {
  readonly config?: string
  readonly instance?: string
}

/** A server that the configuration names, or this machine's own address. */
interface Peer {
  /** Where the configuration names it, such as `upstream.url`. */
  readonly key: string
  readonly host: string
}

/** A rule that the drop-in leaves out: why, and the addresses to allow by hand, as comments. */
interface LeftOut {
  readonly reason: string
  readonly lines?: readonly string[]
  /** Whether the configuration uses it, so that something stops working. */
  readonly used?: boolean
}

const RESOLVER = '/etc/resolv.conf'
const DHCP =
  'A device or a server that gets another address, by DHCP for example: give it a fixed one, or allow its network, such as 192.0.2.0/24.'

/**
 * Prints a drop-in for the unit of the sidecar. With it, systemd lets the sidecar exchange packets only with the servers of its
 * configuration (systemd.resource-control(5), `IPAddressDeny=`). Resolves to 1 if it leaves out something that the configuration uses;
 * standard error then says what. Rejects with a `SetupError` if there is no configuration, or if clients would be shut out.
 */
export async function dropInCommand(options: DropInOptions, io: CommandIo): Promise<ExitCode> {
  const { config, locationOf } = loadedFrom({ ...options, set: [] }, io)
  try {
    requireExemption(config.listen.address)
  } catch (error) {
    throw located(error, locationOf)
  }
  const path = configPath(options, io)
  const { text, leftOut } = await dropInFor(config, {
    unit: options.instance === undefined ? 'postern' : `postern-device@${options.instance}`,
    source: path === undefined ? 'the environment' : resolve(path),
    nameservers: nameservers(),
  })
  io.stdout.write(text)
  const used = leftOut.filter((each) => each.used)
  for (const { reason } of used)
    io.stderr.write(`${wrapped(`postern init: left out: ${reason}`, 0, columnsOf(io.stderr))}\n`)
  return used.length === 0 ? 0 : 1
}

/** Refuses a public listener whose connections the filter would concern. */
function requireExemption(address: ListenAddress): void {
  if (!overNetwork(address)) return
  throw new SetupError(
    `${formatAddress(address)} is a socket of the service's own, so the drop-in would shut out its clients`,
    {
      key: 'listen.address',
      remedy: 'set it to fd:3 and start postern.socket, whose connections are exempt',
    },
  )
}

interface Circumstances {
  /** The name of the unit, without `.service`. */
  readonly unit: string
  /** Where the configuration comes from. */
  readonly source: string
  /** The servers of the resolver that are not on this machine. */
  readonly nameservers: readonly string[]
}

async function dropInFor(
  config: Config,
  { unit, source, nameservers }: Circumstances,
): Promise<{ readonly text: string; readonly leftOut: readonly LeftOut[] }> {
  const peers = peersOf(config).filter(({ host }) => !isLoopback(host))
  const leftOut = [
    ...(await Promise.all(peers.filter(isNamed).map(leftOutName))).flat(),
    ...discoveredServers(config),
    adminOverNetwork(config),
    { reason: DHCP },
  ]
  const allowed = Map.groupBy(
    peers.filter((peer) => !isNamed(peer)),
    ({ key }) => key,
  )
  const parts = [
    [`# /etc/systemd/system/${unit}.service.d/addresses.conf`, comment(introduction(config, source))],
    ['[Service]', 'IPAddressDeny=any', 'IPAddressAllow=localhost'],
    ...[...allowed].map(([key, same]) => [`# ${key}`, ...same.map(({ host }) => allow(host))]),
    dns(nameservers, peers.some(isNamed)),
    [comment('Left out:')],
    ...leftOut.map(({ reason, lines = [] }) => [comment(reason), ...lines.map((line) => `#${line}`)]),
  ]
  return { text: `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`, leftOut }
}

function introduction({ listen }: Config, source: string): string {
  const exempt =
    listen.address.kind === 'fd'
      ? 'Connections that postern.socket accepts are exempt, so clients come from every address.'
      : `Clients connect to ${formatAddress(listen.address)}, which stays open.`
  return `Written by postern init --drop-in from ${source}. The service then exchanges packets with the addresses below and no others. ${exempt} Write the file again when an address changes.`
}

/** The servers that the sidecar connects to, and this machine's address at which `postern healthy` asks during a start. */
function peersOf({ upstream, tokens, admin }: Config): readonly Peer[] {
  const services = servicesOf(upstream).flatMap(({ path, service: { url } }) =>
    url.kind === 'tcp' ? [{ key: [...path, 'url'].join('.'), host: url.host }] : [],
  )
  const nodes = typeof tokens.store === 'string' ? [] : tokens.store.nodes
  return [
    ...services,
    ...nodes.map(({ host }) => ({ key: 'tokens.store', host })),
    ...(overNetwork(admin.address) && !EVERY.has(normalizeAddress(admin.address.host) ?? '')
      ? [{ key: 'admin.address, for this machine itself', host: admin.address.host }]
      : []),
  ]
}

/** The addresses of a listener on every address: `postern healthy` asks it on loopback. */
const EVERY: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

function overNetwork(
  address: Config['admin']['address'],
): address is ListenAddress & { readonly kind: 'tcp' } {
  return address !== 'off' && address.kind === 'tcp' && !isLoopback(address.host)
}

const isNamed = ({ host }: Peer): boolean => normalizeAddress(host) === undefined

/** The line for an address or a range. An IPv4 one in IPv6 form is written as IPv4: that is what its packets are. */
function allow(range: string): string {
  const { base, bits } = parseCidr(normalizeAddress(range) ?? range) ?? {}
  const width = base?.kind() === 'ipv4' ? 32 : 128
  return `IPAddressAllow=${base}${bits === width ? '' : `/${bits}`}`
}

/** A name is left out, unless all of its addresses are on loopback. The lookup only fills the lines to take in by hand. */
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

/** The servers that only sentinels or a cluster name. */
function discoveredServers({ tokens: { store } }: Config): readonly LeftOut[] {
  if (typeof store === 'string' || !areDiscovered(store)) return []
  const who = store.kind === 'sentinel' ? 'the sentinels name' : 'the cluster names'
  return [
    {
      reason: `tokens.store: the servers that ${who} are not in the configuration. Write IPAddressAllow= for each.`,
      used: true,
    },
  ]
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

function dns(servers: readonly string[], isNeeded: boolean): readonly string[] {
  const needed = isNeeded ? '' : '. The configuration has no name, so this may go'
  return servers.length === 0
    ? [comment(`DNS: ${RESOLVER} names no server on another machine.`)]
    : [comment(`DNS, as in ${RESOLVER}${needed}`), ...servers.map(allow)]
}

/** The nameservers of this machine's resolver that are on other machines. None if the file is missing. Throws `SetupError`. */
function nameservers(): readonly string[] {
  let text: string
  try {
    text = readFileSync(RESOLVER, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw new SetupError(`cannot read ${RESOLVER}: ${reasonOf(error)}`, { exitCode: 1, cause: error })
  }
  return [...text.matchAll(/^nameserver[ \t]+(\S+)/gm)].flatMap(([, given = '']) => {
    const address = normalizeAddress(given)
    return address === undefined || isLoopback(address) ? [] : [address]
  })
}

function comment(text: string): string {
  return wrapped(text, 0, WIDTH - '# '.length).replace(/^/gm, '# ')
}
