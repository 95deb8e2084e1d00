#!/usr/bin/env node
import './node-version.cjs'
import process from 'node:process'
import { isSea } from 'node:sea'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { type CommandIo, type DaemonIo, type ExitCode, reportFailure } from './commands/command.ts'
import {
  CHECK_HELP,
  DEFAULT_CONFIG,
  HASH_PASSWORD_HELP,
  INIT_HELP,
  PROGRAM_HELP,
  REVOKE_HELP,
  SERVE_HELP,
  STATUS_HELP,
} from './commands/help.ts'
import type { InitOptions } from './commands/init.ts'
import { systemClock } from './system/clock.ts'
import { collectGarbage } from './system/idle-collection.ts'
import { ensurePermissions, type PermissionedProcess } from './system/permissions.ts'
import { VERSION } from './version.ts'

const io: CommandIo = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  defaultConfig: DEFAULT_CONFIG,
}

/** What follows the name of the program on the command line. In the single executable no script is among it. */
const ARGUMENTS = isSea() ? process.argv.slice(2) : [...process.execArgv, ...process.argv.slice(1)]

const permissions: PermissionedProcess = {
  permission: process.permission,
  env: process.env,
  restart: (env) => process.execve?.(process.execPath, [process.execPath, ...ARGUMENTS], env),
}

/** For commands that run until they are stopped. Other commands end on a signal, as programs do by default. */
function daemonIo(): DaemonIo {
  return {
    ...io,
    logSink: { terminal: process.stdout.isTTY === true, fd: 1 },
    onStop: onSignals('SIGTERM', 'SIGINT'),
    onReload: onSignals('SIGHUP'),
    onCrash: (listener) => process.on('uncaughtException', listener),
    collectGarbage,
    permissions,
  }
}

const program = new Command('postern')
  .description(
    'A reverse-proxy sidecar for a device without access control: it serves POST /oauth/token itself,\n' +
      'checks bearer tokens, applies rate limits, forwards admitted requests, and exports Prometheus metrics.',
  )
  .version(VERSION)
  .helpCommand(false)
  .showHelpAfterError('(postern --help shows the commands, postern COMMAND --help their options)')
  .exitOverride()
  .addHelpText('after', PROGRAM_HELP)

withConfig(
  command('serve', 'Run the sidecar in front of a device.', async (options: ConfigFlags) => {
    const daemon = daemonIo()
    const { serveCommand } = await import('./commands/serve.ts')
    return serveCommand(options, daemon)
  }),
).addHelpText('after', SERVE_HELP)

withConfig(
  command(
    'check',
    'Print the effective configuration and test the files, addresses and device in it.',
    async (options: CheckFlags) => {
      const { checkCommand } = await import('./commands/check.ts')
      return checkCommand(options, io)
    },
  ),
)
  .option('--json', 'print one JSON document: the checks, and the effective configuration', false)
  .option('--quiet', 'print only warnings and failures', false)
  .addHelpText('after', CHECK_HELP)

withConfig(
  command(
    'status',
    'List the grants of the running sidecar: who is logged in.',
    async (options: StatusFlags) => {
      const { statusCommand } = await import('./commands/control.ts')
      return statusCommand(options, io)
    },
  ),
)
  .option('--json', 'print JSON instead of a table', false)
  .addHelpText('after', STATUS_HELP)

withConfig(
  command('revoke', 'Revoke grants and all their tokens at once.', async (options: RevokeFlags) => {
    const { revokeCommand } = await import('./commands/control.ts')
    return revokeCommand(options, io)
  }),
)
  .option('--all', 'every grant')
  .option('--client <address>', 'the grants of one client: an IPv4 address, the /64 of an IPv6 one, or unix')
  .option('--grant <id>', 'one grant, by its id in postern status')
  .addHelpText('after', REVOKE_HELP)

