import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { ensurePermissions, type Needs } from '../system/permissions.ts'
import { VERSION } from '../version.ts'
import type { CheckOptions } from './check.ts'
import { type ExitCode, type ProgramIo, reportFailure } from './command.ts'
import type { ConfigOptions } from './configuration.ts'
import type { DemoOptions } from './demo.ts'
import type { ExplainOptions } from './explain.ts'
import type { HashPasswordOptions } from './hash-password.ts'
import type { HealthyOptions } from './healthy.ts'
import * as help from './help.ts'
import type { InitOptions } from './init.ts'
import type { IssueOptions } from './issue.ts'
import { exitCodeWith, helpOutput } from './output.ts'
import type { ProposeOptions } from './propose.ts'
import type { RevokeOptions } from './revoke.ts'
import type { StatusOptions } from './status.ts'
import { typedDuration } from './times.ts'
import type { TryOptions } from './try.ts'
import type { VerifyCommandFlags } from './verify.ts'

const BAD_USAGE: ExitCode = 2

/**
 * Runs the command that the command line names. Resolves to the exit code when all work of the command is done and all its output is
 * written.
 */
export async function runProgram(io: ProgramIo): Promise<number> {
  let code = 0
  const onResult = (result: number): void => {
    code = result
  }
  try {
    await defineProgram(io, onResult, io.args[0]).parseAsync(io.args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return exitCodeWith('postern', error.exitCode === 0 ? 0 : BAD_USAGE, io)
  }
  return code
}

/**
 * The commands and their options: the source of `--help`, the man page and the shell completions. `onResult` gets the exit code of the
 * command that ran. `named`: the command that will run. For `serve` no other command is defined, which makes a start 2 ms shorter.
 */
export function defineProgram(io: ProgramIo, onResult: (code: number) => void, named?: string): Command {
  const program = new Command('postern')
    .description(help.PROGRAM_DESCRIPTION)
    .version(VERSION)
    .helpCommand(false)
    .showHelpAfterError('(postern --help shows the commands, postern COMMAND --help their options)')
    .exitOverride()
    .configureOutput(helpOutput(io))
    .addHelpText('after', help.PROGRAM)

  const located = async <Options extends object>(name: string, options: Options): Promise<Options> =>
    (await import('./own-config.ts')).withOwnConfig(options, name, io)

  /** `run` gets the operands, then the options. */
  function command<Given extends unknown[]>(
    name: string,
    description: string,
    run: (...given: Given) => Promise<number>,
    needs?: Needs,
  ): Command {
    return program
      .command(name)
      .description(description)
      .version(VERSION)
      .allowExcessArguments(false)
      .action(async (...given: Given) => onResult(await runCommand(name, () => run(...given), io, needs)))
  }

  withConfig(
    command(
      'serve',
      'Run the sidecar in front of a device.',
      async (options: ConfigOptions) =>
        (await import('./serve.ts')).serveCommand(await located('serve', options), io),
      [],
    ),
  ).addHelpText('after', help.SERVE)
  if (named === 'serve') return program

  withConfig(
    command(
      'check',
      'Say whether Postern can start: test the files, addresses and device of the configuration.',
      async (pages: readonly string[], options: CheckOptions) =>
        (await import('./check.ts')).checkCommand({ ...(await located('check', options)), pages }, io),
    ),
  )
    .argument('[path...]', 'pages of the device to request, too, as a client would')
    .option('--json', 'print one JSON document: the checks, and the effective configuration', false)
    .option('--quiet', 'print only warnings and failures', false)
    .option('--print', 'print the effective configuration, too, with its secrets as ***', false)
    .option('--reload', 'test only what a reload reads: configuration, certificate, headers', false)
    .option('--uploads <path>', 'send two POSTs to this path of the device: does it read chunks?')
    .addHelpText('after', help.CHECK)

  withConfig(
    command(
      'healthy',
      'Ask the running sidecar whether it is healthy: exit code 0 if it is, 1 if not.',
      async (options: HealthyOptions) =>
        (await import('./healthy.ts')).healthyCommand(await located('healthy', options), io),
    ),
  )
    .addOption(
      new Option(
        '--admin <address>',
        'ask there, and read no configuration; https://ADDRESS over TLS, any certificate',
      )
        .argParser(parseOnce)
        .conflicts(['config', 'instance', 'set']),
    )
    .option('--ready', 'ask whether it is ready for traffic, too: /readyz in place of /healthz', false)
    .addHelpText('after', help.HEALTHY)

  withConfig(
    command(
      'status',
      'Say what is wrong with the running sidecar, and list the grants: who is logged in.',
      async (options: StatusOptions) =>
        (await import('./status.ts')).statusCommand(await located('status', options), io),
    ),
  )
    .option('--json', 'print JSON instead of a table', false)
    .addOption(stateDirOption())
    .addHelpText('after', help.STATUS)

  withConfig(
    command(
      'explain',
      'Tell what the running sidecar decided about one of the last requests, and why.',
      async (id: string | undefined, options: ExplainOptions) =>
        (await import('./explain.ts')).explainCommand(id, await located('explain', options), io),
    ),
  )
    .argument('[id]', 'X-Request-Id of the response, or request_id of the access log')
    .option('--reason <name>', 'list those refused for this reason, such as rate-limited or upstream')
    .option('--status <code>', 'list those with this status, such as 500 or 5xx')
    .option('--json', 'print JSON', false)
    .addOption(stateDirOption())
    .addHelpText('after', help.EXPLAIN)

  withConfig(
    command(
      'issue',
      'Issue one access token for a client that cannot log in: a probe, a script, a guest.',
      async (options: IssueOptions) =>
        (await import('./issue.ts')).issueCommand(await located('issue', options), io),
    ),
  )
    .option('--for <time>', 'how long it is valid: 1m to 366d, such as 90d or 2h (required)', parseOnce)
    .option('--name <name>', 'whose allow it has: an entry of passwords (required with passwords)', parseOnce)
    .option('--label <label>', 'what to call it in postern status: at most 64 characters', parseOnce)
    .option('--json', 'print JSON: accessToken, grant, expiresAt', false)
    .addHelpText('after', help.ISSUE)

  withConfig(
    command('revoke', 'Revoke grants and all their tokens at once.', async (options: RevokeOptions) =>
      (await import('./revoke.ts')).revokeCommand(await located('revoke', options), io),
    ),
  )
    .option('--all', 'every grant')
    .option('--client <address>', 'those of one client: an IPv4 address, the /64 of an IPv6 one, or unix')
    .option('--grant <id>', 'one grant, by its id in postern status')
    .addOption(stateDirOption())
    .addHelpText('after', help.REVOKE)

  withConfig(
    command(
      'retry',
      'Try again how many requests the device takes at once, after that has broken it.',
      async (options: ConfigOptions) =>
        (await import('./retry.ts')).retryCommand(await located('retry', options), io),
    ),
  )
    .addOption(stateDirOption())
    .addHelpText('after', help.RETRY)

  command(
    'init',
    'Write a first configuration: ask for the device and its password, and try both.',
    async ({ dropIn, ...options }: InitOptions & { readonly dropIn: boolean }) =>
      dropIn
        ? (await import('./init/drop-in.ts')).dropInCommand(await located('init', options), io)
        : (await import('./init.ts')).initCommand(options, { ...io, stdin: io.stdin() }),
  )
    .option('--config <file>', 'the file to write (default: see below)')
    .addOption(instanceOption('write that of one of several devices of this host, with free ports'))
    .option('--url <url>', 'address of the device, such as http://192.0.2.7')
    .option('--device-ca <file>', 'certificate of an https device, or of its authority (PEM)')
    .option(
      '--max-in-flight <number>',
      'requests at once that the device takes; auto: learned, up to 64 (default: up to 4)',
    )
    .option('--password-file <file>', 'file with one line: the device password, or a hash of it')
    .option('--htpasswd <file>', 'htpasswd file with the hash of the password of --user')
    .option('--shadow <file>', 'the same for a file like /etc/shadow')
    .addOption(
      new Option('--device-login <kind>', 'the device checks each password, by this login of --user').choices(
        ['basic', 'digest'],
      ),
    )
    .option('--user <name>', 'the account of the device password')
    .option('--skip-checks', 'try neither the device nor the password file', false)
    .option('--weak', 'take a password that is short or one of the usual ones', false)
    .addOption(
      new Option('--drop-in', 'only print a drop-in for the unit: the addresses that the service may reach')
        .default(false)
        .conflicts([
          'url',
          'deviceCa',
          'maxInFlight',
          'passwordFile',
          'htpasswd',
          'shadow',
          'deviceLogin',
          'user',
        ])
        .conflicts(['skipChecks', 'weak']),
    )
    .addHelpText('after', help.INIT)

  command(
    'propose',
    'Write the allow that fits the requests in an access log.',
    async (files: readonly string[], options: ProposeOptions) =>
      (await import('./propose.ts')).proposeCommand(files, options, io),
  )
    .argument('[file...]', 'logs to read; none, or -, is standard input')
    .option('--name <name>', 'only requests of this name of passwords', parseOnce)
    .option('--since <time>', 'only requests of the last 7d, 12h and the like', parseSince)
    .option('--config <file>', 'also say what of the allow in this configuration is unused', parseOnce)
    .addOption(instanceOption('the same for the configuration of one of several devices of this host'))
    .addHelpText('after', help.PROPOSE)

  withConfig(
    command(
      'try',
      'Request a path of the device through the running sidecar, as a client does.',
      async (path: string, options: TryOptions) =>
        (await import('./try.ts')).tryCommand(path, await located('try', options), io),
    ),
  )
    .argument('<path>', 'path to request, such as /api/status')
    .option(
      '--token-file <file>',
      'file with an access token; - is standard input (default: asks for the password)',
      parseOnce,
    )
    .addHelpText('after', help.TRY)

  const verify = command(
    'verify',
    'Check from outside, over real connections, whether a server keeps the documented API.',
    async (url: string, flags: VerifyCommandFlags) => {
      const { verifyCommand } = await import('./verify.ts')
      // With SIGHUP: otherwise a closed terminal would end the process, and the tokens of the run would stay.
      return verifyCommand(url, flags, { ...io, onStop: io.onSignals('SIGTERM', 'SIGINT', 'SIGHUP') })
    },
  )
    .argument('<url>', 'address of the server, such as https://device.example')
    .addHelpText('after', help.VERIFY)
  for (const [flag, description] of help.VERIFY_FLAGS) verify.option(flag, description, parseOnce)

  command(
    'demo',
    'Run the sidecar in front of a sample device, with commands to try.',
    async (options: DemoOptions) => {
      // The demo has nothing to reload. SIGHUP, as from a closed terminal, stops it and removes its folder.
      const onSignal = io.onSignals('SIGTERM', 'SIGINT', 'SIGHUP')
      const onStop = (stop: () => void): void => {
        for (const on of [onSignal, io.onLostOutput]) on(stop)
      }
      const { demoCommand } = await import('./demo.ts')
      return demoCommand(options, { ...io, ...io.daemon(), onStop })
    },
  )
    .option('--device <address>', 'only the sample device, on this address, such as 127.0.0.1:8080')
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

  command(
    'hash-password',
    'Read a password from standard input and print its argon2id hash.',
    async (options: HashPasswordOptions) =>
      (await import('./hash-password.ts')).hashPasswordCommand({ ...io, stdin: io.stdin() }, options),
    [],
  )
    .option('--weak', 'take a password that is short or one of the usual ones', false)
    .option('--for-board', 'a hash for little memory: 7 MiB in place of 19', false)
    .addHelpText('after', help.HASH_PASSWORD)

  return program
}

/**
 * Runs a command with the permissions that it needs, and reports its failure. Resolves to its exit code.
 *
 * @param needs empty for `serve`, which asks for its permissions itself after it has read the configuration
 */
async function runCommand(
  name: string,
  run: () => Promise<number>,
  io: ProgramIo,
  needs: Needs = 'everything',
): Promise<number> {
  let code: number
  try {
    ensurePermissions(needs, io.permissions)
    code = await run()
  } catch (error) {
    // If output is lost, only the loss is reported.
    code = io.lostOutput() === undefined ? reportFailure(name, error, io) : 1
  }
  return exitCodeWith(`postern ${name}`, code, io)
}

function withConfig(target: Command): Command {
  return target
    .option(
      '--config <file>',
      `configuration file (YAML); also POSTERN_CONFIG (default: postern.yaml, or ${help.DEFAULT_CONFIG})`,
    )
    .addOption(instanceOption('one of several devices of this host: its file and state folder'))
    .addOption(
      new Option('--set <key=value>', 'set one key, e.g. limits.api.requests=120; may be repeated')
        .argParser((value: string, before: readonly string[]) => [...before, value])
        .default([], 'none'),
    )
}

/** See `whereabouts.ts`. */
function stateDirOption(): Option {
  return new Option('--state-dir <folder>', 'the state folder of the sidecar: no configuration is read')
    .argParser(parseOnce)
    .conflicts(['config', 'instance', 'set'])
}

/** See `instance.ts`. */
function instanceOption(description: string): Option {
  return new Option('--instance <name>', description).argParser(parseOnce).conflicts('config')
}

/** Refuses a second value of an option: otherwise the first would be ignored. */
function parseOnce(value: string, before: string | undefined): string {
  if (before !== undefined) throw new InvalidArgumentError('The option must not be given twice.')
  return value
}

function parseSince(text: string, before: number | undefined): number {
  if (before !== undefined) throw new InvalidArgumentError('The option must not be given twice.')
  const since = typedDuration(text)
  if (since === undefined) throw new InvalidArgumentError('It must be a time such as 7d, 12h or 30m.')
  return since
}

function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError('It must be 0 to 65535.')
  return port
}
