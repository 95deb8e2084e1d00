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
  /** The next reply of the process; `undefined` when it has ended. */
  next(): Promise<unknown>
  /** Sends a command and resolves with its reply. */
  ask(command: Command): Promise<unknown>
  /** The reports of the journal so far. */
  readonly events: readonly string[]
  kill(): Promise<void>
}

export interface ProcessOptions {
  /** A program and arguments to put in front of Node. */
  readonly under?: readonly string[]
  readonly rotate?: boolean
}

const SCRIPT = fileURLToPath(new URL('fixtures/token-process.ts', import.meta.url))

/** The compile cache of Node: compilation takes twice as long as the rest of a start. */
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
      const message = JSON.parse(value)
      events.push(...message.events)
      return message.result
    } catch {
      return undefined // killed in the middle of the line: this is no reply
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

/** The tokens in a reply to `issue` or `refresh`. */
export function pairs(reply: unknown): { accessToken: string; refreshToken: string }[] {
  if (!Array.isArray(reply)) throw new Error(`no tokens: ${JSON.stringify(reply)}`)
  return reply.map((each) => ({
    accessToken: String(each?.accessToken),
    refreshToken: String(each?.refreshToken),
  }))
}
