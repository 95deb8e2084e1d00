#!/usr/bin/env node
import './node-version.cjs'
import process from 'node:process'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { reportFailure } from './commands/failure.ts'
import type { CommandIo, ExitCode, ServiceIo } from './commands/io.ts'
import { systemClock } from './system/clock.ts'
import { VERSION } from './version.ts'

const io: CommandIo = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
}

/** For the commands that run until they are told to stop; the others end on a signal as any program does. */
function serviceIo(): ServiceIo {
  return {
    ...io,
    logSink: { terminal: process.stdout.isTTY === true, fd: 1 },
    onStop: remembered('SIGTERM', 'SIGINT'),
    onReload: remembered('SIGHUP'),
    onCrash: (listener) => process.on('uncaughtException', listener),
  }
}

const program = new Command('postern')
  .description(
    'A reverse-proxy sidecar for a device without access control: it answers POST /oauth/token itself,\n' +
      'checks bearer tokens, applies rate limits, forwards what passes, and exports Prometheus metrics.',
  )
  .version(VERSION)
  .helpCommand(false)
  .showHelpAfterError('(postern --help shows the commands, postern COMMAND --help their options)')
  .exitOverride()
  .addHelpText(
    'after',
    `
First steps:
  postern demo                                      try it in front of a sample device
  postern hash-password > /etc/postern/password     keep the device password hashed
  postern check --config /etc/postern/postern.yaml  see the configuration in full and try what it names
  postern serve --config /etc/postern/postern.yaml  run it

Exit codes: 0 stopped on purpose, 1 failed while running, 2 bad usage or configuration.`,
  )

withConfig(
  command('serve', 'Run the sidecar in front of a device.', async (options: ConfigFlags) => {
    const service = serviceIo()
    const { serveCommand } = await import('./commands/serve.ts')
    return serveCommand(options, service)
  }),
).addHelpText(
  'after',
  `
Any key of the configuration can be set in three places: --set beats the environment beats the file.
  postern serve --config postern.yaml --set limits.api.requests=120
  POSTERN_LIMITS_API_REQUESTS=120 postern serve --config postern.yaml
  postern serve --set upstream.url=http://192.0.2.7 --set password.file=/etc/postern/password

SIGHUP reads the configuration anew, as does a change of the file, the certificate or the key.
SIGTERM or SIGINT stops it gently; a second one at once.`,
)

withConfig(
  command(
    'check',
    'Print the effective configuration and try what it names.',
    async (options: ConfigFlags) => {
      const { checkCommand } = await import('./commands/check.ts')
      return checkCommand(options, io)
    },
  ),
).addHelpText(
  'after',
  `
Secrets are printed as ***. Nothing is changed. Exit codes: 0 when all of it works; 2 when serve would not start, because
the configuration or a file that it names is unusable; 1 when something else fails, such as a device that gives no answer.`,
)

withConfig(
  command('status', 'List who is logged in at the sidecar that runs here.', async (options: StatusFlags) => {
    const { statusCommand } = await import('./commands/status.ts')
    return statusCommand(options, io)
  }),
)
  .option('--json', 'print JSON instead of a table', false)
  .addHelpText(
    'after',
    `
Finds the running sidecar by state_dir, so give it the same configuration. Must run as its user or as root.`,
  )

withConfig(
  command('revoke', 'Revoke grants with all their tokens, at once.', async (options: RevokeFlags) => {
    const { revokeCommand } = await import('./commands/revoke.ts')
    return revokeCommand(options, io)
  }),
)
  .option('--all', 'every grant')
  .option('--client <address>', 'the grants of one client: an IPv4 address, the /64 of an IPv6 one, or unix')
  .option('--grant <id>', 'one grant, by its id in postern status')
  .addHelpText(
    'after',
    `
Connections that were admitted under a revoked grant are closed. The password stays as it is.
Finds the running sidecar by state_dir, so give it the same configuration. Must run as its user or as root.
Exits with 1 when there is no such grant, or none of that client.`,
  )

command(
  'demo',
  'Run the sidecar in front of a sample device, with commands to try.',
  async (options: DemoFlags) => {
    // A demo has nothing to reload; a terminal that is closed ends it, and its folder goes too.
    const service = { ...serviceIo(), onStop: remembered('SIGTERM', 'SIGINT', 'SIGHUP') }
    const { demoCommand } = await import('./commands/demo.ts')
    return demoCommand(options, { ...service, clock: systemClock, node: process.execPath })
  },
)
  .option('--port <port>', 'port of the public listener (8443, or a free one if that is taken)', parsePort)
  .option(
    '--admin-port <port>',
    'port of the admin listener (9464, or a free one if that is taken)',
    parsePort,
  )

command('hash-password', 'Read a password from standard input and print its argon2id hash.', async () => {
  const { hashPasswordCommand } = await import('./commands/hash-password.ts')
  return hashPasswordCommand({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr })
}).addHelpText(
  'after',
  `
The password is read from standard input, one line, so that it is never on a command line:
  postern hash-password > /etc/postern/password      asks for it
  printf '%s' "$SECRET" | postern hash-password`,
)

/** From the first moment on these signals are ours; one that comes before anybody listens is told to the first who does. */
function remembered(...signals: readonly NodeJS.Signals[]): (listener: () => void) => void {
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
      exit(await run(flags).catch((error: unknown) => reportFailure(name, error, io)))
    })
}

function withConfig(target: Command): Command {
  return target
    .option('--config <file>', 'configuration file (YAML); also POSTERN_CONFIG')
    .option(
      '--set <key=value>',
      'set one key, e.g. limits.api.requests=120; may be repeated',
      (value: string, before: readonly string[]) => [...before, value],
      [],
    )
}

function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError('It must be 0 to 65535.')
  return port
}

/** Leaves at once: whatever had to be finished is finished when a command resolves. */
function exit(code: number): never {
  process.exit(code)
}

const BAD_USAGE: ExitCode = 2

program.parseAsync().catch((error: unknown) => {
  if (error instanceof CommanderError) exit(error.exitCode === 0 ? 0 : BAD_USAGE)
  throw error
})
