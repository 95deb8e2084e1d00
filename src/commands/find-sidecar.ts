import { parseAddress } from '../config/address.ts'
import { FaultyConfiguration, type Whereabouts } from '../config/whereabouts.ts'
import { isJournal, withSeverity } from '../system/journald.ts'
import type { ListenAddress } from '../system/listen-address.ts'
import { SetupError } from '../system/setup-error.ts'
import { type CommandIo, exitCodeOf, STANDARD_ERROR } from './command.ts'
import { type ConfigOptions, configFrom, configPath } from './configuration.ts'

/** Options of the commands that talk to a running sidecar. */
export interface SidecarOptions extends ConfigOptions {
  /** The folder of its state. With it no configuration is read. */
  readonly stateDir?: string
}

/** A command that asks a running sidecar. `flag`: its option that finds the sidecar without a configuration. */
interface Asking {
  readonly command: string
  readonly flag: '--state-dir' | '--admin'
}

/**
 * Finds the running sidecar. While the file has a fault, the sidecar runs on with its previous configuration, and these commands are for
 * emergencies. So a fault costs only one line of warning. Throws a `SetupError` if the fault may be in a key that locates the sidecar.
 */
export function findSidecar({ command, flag }: Asking, options: ConfigOptions, io: CommandIo): Whereabouts {
  const isFile = configPath(options, io) !== undefined
  try {
    return configFrom(options, io)
  } catch (error) {
    if (!(error instanceof SetupError) || !isFile) throw error
    const whereabouts = error instanceof FaultyConfiguration ? error.whereabouts : undefined
    if (whereabouts === undefined) throw hidden(error, flag)
    tell(command, error.problems, io)
    return whereabouts
  }
}

/** The state folder of the running sidecar. */
export function stateDirOf(command: string, options: SidecarOptions, io: CommandIo): string {
  return options.stateDir ?? findSidecar({ command, flag: '--state-dir' }, options, io).stateDir
}

/** Writes one line for any number of faults: `postern check` lists them. */
function tell(command: string, [first = '', ...more]: readonly string[], { stderr, env }: CommandIo): void {
  const others = more.length === 0 ? '' : `, and ${more.length} more (postern check)`
  const text = `postern ${command}: the configuration is not usable: ${first}${others}; it still says where the sidecar is, so the command goes on\n`
  stderr.write(isJournal(STANDARD_ERROR, env) ? withSeverity(4, text) : text)
}

function hidden(error: SetupError, flag: Asking['flag']): SetupError {
  const example = flag === '--admin' ? '--admin 127.0.0.1:9464' : '--state-dir /var/lib/postern'
  const remedy = `nothing was done: correct it, or name the sidecar with ${flag}, which needs no file (${example})`
  return new SetupError([...error.problems, remedy], { exitCode: exitCodeOf(error), cause: error })
}

/** Reads the value of `--admin`: an address, with `https://` before it if the admin listener speaks TLS. Throws `SetupError`. */
export function readAdminAddress(text: string): {
  readonly address: ListenAddress
  readonly secure: boolean
} {
  const [, scheme, rest = ''] = /^(https?:\/\/)?(.*?)\/?$/.exec(text) ?? []
  const parsed = parseAddress(rest)
  if ('problem' in parsed) throw new SetupError(`--admin: ${parsed.problem}`)
  return { address: parsed.value, secure: scheme === 'https://' }
}

/** Where a command on this machine reaches a listener, as `node:http` takes it. */
export type ReachedAt = { readonly socketPath: string } | { readonly host: string; readonly port: number }

/**
 * A listener on every address is reached on loopback. `::` is reached by `localhost`, because with `listen.address: auto` a machine without
 * IPv6 listens on IPv4.
 */
export function reachedAt(address: Exclude<ListenAddress, { readonly kind: 'fd' }>): ReachedAt {
  if (address.kind === 'unix') return { socketPath: address.path }
  return { host: LOOPBACK[address.host] ?? address.host, port: address.port }
}

const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': 'localhost' }
