#!/usr/bin/env node
import './node-version.cjs'
import process from 'node:process'
import { isSea } from 'node:sea'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { type CommandIo, type DaemonIo, type ExitCode, reportFailure } from './commands/command.ts'
import { systemClock } from './system/clock.ts'
import { collectGarbage } from './system/idle-collection.ts'
import { ensurePermissions, type PermissionedProcess } from './system/permissions.ts'
import { VERSION } from './version.ts'

/** Where packages and docs/installing.md put the configuration. */
const DEFAULT_CONFIG = '/etc/postern/postern.yaml'

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
  .addHelpText(
    'after',
    `
First steps:
  postern demo                                      try Postern in front of a sample device
  postern hash-password > /etc/postern/password     store the hash of the device password
  postern check --config /etc/postern/postern.yaml  print the effective configuration and test it
  postern serve --config /etc/postern/postern.yaml  run the sidecar

Exit codes: 0 stopped on purpose, 1 failed while running, 2 bad usage or configuration.`,
  )

withConfig(
  command('serve', 'Run the sidecar in front of a device.', async (options: ConfigFlags) => {
    const daemon = daemonIo()
    const { serveCommand } = await import('./commands/serve.ts')
    return serveCommand(options, daemon)
  }),
).addHelpText(
  'after',
  `
Each configuration key can be set in three places: --set overrides the environment, which overrides the file.
  postern serve --config postern.yaml --set limits.api.requests=120
  POSTERN_LIMITS_API_REQUESTS=120 postern serve --config postern.yaml
  postern serve --set upstream.url=http://192.0.2.7 --set password.file=/etc/postern/password

SIGHUP reloads the configuration, as does a change of the file, the certificate or the key.
SIGTERM or SIGINT stops the sidecar gracefully; a second signal stops it at once.`,
)

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
  .addHelpText(
    'after',
    `
Each check has a line: ok, WARNING for what works and needs you soon, or FAILED. Below a problem stands what it means, and what to
do. An address that the running sidecar of the same state_dir uses is fine. Run it as the sidecar's user, who has to be able to
read the files:
  runuser -u postern -- postern check
  postern check --quiet || echo 'not now'
  postern check --json | jq '.checks[] | select(.result != "ok")'

Secrets are printed as ***. Nothing is changed. Exit codes: 0 if everything works; 2 if serve would not start, because the
configuration or a file that it names is unusable; 1 if something else fails, such as a device that does not respond.`,
  )

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
  .addHelpText(
    'after',
    `
The command finds the running sidecar by state_dir, so it needs the same configuration: name it with --config, unless it is
${DEFAULT_CONFIG}. Run it as the sidecar's user or as root.`,
  )

withConfig(
  command('revoke', 'Revoke grants and all their tokens at once.', async (options: RevokeFlags) => {
    const { revokeCommand } = await import('./commands/control.ts')
    return revokeCommand(options, io)
  }),
)
  .option('--all', 'every grant')
  .option('--client <address>', 'the grants of one client: an IPv4 address, the /64 of an IPv6 one, or unix')
  .option('--grant <id>', 'one grant, by its id in postern status')
  .addHelpText(
    'after',
    `
The connections of a revoked grant are closed. The password does not change.
The command finds the running sidecar by state_dir, so it needs the same configuration: name it with --config, unless it is
${DEFAULT_CONFIG}. Run it as the sidecar's user or as root.
It exits with 1 if --grant or --client matches no grant.`,
  )

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
}).addHelpText(
  'after',
  `
The password is one line of standard input, so that no command line shows it:
  postern hash-password > /etc/postern/password      asks for it
  printf '%s' "$SECRET" | postern hash-password`,
)

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
