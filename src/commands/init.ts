import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { firstConfiguration } from '../config/first-configuration.ts'
import { loadConfig } from '../config/load.ts'
import { formatAddress } from '../system/listen-address.ts'
import { codeOf, reasonOf, SetupError } from '../system/setup-error.ts'
import { shellWord } from '../system/text.ts'
import type { DeviceLogin } from './check/finding.ts'
import type { CommandIo, ExitCode, ProgramIo } from './command.ts'
import { DEFAULT_CONFIG, DEFAULT_STATE, OWN_CONFIG } from './help.ts'
import {
  addressFromFlags,
  askForDevice,
  askForPassword,
  NAMES,
  type NewFile,
  type PasswordChoice,
  type PasswordFlags,
  passwordFromFlags,
  requireDevice,
  type TriedDevice,
  tryPassword,
} from './init/answers.ts'
import {
  aboutPlaces,
  askForPlaces,
  firstPlaces,
  type PlacesChoice,
  placesFromFlag,
} from './init/first-places.ts'
import { type InstanceAddresses, makeFolder, withFreeAddresses } from './init/instance-place.ts'
import { type Instance, instanceOf } from './instance.ts'
import { openPrompt, type Terminal } from './prompt.ts'

export interface InitOptions extends PasswordFlags {
  /** Path of the file to write; `postern.yaml` if it is left out. */
  readonly config?: string
  /** The name of one of several devices of this host, in place of `config`. */
  readonly instance?: string
  readonly url?: string
  /** File with the certificate of an https device, or of its authority. */
  readonly deviceCa?: string
  /** How many requests the device takes at once: a number, or `auto`. */
  readonly maxInFlight?: string
  /** Try neither the device nor the password file. */
  readonly skipChecks?: boolean
  /** Takes a password that is short or usual. */
  readonly weak?: boolean
}

interface Answers {
  readonly device: TriedDevice
  readonly password: PasswordChoice
  readonly places: PlacesChoice
}

/**
 * Writes a first configuration. On a terminal it asks for the values that the flags leave out, and tries the device and the password before
 * it writes anything. Without a terminal it asks nothing: a missing flag is exit code 2, a device that does not answer is 1. Rejects with
 * `SetupError`, and then has written nothing.
 */
export async function initCommand(
  options: InitOptions,
  io: CommandIo & Terminal & Pick<ProgramIo, 'typed'>,
): Promise<ExitCode> {
  const instance = options.instance === undefined ? undefined : instanceOf(options.instance, io)
  const config = instance?.config ?? resolve(options.config ?? OWN_CONFIG)
  if (instance !== undefined) makeFolder(io)
  requirePlace(config, instance === undefined ? 'name another file with --config' : 'choose another name')
  const device = options.url === undefined ? undefined : addressFromFlags(options.url, options.deviceCa)
  if (device === undefined && options.deviceCa !== undefined) {
    throw new SetupError('--device-ca belongs to --url')
  }
  const given = { device, password: passwordFromFlags(options), places: placesFromFlag(options.maxInFlight) }
  const ask =
    io.stdin.isTTY === true &&
    !(options.skipChecks === true && device !== undefined && given.password !== undefined)
  const answers = ask
    ? await answersFromTerminal(options, given, passwordBeside(config, instance), io)
    : await answersFromFlags(options, given, io)
  const places = firstPlaces(answers.places)
  const stateDir = instance?.stateDir ?? stateDirBeside(config)
  const write = (addresses?: InstanceAddresses): Made => {
    const text = firstConfiguration({
      ...answers.device,
      ...answers.password,
      ...places,
      file: config,
      title:
        '# Written by postern init. A relative path would be relative to the working directory of Postern.',
      stateDir,
      addresses: addresses && {
        listen: formatAddress(addresses.listen),
        admin: formatAddress(addresses.admin),
      },
      program: io.typed,
      ...(instance === undefined ? {} : { flag: `--instance ${instance.name}` }),
    })
    loadConfig({ file: { path: config, text } })
    const files = [answers.password.newFile ?? [], { path: config, text }].flat()
    writeNewFiles(files)
    const port = addresses?.listen.port
    const login = answers.password.auth === undefined ? answers.device.login : undefined
    return {
      program: io.typed,
      config,
      instance,
      port,
      stateDir,
      files: files.map(({ path }) => path),
      login,
      places: aboutPlaces(places),
    }
  }
  const warn = (sentence: string): void => void io.stderr.write(`postern init: ${sentence}\n`)
  io.stdout.write(nextSteps(instance === undefined ? write() : await withFreeAddresses(io, warn, write)))
  return 0
}

/** The file for a typed password. Each instance has its own. */
function passwordBeside(config: string, instance: Instance | undefined): string {
  return join(dirname(config), instance === undefined ? 'password' : `${instance.name}.password`)
}

type Given = { readonly [K in keyof Answers]: Answers[K] | undefined }

