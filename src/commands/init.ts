import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { firstConfiguration, REVOCATION_PATH, shippedConfiguration } from '../config/first-configuration.ts'
import { loadConfig } from '../config/load.ts'
import { formatAddress } from '../system/listen-address.ts'
import { codeOf, reasonOf, SetupError } from '../system/setup-error.ts'
import type { CommandIo, ExitCode, ProgramIo } from './command.ts'
import { DEFAULT_STATE, OWN_CONFIG } from './help.ts'
import {
  addressFromFlags,
  askForDevice,
  askForPassword,
  type NewFile,
  type PasswordChoice,
  type PasswordFlags,
  passwordFromFlags,
  requireDevice,
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
import type { TriedDevice } from './init/tried-device.ts'
import { type Instance, instanceOf } from './instance.ts'
import { type NextCommands, nextCommands } from './next-commands.ts'
import { findOwnConfig } from './own-config.ts'
import { openPrompt, type Terminal } from './prompt.ts'

export interface InitOptions extends PasswordFlags {
  /** Path of the file to write. Default: the file of the package while it is as shipped, otherwise `postern.yaml`. */
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

type InitIo = CommandIo & Terminal & Pick<ProgramIo, 'typed' | 'permissions' | 'clock'>

/**
 * Writes a first configuration. On a terminal it asks for the values that the flags leave out, and tries the device and the password before
 * it writes anything. Without a terminal it asks nothing: a missing flag is exit code 2, a device that does not answer is 1. Rejects with
 * `SetupError`, and then has written nothing.
 */
export async function initCommand(options: InitOptions, io: InitIo): Promise<ExitCode> {
  const instance = options.instance === undefined ? undefined : instanceOf(options.instance, io)
  const config =
    instance?.config ?? resolve(io.folder ?? '', options.config ?? untouched(io.defaultConfig) ?? OWN_CONFIG)
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
  const stateDir = instance?.stateDir ?? stateDirBeside(config, io)
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
    const files = [answers.password.newFile ?? [], { path: config, text, replaces: isShipped(config) }].flat()
    writeNewFiles(files)
    const login = answers.password.auth === undefined ? answers.device.login : undefined
    return {
      config,
      files: files.map(({ path }) => path),
      login,
      hasRevocation: answers.device.hasRevocation,
      places: aboutPlaces(places),
    }
  }
  const warn = (sentence: string): void => void io.stderr.write(`postern init: ${sentence}\n`)
  const made = instance === undefined ? write() : await withFreeAddresses(io, warn, write)
  const named =
    instance === undefined ? { config, ...(await ownFlag(config, io, warn)) } : { instance: instance.name }
  io.stdout.write(nextSteps(made, nextCommands({ set: [], ...named }, io)))
  return 0
}

/** The file for a typed password. Each instance has its own. */
function passwordBeside(config: string, instance: Instance | undefined): string {
  return join(dirname(config), instance === undefined ? 'password' : `${instance.name}.password`)
}

type Given = { readonly [K in keyof Answers]: Answers[K] | undefined }

/** Whether a file is that of the package, as it was shipped. */
function isShipped(file: string): boolean {
  try {
    return readFileSync(file, 'utf8') === shippedConfiguration()
  } catch {
    return false
  }
}

/** The configuration of the package while it is as shipped, if this user may write it. */
function untouched(file: string | undefined): string | undefined {
  if (file === undefined || !isShipped(file)) return undefined
  try {
    accessSync(file, constants.W_OK)
    return file
  } catch {
    return undefined
  }
}

/** Whether commands find the file where this one was typed. If they would find but not take it, says why. */
async function ownFlag(
  config: string,
  io: InitIo,
  warn: (sentence: string) => void,
): Promise<{ readonly isOwn?: true }> {
  if (config !== join(io.folder ?? '', OWN_CONFIG)) return {}
  try {
    return (await findOwnConfig(io)) === config ? { isOwn: true } : {}
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    warn(error.message)
    return {}
  }
}

/** Throws `SetupError` if the file exists or its folder cannot be written. Called before any question: no password is typed in vain. */
function requirePlace(config: string, another: string): void {
  if (existsSync(config) && !isShipped(config)) {
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
function stateDirBeside(config: string, { defaultConfig, defaultState = DEFAULT_STATE }: InitIo): string {
  return config === defaultConfig ? defaultState : join(dirname(config), 'state')
}

async function answersFromTerminal(
  { skipChecks = false, weak = false }: InitOptions,
  given: Given,
  passwordFile: string,
  io: Terminal & Pick<InitIo, 'clock'>,
): Promise<Answers> {
  using prompt = openPrompt(io, 'cancelled; nothing is written')
  const device =
    skipChecks && given.device !== undefined
      ? given.device
      : await askForDevice(given.device, given.password?.auth, prompt, io.clock)
  if (given.password !== undefined && !skipChecks) await requirePassword(given.password, weak)
  const password =
    given.password ?? (await askForPassword(prompt, { file: passwordFile, weak }, device, io.clock))
  // Flags for the device and its password are a whole command, and ask nothing.
  const isWhole = given.device !== undefined && given.password !== undefined
  return { device, password, places: given.places ?? (isWhole ? 'default' : await askForPlaces(prompt)) }
}

async function answersFromFlags(
  { skipChecks = false, weak = false }: InitOptions,
  given: Given,
  io: CommandIo & Pick<InitIo, 'clock'>,
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
  const tried = await requireDevice(device, password.auth, (text) => void io.stderr.write(text), io.clock)
  return { device: tried, password, places }
}

async function requirePassword(choice: PasswordChoice, weak: boolean): Promise<void> {
  const { result, message, remedy } = await tryPassword(choice, weak)
  if (result === 'failed') throw new SetupError(message, { remedy: remedy ?? undefined })
}

interface Made {
  readonly config: string
  readonly files: readonly string[]
  /** The login of the device, if `upstream.auth` is not set yet. */
  readonly login?: TriedDevice['login']
  /** Whether the device itself has the path at which clients log out. */
  readonly hasRevocation?: boolean | undefined
  /** What the places mean; empty if there is nothing to say. */
  readonly places: string
}

/** The next steps after `init`, with three commands to copy. */
function nextSteps({ config, files, login, hasRevocation, places }: Made, commands: NextCommands): string {
  const notes = [
    ...(login === undefined ? [] : [signingIn(login.words, config)]),
    ...(hasRevocation === true ? [LOGGING_OUT] : []),
    ...(places === '' ? [] : [places]),
  ]
  return `
Written: ${files.join(', ')}
${notes.map((note) => `\n${note}`).join('')}
Next: try everything in it, start Postern, and, in another terminal, log in and
ask for a page of the device:
  ${commands.check}
  ${commands.serve}
  ${commands.try}
`
}

function signingIn(words: string, config: string): string {
  return `The device has ${words}.
Clients cannot answer it through Postern. Set upstream.auth, as its comment in
${config} shows, and Postern signs in for them.
`
}

const LOGGING_OUT = `The device itself has ${REVOCATION_PATH}, where clients would log out of Postern.
To let them, name another path in oauth.revocation_path.
`

/**
 * Writes files, all or none. They must not exist yet, except one that is replaced. Their mode is 0600. If root writes into a folder of
 * another group, that group can read the file (0640), because the service may run as a user of this group. Throws `SetupError`.
 */
export function writeNewFiles(files: readonly NewFile[]): void {
  const made: string[] = []
  for (const { path, text, replaces = false } of files) {
    const draft = replaces ? `${path}.new` : path
    try {
      const file = openSync(draft, 'wx', 0o600)
      made.push(draft)
      writeFileSync(file, text)
      closeSync(file)
      shareWithFolder(draft)
      if (replaces) renameSync(draft, path)
    } catch (error) {
      for (const each of made) rmSync(each, { force: true })
      const reason = codeOf(error) === 'EEXIST' ? 'it exists, and init overwrites nothing' : reasonOf(error)
      throw new SetupError(`cannot write ${draft}: ${reason}`, { cause: error })
    }
  }
}

function shareWithFolder(path: string): void {
  const [own, folder] = [statSync(path), statSync(dirname(path))]
  if (own.uid !== 0 || folder.gid === 0) return
  chownSync(path, own.uid, folder.gid)
  chmodSync(path, 0o640)
}
