import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { isLoopback, normalizeAddress } from '../../http/ip.ts'
import { formatAddress, type ListenAddress } from '../../system/listen-address.ts'
import { codeOf, reasonOf, SetupError } from '../../system/setup-error.ts'
import { columnsOf, WIDTH, wrapped } from '../columns.ts'
import type { CommandIo, ExitCode } from '../command.ts'
import { configPath, loadedFrom, located } from '../configuration.ts'
import { type AddressRules, addressRules, allow, overNetwork } from './address-rules.ts'

interface DropInOptions {
  readonly config?: string
  readonly instance?: string
}

const RESOLVER = '/etc/resolv.conf'

/**
 * Prints a drop-in for the unit of the sidecar. With it, systemd lets the sidecar exchange packets only with the servers of its
 * configuration (systemd.resource-control(5), `IPAddressDeny=`). Resolves to 1 if it leaves out a rule that the configuration needs, and
 * names it on standard error. Rejects with a `SetupError` if there is no configuration, or if clients would be shut out.
 */
export async function dropInCommand(options: DropInOptions, io: CommandIo): Promise<ExitCode> {
  const { config, locationOf } = loadedFrom({ ...options, set: [] }, io)
  try {
    requireExemption('listen.address', config.listen.address, 'fd:3')
    requireExemption('listen.redirect', config.listen.redirect, 'fd:4')
  } catch (error) {
    throw located(error, locationOf)
  }
  const path = configPath(options, io)
  const rules = await addressRules(config)
  io.stdout.write(
    textFor(config, rules, {
      unit: options.instance === undefined ? 'postern' : `postern-device@${options.instance}`,
      source: path === undefined ? 'the environment' : resolve(path),
      nameservers: nameservers(),
    }),
  )
  const used = rules.leftOut.filter((each) => each.used)
  for (const { reason } of used)
    io.stderr.write(`${wrapped(`postern init: left out: ${reason}`, 0, columnsOf(io.stderr))}\n`)
  return used.length === 0 ? 0 : 1
}

/** Throws `SetupError` for a port of the public listener whose connections are not exempt from the filter. `passed`: what would be. */
function requireExemption(key: string, address: ListenAddress | 'off', passed: string): void {
  if (address === 'off' || !overNetwork(address)) return
  throw new SetupError(
    `${formatAddress(address)} is a socket of the service's own, so the drop-in would shut out its clients`,
    {
      key,
      remedy: `set it to ${passed} and start postern.socket, whose connections are exempt`,
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

function textFor(
  config: Config,
  { allowed, leftOut, hasNames }: AddressRules,
  { unit, source, nameservers }: Circumstances,
): string {
  const parts = [
    [`# /etc/systemd/system/${unit}.service.d/addresses.conf`, comment(introduction(config, source))],
    ['[Service]', 'IPAddressDeny=any', 'IPAddressAllow=localhost'],
    ...[...Map.groupBy(allowed, ({ key }) => key)].map(([key, same]) => [
      `# ${key}`,
      ...same.map(({ host }) => allow(host)),
    ]),
    dns(nameservers, hasNames),
    [comment('Left out:')],
    ...leftOut.map(({ reason, lines = [] }) => [comment(reason), ...lines.map((line) => `#${line}`)]),
  ]
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

function introduction({ listen }: Config, source: string): string {
  const exempt =
    listen.address.kind === 'fd'
      ? 'Connections that postern.socket accepts are exempt, so clients come from every address.'
      : `Clients connect to ${formatAddress(listen.address)}, which stays open.`
  return `Written by postern init --drop-in from ${source}. The service then exchanges packets with the addresses below and no others. ${exempt} Write the file again when an address changes.`
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
