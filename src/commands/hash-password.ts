import { isUtf8 } from 'node:buffer'
import { HASH_COSTS, hashPassword } from '../password/key-derivation.ts'
import { hasOuterBlank, weaknessOf } from '../password/strength.ts'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { openPrompt, type Prompt, type Terminal } from './prompt.ts'

export interface HashPasswordOptions {
  /** Takes a password that is short or usual. */
  readonly weak?: boolean
  /** Makes a hash that takes less memory. */
  readonly forBoard?: boolean
}

interface HashPasswordIo extends Pick<CommandIo, 'stdout' | 'stderr'>, Pick<Terminal, 'stdin'> {
  readonly clock: Pick<Clock, 'monotonic'>
}

const BLANK = 'the password begins or ends with a blank, which is part of it'
/** The remedy for a weak password. */
export const CHOOSE_ANOTHER = 'choose another one, or use it nevertheless with --weak'

/** The largest secret on standard input (bytes). A password in a token request is shorter (C9). */
const LIMIT = 8 * 1024

/**
 * `postern hash-password`: reads one line from standard input and writes a line for the password file. On a terminal it asks
 * twice, without echo. Tells a person how long a login with that line takes here. Rejects with a `SetupError` that names the problem,
 * such as a password that is short or usual.
 */
export async function hashPasswordCommand(
  io: HashPasswordIo,
  { weak = false, forBoard = false }: HashPasswordOptions = {},
): Promise<ExitCode> {
  const password = io.stdin.isTTY === true ? await ask(io, weak) : await readAll(io.stdin, weak)
  if (hasOuterBlank(password)) io.stderr.write(`postern hash-password: ${BLANK}\n`)
  const cost = forBoard ? HASH_COSTS.board : HASH_COSTS.usual
  io.stdout.write(`${await hashPassword(password, cost)}\n`)
  if (io.stderr.isTTY !== true) return 0
  // The first hash also starts a thread, so only the second one takes as long as a login.
  const began = io.clock.monotonic()
  await hashPassword(password, cost)
  const took = Math.ceil(io.clock.monotonic() - began)
  io.stderr.write(`postern hash-password: a login takes about ${took} ms on this machine\n`)
  return 0
}

async function readAll(stdin: NodeJS.ReadableStream, weak: boolean): Promise<string> {
  return strong(await readSecret(stdin, 'the password'), weak)
}

/** Reads the only line of standard input. `what`: its name in errors. Rejects with a `SetupError` if it is no such line. */
export async function readSecret(stdin: NodeJS.ReadableStream, what: string): Promise<string> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of stdin) {
    bytes = Buffer.concat([bytes, Buffer.from(chunk)])
    if (bytes.length > LIMIT) throw new SetupError('the input is larger than 8 KiB')
  }
  if (!isUtf8(bytes)) throw new SetupError('the input is not valid UTF-8')
  return whole(new TextDecoder().decode(bytes).replace(/\r?\n$/, ''), what)
}

async function ask(terminal: Terminal, weak: boolean): Promise<string> {
  using prompt = openPrompt(terminal)
  return await askTwice(prompt, weak)
}

/**
 * Asks for a password twice. Rejects with a `SetupError` if the two differ or cannot be a password, or if it is weak and `weak` is false.
 */
export async function askTwice(prompt: Prompt, weak: boolean): Promise<string> {
  const password = await prompt.askHidden('Password: ')
  const again = await prompt.askHidden('Password again: ')
  if (password !== again) throw new SetupError('the two passwords differ')
  return strong(whole(password, 'the password'), weak)
}

function whole(secret: string, what: string): string {
  if (secret === '') throw new SetupError(`${what} is empty`)
  if (/[\r\n]/.test(secret)) throw new SetupError(`the input has several lines; give ${what} on exactly one`)
  if (secret.includes('\0')) throw new SetupError(`${what} contains a NUL byte`)
  return secret
}

function strong(password: string, weak: boolean): string {
  const weakness = weak ? undefined : weaknessOf(password)
  if (weakness !== undefined) throw new SetupError(`the password ${weakness}`, { remedy: CHOOSE_ANOTHER })
  return password
}