/** Throws `SetupError` if the file exists or its folder cannot be written. Called before any question: no password is typed in vain. */
function requirePlace(config: string, another: string): void {
  if (existsSync(config)) {
    throw new SetupError(`${config} exists, and init overwrites nothing`, {
      remedy: `edit it, remove it, or ${another}`,
    })
  }
  try {
    accessSync(dirname(config), constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new SetupError(`cannot write ${config}: ${reasonOf(error)}`, {
      remedy: `create the folder, or ${another}`,
    })
  }
}

/** The state folder: below /var/lib for the configuration of packages, otherwise beside the configuration. */
function stateDirBeside(config: string): string {
  return config === DEFAULT_CONFIG ? DEFAULT_STATE : join(dirname(config), 'state')
}

async function answersFromTerminal(
  { skipChecks = false, weak = false }: InitOptions,
  given: Given,
  passwordFile: string,
  io: Terminal,
): Promise<Answers> {
  using prompt = openPrompt(io, 'cancelled; nothing is written')
  const device =
    skipChecks && given.device !== undefined
      ? given.device
      : await askForDevice(given.device, given.password?.auth, prompt)
  if (given.password !== undefined && !skipChecks) await requirePassword(given.password, weak)
  const stored = { file: passwordFile, weak, login: device.login }
  const password = given.password ?? (await askForPassword(prompt, stored))
  // Flags for the device and its password are a whole command, and ask nothing.
  const isWhole = given.device !== undefined && given.password !== undefined
  return { device, password, places: given.places ?? (isWhole ? 'default' : await askForPlaces(prompt)) }
}

async function answersFromFlags(
  { skipChecks = false, weak = false }: InitOptions,
  given: Given,
  io: CommandIo,
): Promise<Answers> {
  const { device, password, places = 'default' } = given
  const missing: string[] = []
  if (device === undefined) missing.push('--url is missing: name the device, such as --url http://192.0.2.7')
  if (password === undefined) {
    missing.push(
      '--password-file is missing: name a file that postern hash-password wrote, or --htpasswd, --shadow or --device-login with --user',
    )
  }
  if (device === undefined || password === undefined) {
    throw new SetupError([...missing, 'there is no terminal to ask on'])
  }
  if (skipChecks) return { device, password, places }
  await requirePassword(password, weak)
  const tried = await requireDevice(device, password.auth, (text) => void io.stderr.write(text))
  return { device: tried, password, places }
}

async function requirePassword(choice: PasswordChoice, weak: boolean): Promise<void> {
  const { result, message, remedy } = await tryPassword(choice, weak)
  if (result === 'failed') throw new SetupError(message, { remedy: remedy ?? undefined })
}

interface Made {
  /** The words that start Postern. */
  readonly program: string
  readonly config: string
  readonly instance?: Instance | undefined
  /** The port for clients; default: 8443. */
  readonly port?: number | undefined
  readonly stateDir: string
  readonly files: readonly string[]
  /** The login that the device asks for, if `upstream.auth` is not set yet. */
  readonly login?: DeviceLogin | undefined
  /** What the places mean; empty if there is nothing to say. */
  readonly places?: string
}

/** The next steps after `init`, with commands to copy. */
export function nextSteps(made: Made): string {
  const { program, config, instance, port = 8443, stateDir, files, login, places = '' } = made
  const certificate = shellWord(join(stateDir, 'tls', 'cert.pem'))
  return `
Written: ${files.join(', ')}
${login === undefined ? '' : `\n${signingIn(login, config)}`}${places === '' ? '' : `\n${places}`}
${instance === undefined ? ofFile(program, config) : ofInstance(program, instance)} the first token. It asks for the device password and
does not show it:
  (trap 'stty echo' EXIT; stty -echo; printf 'Password: ' >&2; IFS= read -r p; echo >&2; printf %s "$p") |
    curl -sS --cacert ${certificate} https://localhost:${port}/oauth/token -d grant_type=password --data-urlencode password@-
`
}

function signingIn(login: DeviceLogin, config: string): string {
  return `The device asks for a ${NAMES[login]} login of its own, which clients cannot answer through Postern. Set upstream.auth in
${config}, as its comment shows, and Postern signs in for them.
`
}

function ofFile(program: string, config: string): string {
  const flag = `--config ${shellWord(config)}`
  return `Next, try everything in it, and start Postern:
  ${program} check ${flag}
  ${program} serve ${flag}

Then, in another terminal,`
}

function ofInstance(program: string, { name }: Instance): string {
  return `Next, as root, try everything in it, and start Postern, now and at every boot:
  runuser -u postern -- ${program} check --instance ${name}
  systemctl enable --now postern-device@${name}

Then, as root,`
}

/**
 * Writes files that must not exist yet, all or none. Their mode is 0600. If root writes into a folder of another group, that group can read
 * the file (0640), because the service may run as a user of this group. Throws `SetupError`.
 */
export function writeNewFiles(files: readonly NewFile[]): void {
  const made: string[] = []
  for (const { path, text } of files) {
    try {
      const file = openSync(path, 'wx', 0o600)
      made.push(path)
      writeFileSync(file, text)
      closeSync(file)
      shareWithFolder(path)
    } catch (error) {
      for (const each of made) rmSync(each, { force: true })
      const reason = codeOf(error) === 'EEXIST' ? 'it exists, and init overwrites nothing' : reasonOf(error)
      throw new SetupError(`cannot write ${path}: ${reason}`, { cause: error })
    }
  }
}

function shareWithFolder(path: string): void {
  const [own, folder] = [statSync(path), statSync(dirname(path))]
  if (own.uid !== 0 || folder.gid === 0) return
  chownSync(path, own.uid, folder.gid)
  chmodSync(path, 0o640)
}
