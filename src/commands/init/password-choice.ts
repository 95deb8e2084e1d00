import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { FirstPassword } from '../../config/first-configuration.ts'
import { loadConfig } from '../../config/load.ts'
import { hashPassword } from '../../password/key-derivation.ts'
import { SetupError } from '../../system/setup-error.ts'
import { passwordCheck } from '../check/file-checks.ts'
import { type CheckResult, runCheck } from '../check/finding.ts'
import { askTwice } from '../hash-password.ts'
import type { Questions } from '../prompt.ts'

export interface PasswordFlags {
  readonly passwordFile?: string
  readonly htpasswd?: string
  readonly shadow?: string
  readonly deviceLogin?: 'basic' | 'digest'
  readonly user?: string
}

/** Where the password comes from, and the line of a password file that has to be written for it. */
export interface PasswordChoice {
  readonly source: FirstPassword
  readonly newLine?: string
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
  if (passwordFile !== undefined) return { source: { file: resolve(passwordFile) } }
  if (given.length === 0) return undefined
  if (user === undefined) throw new SetupError('--user is missing: name the account, such as --user admin')
  if (htpasswd !== undefined) return { source: { htpasswd: { file: resolve(htpasswd), user } } }
  if (shadow !== undefined) return { source: { shadow: { file: resolve(shadow), user } } }
  return { source: { login: deviceLogin ?? 'digest', user } }
}

export async function tryPassword(source: FirstPassword): Promise<CheckResult> {
  if ('login' in source) {
    const message = 'the device checks each password'
    return { name: 'password source', result: 'ok', message, meaning: null, remedy: null }
  }
  // Any device will do: only the password is tried.
  const text = JSON.stringify({ upstream: { url: 'http://127.0.0.1' }, password: source })
  const config = loadConfig({ file: { path: 'init', text } })
  return (await runCheck(passwordCheck(config))).result
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

export async function askForPassword(questions: Questions, folder: string): Promise<PasswordChoice> {
  const file = join(folder, 'password')
  questions.say(menu(file))
  for (;;) {
    const chosen = await choose(await questions.ask('Choice [1]: ', '1'), file, questions)
    if (chosen === undefined) continue
    if (chosen.newLine !== undefined) return chosen
    const { result, message } = await tryPassword(chosen.source)
    if (result !== 'failed') return chosen
    questions.say(`  ${message}\n`)
  }
}

async function choose(
  choice: string,
  file: string,
  questions: Questions,
): Promise<PasswordChoice | undefined> {
  switch (choice) {
    case '1':
      return typedPassword(file, questions)
    case '2':
      return { source: { file: resolve(await questions.ask(`File [${file}]: `, file)) } }
    case '3':
      return { source: { htpasswd: await askForEntry('', questions) } }
    case '4':
      return { source: { shadow: await askForEntry('/etc/shadow', questions) } }
    case '5': {
      const login = await questions.ask('Its login, basic or digest [digest]: ', 'digest')
      if (login !== 'basic' && login !== 'digest') {
        questions.say('  For a login form, set upstream.auth.form afterwards: see deploy/old-firmware.md\n')
        return undefined
      }
      return { source: { login, user: await questions.ask('User [admin]: ', 'admin') } }
    }
    default:
      questions.say('  Type 1, 2, 3, 4 or 5\n')
      return undefined
  }
}

async function askForEntry(file: string, questions: Questions): Promise<{ file: string; user: string }> {
  const asked = await questions.ask(file === '' ? 'File: ' : `File [${file}]: `, file)
  return { file: resolve(asked), user: await questions.ask('User [admin]: ', 'admin') }
}

async function typedPassword(file: string, questions: Questions): Promise<PasswordChoice | undefined> {
  if (existsSync(file)) {
    questions.say(`  ${file} exists, and init overwrites nothing; 2 uses it as it is\n`)
    return undefined
  }
  const typed = await askTwice(questions.prompt)
  if (typed.kind === 'password') {
    return { source: { file }, newLine: `${await hashPassword(typed.password)}\n` }
  }
  if (typed.reason === 'cancelled') throw questions.cancelled()
  questions.say(`  ${typed.reason}\n`)
  return undefined
}