command(
  'init',
  'Write a first configuration: ask for the device and its password, and try both.',
  async (options: InitOptions) => {
    const { initCommand } = await import('./commands/init.ts')
    return initCommand(options, { ...io, stdin: process.stdin })
  },
)
  .option('--config <file>', 'the file to write (default: postern.yaml)')
  .option('--url <url>', 'address of the device, such as http://192.0.2.7')
  .option('--device-ca <file>', 'certificate of an https device, or of its authority (PEM)')
  .option('--password-file <file>', 'file with one line: the device password, or a hash of it')
  .option('--htpasswd <file>', 'htpasswd file with the hash of the password of --user')
  .option('--shadow <file>', 'the same for a file like /etc/shadow')
  .addOption(
    new Option('--device-login <kind>', 'the device checks each password, by this login of --user').choices([
      'basic',
      'digest',
    ]),
  )
  .option('--user <name>', 'the account of the device password')
  .option('--skip-checks', 'try neither the device nor the password file', false)
  .addHelpText('after', INIT_HELP)

command(
  'demo',
  'Run the sidecar in front of a sample device, with commands to try.',
  async (options: DemoFlags) => {
    // The demo has nothing to reload. SIGHUP, as from a closed terminal, stops it and removes its folder.
    const daemon = { ...daemonIo(), onStop: onSignals('SIGTERM', 'SIGINT', 'SIGHUP') }
    const { demoCommand } = await import('./commands/demo.ts')
    return demoCommand(options, {
      ...daemon,
      clock: systemClock,
      node: isSea() ? undefined : process.execPath,
    })
  },
)
  .option(
    '--port <port>',
    'port of the public listener (default: 8443, or a free port if it is taken)',
    parsePort,
  )
  .option(
    '--admin-port <port>',
    'port of the admin listener (default: 9464, or a free port if it is taken)',
    parsePort,
  )

command('hash-password', 'Read a password from standard input and print its argon2id hash.', async () => {
  const { hashPasswordCommand } = await import('./commands/hash-password.ts')
  return hashPasswordCommand({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr })
}).addHelpText('after', HASH_PASSWORD_HELP)

/** Handles these signals from now on. A signal that arrives before the first listener is added is delivered to it. */
function onSignals(...signals: readonly NodeJS.Signals[]): (listener: () => void) => void {
  const listeners: (() => void)[] = []
  let missed = 0
  for (const signal of signals) {
    process.on(signal, () => {
      if (listeners.length === 0) missed += 1
      for (const listener of listeners) listener()
    })
  }
  return (listener) => {
    listeners.push(listener)
    for (; missed > 0; missed -= 1) listener()
  }
}

interface ConfigFlags {
  readonly config?: string
  readonly set: readonly string[]
}

interface CheckFlags extends ConfigFlags {
  readonly json: boolean
  readonly quiet: boolean
}

interface StatusFlags extends ConfigFlags {
  readonly json: boolean
}

interface RevokeFlags extends ConfigFlags {
  readonly all?: boolean
  readonly client?: string
  readonly grant?: string
}

interface DemoFlags {
  readonly port?: number
  readonly adminPort?: number
}

function command<Flags>(name: string, description: string, run: (flags: Flags) => Promise<number>): Command {
  return program
    .command(name)
    .description(description)
    .version(VERSION)
    .allowExcessArguments(false)
    .action(async (flags: Flags) => {
      if (name !== 'serve') ensurePermissions('every path', permissions)
      exit(await run(flags).catch((error: unknown) => reportFailure(name, error, io)))
    })
}

function withConfig(target: Command): Command {
  return target
    .option(
      '--config <file>',
      `configuration file (YAML); also POSTERN_CONFIG (default: ${DEFAULT_CONFIG}, if it exists)`,
    )
    .addOption(
      new Option('--set <key=value>', 'set one key, e.g. limits.api.requests=120; may be repeated')
        .argParser((value: string, before: readonly string[]) => [...before, value])
        .default([], 'none'),
    )
}

function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError('It must be 0 to 65535.')
  return port
}

/** Ends the process at once: a command resolves only when all its work is done. */
function exit(code: number): never {
  process.exit(code)
}

const BAD_USAGE: ExitCode = 2

program.parseAsync().catch((error: unknown) => {
  if (error instanceof CommanderError) exit(error.exitCode === 0 ? 0 : BAD_USAGE)
  throw error
})
