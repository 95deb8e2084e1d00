import { type ChildProcess, type ExecFileException, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { atEnd } from './run-program.ts'

export { unusedPort as freePort } from '../test/support/raw.ts'

/** Where a process runs. */
interface Placement {
  /** The core that the process is pinned to, where `taskset` is installed. */
  readonly core?: number | undefined
  /** Runs only when no other process on its core is ready to. */
  readonly idlePriority?: boolean
}

export interface ChildOptions extends Placement {
  /** File for standard output, which is discarded otherwise. */
  readonly outputTo?: string
  /** Added to the environment; overrides it. */
  readonly env?: Readonly<Record<string, string>>
}

export interface RunOptions extends Placement {
  /** Milliseconds. */
  readonly timeout?: number
}

export interface Child {
  readonly pid: number
  /** What it has written to standard error. */
  readonly errorOutput: string
  /** Sends SIGTERM, and SIGKILL after `grace` ms. Resolves when the process has exited. */
  stop(grace?: number): Promise<Exit>
  /** Rejects when the process exits before `stop` is called. */
  readonly unexpectedExit: Promise<never>
}

interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Starts a process. It is stopped when this program ends. Its environment is PATH, HOME and `env`. */
export async function startChild(
  command: string,
  args: readonly string[],
  { outputTo, env, ...place }: ChildOptions = {},
): Promise<Child> {
  const output = outputTo === undefined ? undefined : await open(outputTo, 'w')
  const [program, ...programArgs] = await commandOnCore([command, ...args], place)
  const child = spawn(program, programArgs, {
    stdio: ['ignore', output?.fd ?? 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  })
  let errorOutput = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errorOutput += text
  })
  const exited = once(child, 'exit').then(([code, signal]): Exit => ({ code, signal }))
  let stopping = false
  const stop = async (grace = 5_000): Promise<Exit> => {
    stopping = true
    signalChild(child, 'SIGTERM')
    const timer = setTimeout(() => signalChild(child, 'SIGKILL'), grace)
    const exit = await exited
    clearTimeout(timer)
    return exit
  }
  const cleanup = atEnd(async () => {
    await stop()
  })
  exited.then(cleanup.cancel, cleanup.cancel)
  await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error))])
  await output?.close()

  const unexpectedExit = exited.then(({ code, signal }): Promise<never> => {
    if (stopping) return new Promise(() => {})
    return Promise.reject(new Error(`${command} exited (${code ?? signal}): ${errorOutput.trim()}`))
  })
  unexpectedExit.catch(() => {})
  return {
    pid: child.pid ?? 0,
    get errorOutput() {
      return errorOutput
    },
    stop,
    unexpectedExit,
  }
}

/** Runs a program for at most `timeout` ms. Resolves with its standard output followed by its standard error. */
export async function outputOf(
  command: string,
  args: readonly string[],
  { timeout = 10_000, ...place }: RunOptions = {},
): Promise<string> {
  const [program, ...programArgs] = await commandOnCore([command, ...args], place)
  const running = promisify(execFile)(program, programArgs, { timeout, maxBuffer: LARGEST_OUTPUT })
  const cleanup = atEnd(() => signalChild(running.child, 'SIGKILL'))
  try {
    const { stdout, stderr } = await running
    return stdout + stderr
  } catch (error) {
    throw new ProgramError(command, error as ExecFileException)
  } finally {
    cleanup.cancel()
  }
}

/** The version of a program, which `pattern` captures from what it prints for `flag`; undefined if it is not installed. */
export async function versionOf(program: string, flag: string, pattern: RegExp): Promise<string | undefined> {
  // `wrk -v` exits with 1.
  const text = await outputOf(program, [flag]).catch((error: ProgramError) => error.output)
  return pattern.exec(text)?.[1]
}

/**
 * Runs a module of the bench as a process of its own, which can be pinned. The module ends with `runIfMain`, which gets `plan`.
 * @param flags of Node
 */
export async function runModule<Result>(
  url: string,
  plan: unknown,
  { flags = [], ...options }: RunOptions & { readonly flags?: readonly string[] } = {},
): Promise<Result> {
  const args = [...flags, fileURLToPath(url), JSON.stringify(plan)]
  return JSON.parse(await outputOf(process.execPath, args, options)) as Result // `runIfMain` prints it
}

/** If this process was started by `runModule` for this module: runs its program, prints the result as JSON and exits. */
export async function runIfMain<Plan>(
  { main }: { readonly main: boolean },
  run: (plan: Plan) => Promise<unknown>,
): Promise<void> {
  if (!main) return
  const result = await run(JSON.parse(process.argv[2] ?? '{}') as Plan) // of `runModule`
  process.stdout.write(JSON.stringify(result), () => process.exit(0))
}

/** A program failed. The message omits its arguments, because they may contain a token. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError'
  /** Its standard output followed by its standard error. */
  readonly output: string

  constructor(program: string, { code, signal, stdout, stderr }: ExecFileException) {
    const why = String(stderr ?? '').trim()
    super(`${program} ended (${signal ?? code}): ${why.slice(-500)}`)
    this.output = `${stdout ?? ''}${stderr ?? ''}`
  }
}

const LARGEST_OUTPUT = 64 << 20

function signalChild(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal)
}

type CommandLine = readonly [program: string, ...args: string[]]

async function commandOnCore(command: CommandLine, { core, idlePriority }: Placement): Promise<CommandLine> {
  return [
    ...(core === undefined ? [] : ['taskset', '-c', String(core)]),
    ...(idlePriority ? await idlePriorityCommand() : []),
    ...command,
  ] as [string, ...string[]] // `command` names a program
}

/**
 * The command that starts a process at idle priority. The Linux class SCHED_IDLE takes nearly nothing from other processes;
 * `nice -n 19`, where `chrt` is missing, takes a little.
 */
function idlePriorityCommand(): Promise<readonly string[]> {
  return promisify(execFile)('chrt', ['--idle', '0', 'true']).then(
    () => ['chrt', '--idle', '0'],
    () => ['nice', '-n', '19'],
  )
}

/** Waits up to `timeout` ms until a port on 127.0.0.1 accepts connections. */
export async function listening(port: number, child: Child, timeout = 60_000): Promise<void> {
  const poll = async (): Promise<void> => {
    for (const end = performance.now() + timeout; performance.now() < end; await pause(20)) {
      if (await acceptsConnections(port)) return
    }
    throw new Error(`nothing listens on port ${port} after ${timeout} ms: ${child.errorOutput.trim()}`)
  }
  await Promise.race([poll(), child.unexpectedExit])
}

async function acceptsConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const accepted = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return accepted
}

/** Creates a folder that is deleted with its contents when the program ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'))
  // A program that is about to end may still write into it.
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}
