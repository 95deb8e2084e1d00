import { existsSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { parseAuthority, parseUpstreamUrl, targetProblem } from '../../config/address.ts'
import { type FirstPassword, flow } from '../../config/first-configuration.ts'
import { loadConfig } from '../../config/load.ts'
import { passwordSources } from '../../config/password-fields.ts'
import type { Parsed, YamlMapping } from '../../config/yaml.ts'
import { hashPassword } from '../../password/key-derivation.ts'
import { readSource } from '../../password/read-source.ts'
import { weaknessOf } from '../../password/strength.ts'
import type { Clock } from '../../system/clock.ts'
import { SetupError } from '../../system/setup-error.ts'
import { type CheckResult, describeResult } from '../check/finding.ts'
import { PASSWORD } from '../check/passwords.ts'
import { WIDTH } from '../columns.ts'
import { askTwice, CHOOSE_ANOTHER } from '../hash-password.ts'
import { Cancelled, type Prompt } from '../prompt.ts'
import {
  type DeviceAddress,
  httpLogin,
  type SeenLogin,
  type TriedDevice,
  tryAccount,
  tryDevice,
} from './tried-device.ts'

/** The address of `--url` and the file of `--device-ca`. Throws `SetupError` if the address is invalid. */
export function addressFromFlags(url: string, ca: string | undefined): DeviceAddress {
  const parsed = parseUpstreamUrl(url)
  if ('problem' in parsed) throw new SetupError(`--url: ${parsed.problem}`)
  return { url, tls: ca === undefined ? undefined : flow({ ca: resolve(ca) }) }
}

/** Tries an address without a terminal. Throws `SetupError` if the device does not answer. */
export async function requireDevice(
  address: DeviceAddress,
  auth: FirstPassword['auth'],
  say: (text: string) => void,
  clock: Clock,
): Promise<TriedDevice> {
  const told = (found: CheckResult, line: string | undefined): void =>
    say(described(found, line, Number.POSITIVE_INFINITY))
  const { device, result, tls } = await tryDevice(address, auth, told, clock)
  if (result.result !== 'failed') return device
  const trust =
    tls === undefined
      ? 'write the configuration nevertheless with --skip-checks'
      : `write the configuration with --skip-checks and add to its upstream: tls: ${tls}`
  throw new SetupError('nothing is written, because of the device', {
    exitCode: 1,
    remedy: `correct --url${tls === undefined ? '' : ', name the certificate of its authority with --device-ca'}, or ${trust}`,
  })
}

/** The result of an attempt, and the line that `init` writes because of it. */
function described(result: CheckResult, line: string | undefined, columns: number): string {
  const written = line === undefined ? '' : `        init writes it: upstream: {${line}}\n`
  return `${describeResult(result, columns)}${written}`
}

/**
 * Asks for the address, if there is none yet, and tries it, until the device answers or the operator uses the address anyway. Offers to
 * write the value of `upstream.tls` with which the device works.
 */
export async function askForDevice(
  given: DeviceAddress | undefined,
  auth: FirstPassword['auth'],
  prompt: Prompt,
  clock: Clock,
): Promise<TriedDevice> {
  let address = given
  for (;;) {
    address ??= { ...given, url: await askForAddress(prompt) }
    prompt.say(`Trying ${address.url} ...\n`)
    const told = (found: CheckResult, line: string | undefined): void =>
      prompt.say(described(found, line, WIDTH))
    const { device, result, tls } = await prompt.during(tryDevice(address, auth, told, clock))
    if (result.result !== 'failed') return device
    const instead = await askInstead(tls, prompt)
    if (instead === 'use') return address
    if (instead === 'ask') address = undefined
    else address = 'tls' in instead ? { url: address.url, tls: instead.tls } : { ...given, url: instead.url }
  }
}

/** The operator's choice for an address at which no device answers: use it, ask again, write a value of TLS, or try another URL. */
type Instead = 'use' | 'ask' | { readonly tls: string } | { readonly url: string }

/**
 * Asks for the choice. README.md tells people to type the password next, so a typed password may arrive here. So Enter alone asks again,
 * and only an answer that cannot be a password is shown and used: one of the letters, a URL, or an IP address.
 */
async function askInstead(tls: string | undefined, prompt: Prompt): Promise<Instead> {
  const offer = tls === undefined ? '' : `t: write tls: ${tls}. `
  for (;;) {
    const answer = await prompt.askUnseen(
      `${offer}y: use the address anyway. n: enter another address. Or type its URL now: `,
      (given) => /^(?:y|yes|n|no|t)$/i.test(given) || (isPlainlyAddress(given) && 'value' in read(given)),
    )
    if (/^y(?:es)?$/i.test(answer)) return 'use'
    if (/^no?$/i.test(answer)) return 'ask'
    if (/^t$/i.test(answer)) {
      if (tls !== undefined) return { tls }
      prompt.say('  There is nothing to write for TLS\n')
    } else if (isPlainlyAddress(answer)) {
      const url = completed(answer, prompt)
      if (url !== undefined) return { url }
    } else if (answer !== '') {
      prompt.say(
        '  That is no URL, such as http://192.0.2.7. It may have been the password, so it is neither tried nor shown\n',
      )
    }
  }
}

/** Whether a text is an IP address, or begins with a scheme for devices. A host name alone could be a password. */
function isPlainlyAddress(text: string): boolean {
  if (/^http(?:s?:\/\/|\+unix:)/i.test(text)) return true
  const { host = '', valid = false } = parseAuthority(text) ?? {}
  return valid && isIP(host) !== 0
}

async function askForAddress(prompt: Prompt): Promise<string> {
  for (;;) {
    const url = completed(await prompt.ask('Address of the device, such as http://192.0.2.7: '), prompt)
    if (url !== undefined) return url
  }
}

/** The address as a URL. If the text is no address, shows the problem and returns undefined. */
function completed(answer: string, prompt: Prompt): string | undefined {
  const parsed = read(answer)
  if ('value' in parsed) return parsed.value
  prompt.say(`  ${parsed.problem}\n`)
  return undefined
}

/** An address as a URL: without a scheme, http is meant. */
function read(answer: string): Parsed<string> {
  const url = /^[\w.[\]:-]+$/.test(answer) && !/^https?:/.test(answer) ? `http://${answer}` : answer
  const parsed = parseUpstreamUrl(url)
  return 'problem' in parsed ? parsed : { value: url }
}

export interface PasswordFlags {
  readonly passwordFile?: string
  readonly htpasswd?: string
  readonly shadow?: string
  readonly deviceLogin?: 'basic' | 'digest'
  readonly user?: string
}

/** The source of the password, and the password file that has to be written for it. */
export interface PasswordChoice extends FirstPassword {
  readonly newFile?: NewFile
}

export interface NewFile {
  readonly path: string
  readonly text: string
  /** The file exists, and this text takes its place. */
  readonly replaces?: boolean
}

const SOURCES = '--password-file, --htpasswd, --shadow and --device-login'

/** The choice that the flags make; undefined if they make none. Throws `SetupError` if they contradict each other. */
export function passwordFromFlags(flags: PasswordFlags): PasswordChoice | undefined {
  const { passwordFile, htpasswd, shadow, deviceLogin, user } = flags
  const given = [passwordFile, htpasswd, shadow, deviceLogin].filter((each) => each !== undefined)
  if (given.length > 1) throw new SetupError(`name only one of ${SOURCES}`)
  if (user !== undefined && (given.length === 0 || passwordFile !== undefined)) {
    throw new SetupError('--user belongs to --htpasswd, --shadow or --device-login')
  }
  if (passwordFile !== undefined) return { password: { file: resolve(passwordFile) } }
  if (given.length === 0) return undefined
  if (user === undefined) throw new SetupError('--user is missing: name the account, such as --user admin')
  if (htpasswd !== undefined) return { password: { htpasswd: { file: resolve(htpasswd), user } } }
  if (shadow !== undefined) return { password: { shadow: { file: resolve(shadow), user } } }
  return checkedByDevice(deviceLogin ?? 'digest', user)
}

function checkedByDevice(login: 'basic' | 'digest', user: string): PasswordChoice {
  return { password: { device: true }, auth: { kind: login, user } }
}

/** Whether the password can be used. A file with a password in plain text that is short or usual fails, unless `weak`. */
export async function tryPassword({ password, auth }: PasswordChoice, weak: boolean): Promise<CheckResult> {
  // The address of the device does not matter: only the password is tried.
  const config = loadConfig({ object: { upstream: { url: 'http://127.0.0.1', auth }, password } })
  const { result: checked } = await PASSWORD.run(config)
  const [source] = passwordSources(config)
  if (weak || source === undefined || checked.result === 'failed') return checked
  const found = await readSource(source)
  const isPlain = 'line' in found && found.credential.kind === 'plain'
  const weakness = isPlain ? weaknessOf(found.line) : undefined
  if (weakness === undefined) return checked
  return {
    name: checked.name,
    result: 'failed',
    message: `${source.file}: the password ${weakness}`,
    meaning: null,
    remedy: CHOOSE_ANOTHER,
  }
}

function menu(file: string, login: SeenLogin | undefined): string {
  const note =
    login === undefined
      ? ''
      : `
The device has ${login.words}. With 5 Postern signs in there for clients; with 1 to 4, set upstream.auth afterwards.
`
  const by = login === undefined ? "the device's Basic or Digest login" : 'that login'
  return `${note}
Where does the device password come from? Clients get tokens for it.
  1  I type it now. Its hash is stored in ${file}
  2  a file with one line: the password, or a hash of it
  3  the line of a user in an htpasswd file
  4  the line of a user in /etc/shadow, or in a file like it
  5  the device: Postern tries each password there, by ${by}
`
}

const isDigit = (given: string): boolean => /^\d$/.test(given)

/**
 * Asks where the device password comes from, until the answer is usable.
 *
 * @param device the device, to try the account at; with its login, if it has one
 */
export async function askForPassword(
  prompt: Prompt,
  stored: Stored,
  device: TriedDevice,
  clock: Clock,
): Promise<PasswordChoice> {
  prompt.say(menu(stored.file, device.login))
  const usual = device.login === undefined ? '1' : '5'
  for (;;) {
    const digit = (await prompt.askUnseen(`Choice [${usual}]: `, isDigit)) || usual
    const chosen = await choose(digit, stored, device, prompt, clock)
    if (chosen === undefined) continue
    if (chosen.newFile !== undefined) return chosen
    const { result, message } = await tryPassword(chosen, stored.weak)
    if (result !== 'failed') return chosen
    prompt.say(`  ${message}\n`)
  }
}

/** Where a typed password is stored, and whether it may be weak. */
interface Stored {
  readonly file: string
  readonly weak: boolean
}

async function choose(
  choice: string,
  { file, weak }: Stored,
  device: TriedDevice,
  prompt: Prompt,
  clock: Clock,
): Promise<PasswordChoice | undefined> {
  switch (choice) {
    case '1':
      return typedPassword({ file, weak }, prompt)
    case '2':
      return { password: { file: resolve(await prompt.ask(`File [${file}]: `, file)) } }
    case '3':
      return { password: { htpasswd: await askForEntry('', prompt) } }
    case '4':
      return { password: { shadow: await askForEntry('/etc/shadow', prompt) } }
    case '5':
      return loginOfDevice(device, prompt, clock)
    default:
      if (isDigit(choice)) {
        prompt.say('  Type 1, 2, 3, 4 or 5\n')
        return undefined
      }
      prompt.say('  That is no number. It may have been the password, so it is not shown. Type it here:\n')
      return typedPassword({ file, weak }, prompt)
  }
}

/** The login by which the device checks passwords, after a try with the account. */
async function loginOfDevice(
  device: TriedDevice,
  prompt: Prompt,
  clock: Clock,
): Promise<PasswordChoice | undefined> {
  const login = device.login ?? (await askForLogin(prompt))
  if (login === undefined) return undefined
  const checkPath = login.auth.kind === 'session' ? await askForCheckPath(login.auth, prompt) : {}
  const user = login.asksUser ? { user: await prompt.ask('User [admin]: ', 'admin') } : {}
  const { kind = '', ...keys } = login.auth
  const auth = { kind, ...user, ...checkPath, ...keys }
  for (;;) {
    const password = await prompt.askHidden('Its password, to try it now (Enter: do not try it): ')
    const problem =
      password === '' ? undefined : await prompt.during(tryAccount(device, auth, password, clock))
    if (problem === undefined) {
      if (password !== '') prompt.say('ok      signing in: the device accepts it\n')
      return { password: { device: true }, auth }
    }
    prompt.say(`  ${problem}\n`)
  }
}

async function askForLogin(prompt: Prompt): Promise<SeenLogin | undefined> {
  const kind = await prompt.ask('Its login, basic or digest [digest]: ', 'digest')
  if (kind === 'basic' || kind === 'digest') return httpLogin(kind)
  prompt.say('  For a login form or a token, set upstream.auth afterwards: see deploy/old-firmware.md\n')
  return undefined
}

/** Asks for a page that shows whether a login worked, unless one is known. */
async function askForCheckPath({ check_path: known }: YamlMapping, prompt: Prompt): Promise<YamlMapping> {
  if (known !== undefined) return {}
  for (;;) {
    const path = await prompt.ask('A page of the device that only opens after the login, such as /status: ')
    const problem = targetProblem(path)
    if (problem === undefined) return { check_path: path }
    prompt.say(`  It ${problem}\n`)
  }
}

async function askForEntry(file: string, prompt: Prompt): Promise<{ file: string; user: string }> {
  const asked = await prompt.ask(file === '' ? 'File: ' : `File [${file}]: `, file)
  return { file: resolve(asked), user: await prompt.ask('User [admin]: ', 'admin') }
}

async function typedPassword({ file, weak }: Stored, prompt: Prompt): Promise<PasswordChoice | undefined> {
  if (existsSync(file)) {
    prompt.say(`  ${file} exists, and init overwrites nothing; 2 uses it as it is\n`)
    return undefined
  }
  const password = await askTwice(prompt, weak).catch((error: unknown) => {
    if (!(error instanceof SetupError) || error instanceof Cancelled) throw error
    prompt.say(`  ${error.message}\n`)
    return undefined
  })
  if (password === undefined) return undefined
  return { password: { file }, newFile: { path: file, text: `${await hashPassword(password)}\n` } }
}
