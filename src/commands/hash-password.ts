import { isUtf8 } from 'node:buffer'
import { hashPassword } from '../password/key-derivation.ts'
import type { CommandIo } from './command.ts'
import { openPrompt, type Prompt, type Terminal } from './prompt.ts'

export interface HashPasswordStreams extends Pick<CommandIo, 'stdout'>, Terminal {}

/** The largest input (bytes): more than the password in any token request (C9). */
const LIMIT = 8 * 1024

export type Input =
  | { readonly kind: 'password'; readonly password: string }
  | { readonly kind: 'refused'; readonly reason: string }

/**
 * `postern hash-password`: reads one line from standard input and writes a line for the password file. On a terminal it asks
 * twice, without echo. Resolves to the exit code: 0, or 2 with one line on `stderr` that names the problem.
 */
export async function hashPasswordCommand(streams: HashPasswordStreams): Promise<number> {
  const input = streams.stdin.isTTY === true ? await ask(streams) : await readAll(streams.stdin)
  const fault = input.kind === 'refused' ? input.reason : faultOf(input.password)
  if (input.kind === 'refused' || fault !== undefined) {
    streams.stderr.write(`postern hash-password: ${fault}\n`)
    return 2
  }
  streams.stdout.write(`${await hashPassword(input.password)}\n`)
  return 0
}

function faultOf(password: string): string | undefined {
  if (password === '') return 'the password is empty'
  if (/[\r\n]/.test(password)) return 'the input has several lines; give the password on exactly one'
  if (password.includes('\0')) return 'the password contains a NUL byte'
  return undefined
}

async function readAll(stdin: NodeJS.ReadableStream): Promise<Input> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > LIMIT) return refused('the input is larger than 8 KiB')
    chunks.push(bytes)
  }
  const bytes = Buffer.concat(chunks)
  if (!isUtf8(bytes)) return refused('the input is not valid UTF-8')
  return { kind: 'password', password: new TextDecoder().decode(bytes).replace(/\r?\n$/, '') }
}

async function ask(streams: HashPasswordStreams): Promise<Input> {
  const prompt = openPrompt(streams)
  try {
    return await askTwice(prompt)
  } finally {
    prompt.close()
  }
}

export async function askTwice(prompt: Prompt): Promise<Input> {
  const password = await prompt.askHidden('Password: ')
  const again = password === undefined ? undefined : await prompt.askHidden('Password again: ')
  if (password === undefined || again === undefined) return refused('cancelled')
  if (password !== again) return refused('the two passwords differ')
  const fault = faultOf(password)
  return fault === undefined ? { kind: 'password', password } : refused(fault)
}

function refused(reason: string): Input {
  return { kind: 'refused', reason }
}
