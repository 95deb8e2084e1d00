import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { temporaryDirectory } from './certificate.ts'
import { closeLater } from './cleanup.ts'
import { PATIENCE } from './patience.ts'
import { unusedPort } from './raw.ts'
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
  readonly sentinel?: boolean
  readonly port?: number
  /** Arguments of `redis-cli`, such as a user. */
  readonly cli?: readonly string[]
}

/** The program of the server. `POSTERN_REDIS_SERVER` names another one, such as Valkey's. */
const SERVER = process.env.POSTERN_REDIS_SERVER ?? 'redis-server'

const READY = /Ready to accept connections|Sentinel ID is/

/** Starts a server on a free port of 127.0.0.1. It ends with the test. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const port = options.port ?? (await unusedPort())
  const directory = temporaryDirectory()
  let child: ChildProcess | undefined

  async function start(more: readonly string[] = []): Promise<void> {
    const file = join(directory, 'redis.conf')
    const own = options.sentinel ? [] : ['save ""', 'appendonly no', 'repl-diskless-sync-delay 0']
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${directory}`,
      ...own,
      ...(options.settings ?? []),
      ...more,
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    const args = options.sentinel ? [file, '--sentinel'] : [file]
    const started = spawn(SERVER, args, { stdio: ['ignore', 'pipe', 'inherit'] })
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

/** A cluster of three primaries; `owner` has the slots of `{postern}`. */
export interface RedisCluster {
  readonly nodes: readonly RedisServer[]
  readonly owner: RedisServer
  readonly others: readonly RedisServer[]
}

const SLOTS = ['0-5460', '5461-10922', '10923-16383']

export async function startCluster(): Promise<RedisCluster> {
  const places = await Promise.all(
    SLOTS.map(async (slots, index) => {
      const [port, bus, id] = [await unusedPort(), await unusedPort(), String(index + 1).repeat(40)]
      return {
        port,
        bus,
        id,
        line: (flags: string) =>
          `${id} 127.0.0.1:${port}@${bus} ${flags} - 0 0 ${index + 1} connected ${slots}`,
      }
    }),
  )
  // Each node begins with the state that it would have after it has met the others.
  const nodes = await Promise.all(
    places.map(({ port, bus, id }) => {
      const file = join(temporaryDirectory(), 'nodes.conf')
      const lines = places.map((each) => each.line(each.id === id ? 'myself,master' : 'master'))
      writeFileSync(file, `${lines.join('\n')}\nvars currentEpoch ${SLOTS.length} lastVoteEpoch 0\n`)
      return startRedis({
        port,
        settings: [
          'cluster-enabled yes',
          `cluster-port ${bus}`,
          `cluster-config-file ${file}`,
          'cluster-node-timeout 2000',
          'cluster-require-full-coverage no',
        ],
      })
    }),
  )
  const [first] = nodes
  if (first === undefined) throw new Error('no node')
  for (const node of nodes) {
    await until(async () => (await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok'))
  }
  const slot = Number(await first.command('CLUSTER', 'KEYSLOT', '{postern}'))
  const index = SLOTS.findIndex((range) => slot <= Number(range.split('-')[1]))
  const owner = nodes[index] ?? first
  return { nodes, owner, others: nodes.filter((node) => node !== owner) }
}

/** A primary, its replica, and sentinels with a quorum of one. */
export interface RedisGroup {
  readonly primary: RedisServer
  readonly replica: RedisServer
  readonly sentinels: readonly RedisServer[]
}

export async function startGroup(sentinelCount = 1, auth: readonly string[] = []): Promise<RedisGroup> {
  const primary = await startRedis()
  const replica = await startRedis({ settings: [`replicaof 127.0.0.1 ${primary.port}`] })
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
  const sentinels = await Promise.all(
    Array.from({ length: sentinelCount }, () =>
      startRedis({
        sentinel: true,
        settings: [
          `sentinel monitor main 127.0.0.1 ${primary.port} 1`,
          'sentinel down-after-milliseconds main 300',
          'sentinel failover-timeout main 2000',
          ...auth,
        ],
      }),
    ),
  )
  for (const sentinel of sentinels) {
    await until(async () => {
      const known = await sentinel.command('SENTINEL', 'MASTER', 'main')
      return /num-slaves\n1\n/.test(known) && known.includes(`num-other-sentinels\n${sentinelCount - 1}\n`)
    })
  }
  return { primary, replica, sentinels }
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
