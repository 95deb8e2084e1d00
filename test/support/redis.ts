import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { temporaryDirectory } from './certificate.ts'
import { closeLater } from './cleanup.ts'
import { unusedPort } from './raw.ts'
import { PATIENCE } from './running-test.ts'
import { run } from './tools.ts'

/** A running server. It keeps nothing on disk unless its settings say so. */
export interface RedisServer {
  readonly port: number
  /** `127.0.0.1:port`. */
  readonly at: string
  /** Sends a command with `redis-cli` and returns its output; fails if that is an error. */
  command(...args: readonly string[]): Promise<string>
  /** SIGSTOP: the kernel still accepts connections, and nothing answers. */
  freeze(): void
  thaw(): void
  /** SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>
  /**
   * SIGKILL, and a start on the same port. It has its data again only with persistence (`appendonly yes`), otherwise none.
   * `settings` are added to the first ones.
   */
  restart(settings?: readonly string[]): Promise<void>
}

export interface RedisOptions {
  /** Lines of its configuration file. */
  readonly settings?: readonly string[]
  readonly port?: number
  /** Arguments of `redis-cli`, such as a user. */
  readonly cli?: readonly string[]
}

/** The program of the server. `POSTERN_REDIS_SERVER` names another one, such as Valkey's. */
const SERVER = process.env.POSTERN_REDIS_SERVER ?? 'redis-server'

const READY = /Ready to accept connections/

/** Starts a server on a free port of 127.0.0.1. It ends with the test. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const port = options.port ?? (await unusedPort())
  const directory = temporaryDirectory()
  let child: ChildProcess | undefined

  async function start(more: readonly string[] = []): Promise<void> {
    const file = join(directory, 'redis.conf')
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${directory}`,
      ...['save ""', 'appendonly no', 'repl-diskless-sync-delay 0'],
      ...(options.settings ?? []),
      ...more,
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    const started = spawn(SERVER, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    const log: string[] = []
    const ready = Promise.withResolvers<void>()
    createInterface(started.stdout)
      .on('line', (line) => {
        if (log.length < 100) log.push(line)
        if (READY.test(line)) ready.resolve()
      })
      .on('close', () => ready.reject(new Error(`redis-server has ended:\n${log.join('\n')}`)))
    await ready.promise
  }

  async function kill(): Promise<void> {
    const running = child
    child = undefined
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    await ended
  }

  await start()
  closeLater(kill)
  return {
    port,
    at: `127.0.0.1:${port}`,
    async command(...args) {
      const cli = ['-h', '127.0.0.1', '-p', String(port), '-e', ...(options.cli ?? []), ...args]
      const { code, stdout, stderr } = await run('redis-cli', cli)
      if (code !== 0) throw new Error(`${args.join(' ')}: ${stdout}${stderr}`)
      return stdout.trim()
    },
    freeze: () => child?.kill('SIGSTOP'),
    thaw: () => child?.kill('SIGCONT'),
    kill,
    async restart(settings) {
      await kill()
      await start(settings)
    },
  }
}

/** A primary and its replica, which has the data. */
export async function startPair(): Promise<{ readonly primary: RedisServer; readonly replica: RedisServer }> {
  const primary = await startRedis()
  const replica = await startRedis({ settings: [`replicaof 127.0.0.1 ${primary.port}`] })
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
  return { primary, replica }
}

/** Asks until the answer is true. An assertion that fails ends the wait; a question that fails otherwise is asked again. */
export async function until(check: () => Promise<boolean>, timeout = PATIENCE): Promise<void> {
  const deadline = Date.now() + timeout
  for (;;) {
    if (await check().catch(unlessAsserted)) return
    if (Date.now() > deadline) throw new Error('it has not become true in time')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function unlessAsserted(error: unknown): boolean {
  if (error instanceof Error && error.name === 'AssertionError') throw error
  return false
}
