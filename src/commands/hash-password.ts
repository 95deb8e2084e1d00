import { isUtf8 } from 'node:buffer'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { hashPassword } from '../password/key-derivation.ts'

export interface HashPasswordStreams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
}

/** More than any request may carry (C9). */
const LIMIT = 8 * 1024

type Answer =
  | { readonly kind: 'password'; readonly password: string }
  | { readonly kind: 'no'; readonly why: string }

/**
 * `postern hash-password`: one line from standard input becomes a line for the password file. On a terminal it asks
 * twice, without echo. Returns the exit code: 0, or 2 with one line on `stderr` that says what was wrong.
 */
export async function hashPasswordCommand(streams: HashPasswordStreams): Promise<number> {
  const answer = streams.stdin.isTTY === true ? await ask(streams) : await readAll(streams.stdin)
  const fault = answer.kind === 'no' ? answer.why : faultOf(answer.password)
  if (answer.kind === 'no' || fault !== undefined) {
    streams.stderr.write(`postern hash-password: ${fault}\n`)
    return 2
  }
  streams.stdout.write(`${await hashPassword(answer.password)}\n`)
  return 0
}

function faultOf(password: string): string | undefined {
  if (password === '') return 'the password is empty'
  if (/[\r\n]/.test(password)) return 'the input has several lines; give the password on exactly one'
  if (password.includes('\0')) return 'the password contains a NUL byte'
  return undefined
}

async function readAll(stdin: NodeJS.ReadableStream): Promise<Answer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > LIMIT) return no('the input is larger than 8 KiB')
    chunks.push(bytes)
  }
  const bytes = Buffer.concat(chunks)
  if (!isUtf8(bytes)) return no('the input is not valid UTF-8')
  return { kind: 'password', password: new TextDecoder().decode(bytes).replace(/\r?\n$/, '') }
}

async function ask({ stdin, stderr }: HashPasswordStreams): Promise<Answer> {
  // `terminal` puts the input into raw mode, so the terminal echoes nothing; what readline would echo goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: stdin, output: nowhere, terminal: true, historySize: 0 })
  const lines = terminal[Symbol.asyncIterator]()
  const prompt = async (question: string): Promise<string | undefined> => {
    stderr.write(question)
    const line = await lines.next()
    stderr.write('\n')
    return line.done === true ? undefined : line.value
  }
  try {
    const password = await prompt('Password: ')
    const again = password === undefined ? undefined : await prompt('Password again: ')
    if (password === undefined || again === undefined) return no('cancelled')
    return password === again ? { kind: 'password', password } : no('the two passwords differ')
  } finally {
    terminal.close()
  }
}

function no(why: string): Answer {
  return { kind: 'no', why }
}
