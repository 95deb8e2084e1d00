import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseUpstreamUrl } from '../../config/address.ts'
import { type FirstPassword, flow } from '../../config/first-configuration.ts'
import { loadConfig } from '../../config/load.ts'
import { passwordSources } from '../../config/password-fields.ts'
import { upstreamTarget } from '../../forward/settings.ts'
import { hashPassword } from '../../password/key-derivation.ts'
import { readSource } from '../../password/read-source.ts'
import { weaknessOf } from '../../password/strength.ts'
import { SetupError } from '../../system/setup-error.ts'
import { judgeDevice } from '../check/device-checks.ts'
import { passwordCheck } from '../check/file-checks.ts'
import { type CheckResult, describeResult, runCheck } from '../check/finding.ts'
import { WIDTH } from '../columns.ts'
import { askTwice, CHOOSE_ANOTHER } from '../hash-password.ts'
import { Cancelled, type Prompt } from '../prompt.ts'

/** Where the device is, and the value of `upstream.tls` as YAML. */
export interface DeviceAddress {
  readonly url: string
  readonly tls?: string | undefined
}

/** The address of `--url` and the file of `--device-ca`. Throws `SetupError` if the address is none. */
export function addressFromFlags(url: string, ca: string | undefined): DeviceAddress {
  const parsed = parseUpstreamUrl(url)
  if ('problem' in parsed) throw new SetupError(`--url: ${parsed.problem}`)
  return { url, tls: ca === undefined ? undefined : flow({ ca: resolve(ca) }) }
}

/** Requests a page of the device. `tls` of the result: the value of `upstream.tls` that makes it succeed. */
function tryDevice({ url, tls }: DeviceAddress): ReturnType<typeof runCheck> {
  const trust = tls === undefined ? [] : [`upstream.tls=${tls}`]
  const { upstream } = loadConfig({ sets: [`upstream.url=${url}`, 'password.file=none', ...trust] })
  return runCheck({
    name: 'device',
    key: '--url',
    meaning: 'clients would get an error for every request but those for tokens',
    remedy: 'correct the address',
    run: async () => judgeDevice(await upstreamTarget(upstream, 'upstream'), upstream, 'upstream'),
  })
}

/** Tries an address without a terminal. Throws `SetupError` unless the device answers as it should. */
export async function requireDevice(address: DeviceAddress, say: (text: string) => void): Promise<void> {
  const { result, tls } = await tryDevice(address)
  say(describeResult(result, Number.POSITIVE_INFINITY))
  if (result.result === 'ok') return
  const trust =
    tls === undefined
      ? 'write the configuration nevertheless with --skip-checks'
      : `write the configuration with --skip-checks and add to its upstream: tls: ${tls}`
  throw new SetupError('nothing is written, because of the device', {
    exitCode: 1,
    remedy: `correct --url${tls === undefined ? '' : ', name the certificate of its authority with --device-ca'}, or ${trust}`,
  })
}

/**
 * Asks for the address, if there is none yet, and tries it, until the operator is content. Offers to write the value of `upstream.tls`
 * with which the device works.
 */
export async function askForDevice(given: DeviceAddress | undefined, prompt: Prompt): Promise<DeviceAddress> {
  let address = given
  for (;;) {
    address ??= { ...given, url: await askForAddress(prompt) }
    prompt.say(`Trying ${address.url} ...\n`)
    const { result, tls } = await prompt.during(tryDevice(address))
    prompt.say(describeResult(result, WIDTH))
    if (result.result === 'ok') return address
    const answer = await prompt.ask(
      `${tls === undefined ? '' : `t: write tls: ${tls}. `}y: use the address anyway. n: enter another address. Or type it now [n]: `,
      'n',
    )
    if (/^y(?:es)?$/i.test(answer)) return address
    if (/^t$/i.test(answer)) {
      if (tls === undefined) prompt.say('  There is nothing to write for TLS\n')
      else address = { url: address.url, tls }
    } else {
      const url = /^no?$/i.test(answer) ? undefined : completed(answer, prompt)
      address = url === undefined ? undefined : { ...given, url }
    }
  }
}

async function askForAddress(prompt: Prompt): Promise<string> {
  for (;;) {
    const url = completed(await prompt.ask('Address of the device, such as http://192.0.2.7: '), prompt)
    if (url !== undefined) return url
  }
}

/** The address as a URL: without a scheme, http is meant. Says what is wrong with any other text. */
function completed(answer: string, prompt: Prompt): string | undefined {
  const url = /^[\w.[\]:-]+$/.test(answer) && !/^https?:/.test(answer) ? `http://${answer}` : answer
  const parsed = parseUpstreamUrl(url)
  if (!('problem' in parsed)) return url
  prompt.say(`  ${parsed.problem}\n`)
  return undefined
}

export interface PasswordFlags {
  readonly passwordFile?: string
  readonly htpasswd?: string
  readonly shadow?: string
  readonly deviceLogin?: 'basic' | 'digest'
  readonly user?: string
}

/** Where the password comes from, and the password file that has to be written for it. */
export interface PasswordChoice extends FirstPassword {
  readonly newFile?: NewFile
}

export interface NewFile {
  readonly path: string
  readonly text: string
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
  // Any device will do: only the password is tried.
  const config = loadConfig({ object: { upstream: { url: 'http://127.0.0.1', auth }, password } })
  const { result: checked } = await runCheck(passwordCheck(config))
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

function menu(file: string): string {
  return `
Where does the device password come from? Clients get tokens for it.
  1  I type it now. Its hash is stored in ${file}
  2  a file with one line: the password, or a hash of it
  3  the line of a user in an htpasswd file
  4  the line of a user in /etc/shadow, or in a file like it
  5  the device: Postern tries each password there, by the device's Basic or Digest login
`
}

/** @param file where a typed password is stored */
export async function askForPassword(prompt: Prompt, file: string, weak: boolean): Promise<PasswordChoice> {
  prompt.say(menu(file))
  for (;;) {
    const digit = (await prompt.askDigit('Choice [1]: ')) || '1'
    const chosen = await choose(digit, { file, weak }, prompt)
    if (chosen === undefined) continue
    if (chosen.newFile !== undefined) return chosen
    const { result, message } = await tryPassword(chosen, weak)
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
  prompt: Prompt,
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
    case '5': {
      const login = await prompt.ask('Its login, basic or digest [digest]: ', 'digest')
      if (login !== 'basic' && login !== 'digest') {
        prompt.say('  For a login form, set upstream.auth.form afterwards: see deploy/old-firmware.md\n')
        return undefined
      }
      return checkedByDevice(login, await prompt.ask('User [admin]: ', 'admin'))
    }
    default:
      if (/^\d$/.test(choice)) {
        prompt.say('  Type 1, 2, 3, 4 or 5\n')
        return undefined
      }
      prompt.say('  That is no number. It may have been the password, so it is not shown. Type it here:\n')
      return typedPassword({ file, weak }, prompt)
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
