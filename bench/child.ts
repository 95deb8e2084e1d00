import { type ChildProcess, type ExecFileException, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { atEnd } from './end.ts'

export interface ChildOptions {
  /** The core that the process is pinned to, where `taskset` is installed. */
  readonly core?: number | undefined
  /** A file for standard output; thrown away when not given. */
  readonly outputTo?: string
  /** Laid over the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Gives way to every other process on its core. */
  readonly humble?: boolean
}

export interface Child {
  readonly pid: number
  /** What it wrote to standard error so far. */
  readonly complaints: string
  /** Asks it to end, makes it end after `patience` ms, and tells how it went. */
  stop(patience?: number): Promise<Exit>
  /** Rejects when the process ends before it was told to. */
  readonly untimelyEnd: Promise<never>
}

interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Starts a process that ends with this program at the latest. Its environment is ours without our own settings. */
export async function startChild(
  command: string,
  args: readonly string[],
  { core, outputTo, env, humble = false }: ChildOptions = {},
): Promise<Child> {
  const output = outputTo === undefined ? undefined : await open(outputTo, 'w')
  const [program, ...programArgs] = await placed([command, ...args], core, humble)
  const child = spawn(program, programArgs, {
    stdio: ['ignore', output?.fd ?? 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  })
  let complaints = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const exited = once(child, 'exit').then(([code, signal]): Exit => ({ code, signal }))
  let told = false
  const stop = async (patience = 5_000): Promise<Exit> => {
    told = true
    endChild(child, 'SIGTERM')
    const timer = setTimeout(() => endChild(child, 'SIGKILL'), patience)
    const exit = await exited
    clearTimeout(timer)
    return exit
  }
  const undo = atEnd(async () => {
    await stop()
  })
  exited.then(undo.cancel, undo.cancel)
  await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error))])
  await output?.close()

  const untimelyEnd = exited.then(({ code, signal }): Promise<never> => {
    if (told) return new Promise(() => {})
    return Promise.reject(new Error(`${command} ended (${code ?? signal}): ${complaints.trim()}`))
  })
  untimelyEnd.catch(() => {})
  return {
    pid: child.pid ?? 0,
    get complaints() {
      return complaints
    },
    stop,
    untimelyEnd,
  }
}

/** Runs a program to its end, within `longest` ms, and gives what it wrote, standard error last. */
export async function outputOf(
  command: string,
  args: readonly string[],
  { core, longest = 10_000, humble = false }: RunOptions = {},
): Promise<string> {
  const [program, ...programArgs] = await placed([command, ...args], core, humble)
  const running = promisify(execFile)(program, programArgs, { timeout: longest, maxBuffer: LARGEST_OUTPUT })
  const undo = atEnd(() => endChild(running.child, 'SIGKILL'))
  try {
    const { stdout, stderr } = await running
    return stdout + stderr
  } catch (error) {
    throw new ProgramError(command, error as ExecFileException)
  } finally {
    undo.cancel()
  }
}

export interface RunOptions {
  readonly core?: number | undefined
  /** Milliseconds. */
  readonly longest?: number
  /** Gives way to every other process on its core. */
  readonly humble?: boolean
}

/** A program ended otherwise than it should. Its arguments are not told: a token may be among them. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError'
  /** What it wrote until then. */
  readonly output: string

  constructor(program: string, { code, signal, stdout, stderr }: ExecFileException) {
    super(
      `${program} ended (${signal ?? code}): ${String(stderr ?? '')
        .trim()
        .slice(-500)}`,
    )
    this.output = `${stdout ?? ''}${stderr ?? ''}`
  }
}

const LARGEST_OUTPUT = 64 << 20

function endChild(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal)
}

type CommandLine = readonly [program: string, ...args: string[]]

async function placed(command: CommandLine, core: number | undefined, humble: boolean): Promise<CommandLine> {
  return [
    ...(core === undefined ? [] : ['taskset', '-c', String(core)]),
    ...(humble ? await modesty() : []),
    ...command,
  ] as [string, ...string[]] // the command has a program
}

/**
 * What makes a process run only when nobody else wants to. Linux has a scheduling class for it, which never keeps
 * anybody waiting; the lowest priority still does a little.
 */
function modesty(): Promise<readonly string[]> {
  const idle = ['chrt', '--idle', '0']
  return promisify(execFile)(idle[0] ?? '', [...idle.slice(1), 'true']).then(
    () => idle,
    () => ['nice', '-n', '19'],
  )
}

/** Below those that systems give out by themselves, so that nobody is given ours between our look and its use. */
const LOWEST_PORT = 10_240
const HIGHEST_PORT = 32_767

/** A port of this machine that is free. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (HIGHEST_PORT - LOWEST_PORT + 1))
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)))
  })
}

/** Waits until somebody takes connections on a port of this machine. */
export async function listening(port: number, child: Child, patience = 15_000): Promise<void> {
  const tries = async (): Promise<void> => {
    for (const end = performance.now() + patience; performance.now() < end; await pause(20)) {
      if (await takesConnections(port)) return
    }
    throw new Error(`nobody listens on port ${port} after ${patience} ms: ${child.complaints.trim()}`)
  }
  await Promise.race([tries(), child.untimelyEnd])
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** A new folder, removed with all in it when the program ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}
