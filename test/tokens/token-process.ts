import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { closeLater } from '../support/cleanup.ts'

export type Command =
  | { readonly do: 'issue'; readonly count: number }
  | { readonly do: 'refresh' | 'identify'; readonly tokens: readonly string[] }
  | { readonly do: 'revoke' | 'unsaved' | 'flood' }
  | { readonly do: 'later'; readonly milliseconds: number }

export interface TokenProcess {
  readonly child: ChildProcess
  /** The next answer of the process; `undefined` once it has ended. */
  next(): Promise<unknown>
  /** Sends a command and gives its answer. */
  ask(command: Command): Promise<unknown>
  /** What the journal has reported so far. */
  readonly events: readonly string[]
  kill(): Promise<void>
}

export interface ProcessOptions {
  /** A program to run Node with, and its arguments. */
  readonly under?: readonly string[]
  readonly rotate?: boolean
}

const SCRIPT = fileURLToPath(new URL('fixtures/token-process.ts', import.meta.url))

/** Compiled code is kept for the next start: to compile takes twice what all else of a start does. */
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/postern-process', import.meta.url))

export async function startTokenProcess(dir: string, options: ProcessOptions = {}): Promise<TokenProcess> {
  const [program, ...rest] = [...(options.under ?? []), process.execPath, SCRIPT, dir]
  const child = spawn(program ?? '', options.rotate === true ? [...rest, 'rotate'] : rest, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_COMPILE_CACHE: CACHE },
  })
  const exited = once(child, 'exit')
  child.stdin.on('error', () => {})
  const events: string[] = []
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()

  async function next(): Promise<unknown> {
    const { value, done } = await lines.next()
    if (done === true) return undefined
    try {
      const answer = JSON.parse(value)
      events.push(...answer.events)
      return answer.result
    } catch {
      return undefined // Killed in the middle of the line: not answered.
    }
  }

  async function kill(): Promise<void> {
    child.kill('SIGKILL')
    await exited
  }

  const self: TokenProcess = {
    child,
    next,
    ask(command) {
      child.stdin.write(`${JSON.stringify(command)}\n`)
      return next()
    },
    events,
    kill,
  }
  closeLater(kill)
  const greeting = await next()
  if (greeting !== 'ready') throw new Error(String(greeting))
  return self
}

/** The tokens in an answer to `issue` or `refresh`. */
export function pairs(answer: unknown): { accessToken: string; refreshToken: string }[] {
  if (!Array.isArray(answer)) throw new Error(`no tokens: ${JSON.stringify(answer)}`)
  return answer.map((each) => ({
    accessToken: String(each?.accessToken),
    refreshToken: String(each?.refreshToken),
  }))
}
