import { createHash } from 'node:crypto'
import { fixed } from '../format.ts'
import { type Figure, notInstalled } from '../lab.ts'
import { type LatencySummary, summarizeLatencies } from '../measure.ts'
import { say } from '../run-program.ts'
import { type Client, connect, type Server, serverVersion, startServer } from './server.ts'
import { measureUsage, readCounters, type Usage } from './usage.ts'

/** Sidecars, and the tokens that each of them knows. */
const FOLLOWERS = [1, 3, 10, 100]
const TOKENS = 10_000

const OPERATIONS = 100

/** Keys of one MGET. */
const BATCH = 500

/** Keys as a sidecar names them. */
const PREFIX = '{postern}:'
const STREAM = `${PREFIX}events`
const CHANNEL = `${PREFIX}revoked`

/** A connection that waits for pushes alone would not notice that it is dead, so it asks this often (ms). */
const PING = 2_000

/** What happened to the followers of one way. */
export interface MessagesPoint {
  readonly way: string
  readonly followers: number
  /** From the reply of the script that revokes until a follower knows (ms); 0 if it knew before the reply arrived. */
  readonly latency: LatencySummary
  /** Memory of the server for each token that a follower knows (bytes). Buffers of connections make it vary by about 5. */
  readonly perToken: number
  readonly revocation: Usage
  readonly login: Usage
}

export const messages: Figure = {
  id: 'F4',
  title: 'How sidecars learn of a revocation',
  about: `Only the server and followers, without Postern: a stream (XADD in the revoking script, XREAD BLOCK), client-side caching (CLIENT TRACKING), its broadcast (BCAST PREFIX), and pub/sub. Each follower knows ${TOKENS} tokens. All followers share the thread of the bench, so that the last of 100 waits for the others.`,
  async measure(lab) {
    const version = await serverVersion()
    if (version === undefined) return notInstalled('redis-server')
    const points: MessagesPoint[] = []
    for (const way of WAYS) {
      for (const followers of FOLLOWERS.filter((count) => lab.part === 1 || count < 10)) {
        const server = await startServer(lab.proxyCore)
        const point = await measureWay(server, way, followers).finally(() => server.stop())
        points.push(point)
        say(`  ${way.name}, ${followers} followers: p50 ${point.latency.p50.toFixed(2)} ms`)
      }
    }
    const operations = ['revocation', 'login'] as const
    return {
      tables: [
        {
          caption:
            'From the reply of the revoking script until a follower knows (ms); what operations and known tokens cost the server',
          head: [
            ...['way', 'followers', 'p50', 'p99', 'max', 'B per known token and follower'],
            ...operations.flatMap((name) => [`${name}: µs`, 'commands', 'bytes sent']),
          ],
          rows: points.map((point) => [
            point.way,
            String(point.followers),
            ...(['p50', 'p99', 'max'] as const).map((name) => fixed(point.latency[name], 2)),
            fixed(Math.max(0, point.perToken), 0),
            ...operations.flatMap((name) => {
              const { processor, commands, sent } = point[name]
              return [fixed(processor, 0), fixed(commands, 1), fixed(sent, 0)]
            }),
          ]),
        },
      ],
      notes: [`redis-server ${version}`],
    }
  },
}

/** Measures one way with this many followers. */
export async function measureWay(
  { port, client }: Server,
  way: Way,
  followers: number,
): Promise<MessagesPoint> {
  const login = await client.scriptLoad(LOGIN)
  const revoke = await client.scriptLoad(`${REVOKE}\n${way.tell}`)
  const issue = (i: number): Promise<unknown> =>
    client.evalSha(login, { keys: [...tokenKeys(i), `${PREFIX}grants`], arguments: ['3600000'] })
  const grants = Array.from({ length: TOKENS / 2 }, (_, i) => i)
  await Promise.all(grants.map(issue))

  let waiting = { key: '', times: [] as number[], done: () => {} }
  const heard = (key: string): void => {
    if (key !== waiting.key) return
    waiting.times.push(performance.now())
    if (waiting.times.length === followers) waiting.done()
  }
  const open: Follower[] = []
  for (let i = 0; i < followers; i += 1) open.push(await way.follow(port, heard))
  const connected = await readCounters(client)
  const known = grants.flatMap(tokenKeys)
  for (const { commands } of open) {
    for (let i = 0; i < known.length; i += BATCH) await commands.mGet(known.slice(i, i + BATCH))
  }
  const learned = await readCounters(client)

  const waits: number[] = []
  const revocation = await measureUsage(client, OPERATIONS, async () => {
    for (let i = 0; i < OPERATIONS; i += 1) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const [key = ''] = tokenKeys(i)
      waiting = { key, times: [], done: resolve }
      await client.evalSha(revoke, { keys: [...tokenKeys(i), `${PREFIX}grants`] })
      const replied = performance.now()
      await promise
      waits.push(...waiting.times.map((time) => Math.max(0, time - replied)))
    }
  })
  const logins = await measureUsage(client, OPERATIONS, async () => {
    for (let i = 0; i < OPERATIONS; i += 1) await issue(TOKENS + i)
  })
  for (const follower of open) follower.close()
  return {
    way: way.name,
    followers,
    latency: summarizeLatencies(waits),
    perToken: (learned.memory - connected.memory) / followers / TOKENS,
    revocation,
    login: logins,
  }
}

const LOGIN = `redis.call('SET', KEYS[1], string.rep('a', 150), 'PX', ARGV[1])
redis.call('SET', KEYS[2], string.rep('r', 150), 'PX', ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[1], KEYS[2])`

const REVOKE = `redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], KEYS[2])`

/** The keys of the access token and of the refresh token. */
function tokenKeys(grant: number): string[] {
  return ['a', 'r'].map(
    (kind) => `${PREFIX}t:${createHash('sha256').update(`${kind}${grant}`).digest('base64url')}`,
  )
}

/** A sidecar that waits for revocations. */
interface Follower {
  /** Its connection for commands, over which it reads tokens. */
  readonly commands: Client
  close(): void
}

/** A way in which sidecars learn of a revocation. */
interface Way {
  readonly name: string
  /** Lua at the end of the script that revokes: it tells the followers of the token `KEYS[1]`. */
  readonly tell: string
  /** Opens the connections of one sidecar, and calls `heard` with the key of each token that became void. */
  follow(port: number, heard: (key: string) => void): Promise<Follower>
}

type Reply = Readonly<Record<string, readonly (readonly [id: string, fields: readonly string[]])[]>>

function closing(...clients: readonly Client[]): () => void {
  return () => {
    for (const client of clients) client.destroy()
  }
}

export const WAYS: readonly Way[] = [
  {
    name: 'stream',
    tell: `redis.call('XADD', '${STREAM}', 'MAXLEN', '~', 10000, '*', 'token', KEYS[1])`,
    async follow(port, heard) {
      const [commands, own] = await Promise.all([connect(port), connect(port)])
      let id = '0-0'
      const read = async (): Promise<void> => {
        const block = ['XREAD', 'COUNT', '1000', 'BLOCK', String(PING), 'STREAMS', STREAM, id]
        const reply = await own.sendCommand<Reply | null>(block)
        for (const [entry, fields] of Object.values(reply ?? {}).flat()) {
          id = entry
          heard(fields[1] ?? '')
        }
        return read()
      }
      // It reads until its connection is closed.
      read().catch(() => {})
      return { commands, close: closing(own, commands) }
    },
  },
  {
    // The server remembers which connection has read which key.
    name: 'tracking',
    tell: '',
    async follow(port, heard) {
      const commands = await connect(port, true, PING)
      commands.on('invalidate', (key: Buffer | null) => heard(String(key)))
      return { commands, close: closing(commands) }
    },
  },
  {
    // The server tells every change of every key that begins with the prefix.
    name: 'tracking BCAST',
    tell: '',
    async follow(port, heard) {
      const commands = await connect(port, true, PING)
      commands.on('invalidate', (key: Buffer | null) => heard(String(key)))
      await commands.sendCommand(['CLIENT', 'TRACKING', 'OFF'])
      await commands.sendCommand(['CLIENT', 'TRACKING', 'ON', 'BCAST', 'PREFIX', `${PREFIX}t:`])
      return { commands, close: closing(commands) }
    },
  },
  {
    name: 'pub/sub',
    tell: `redis.call('PUBLISH', '${CHANNEL}', KEYS[1])`,
    async follow(port, heard) {
      const [commands, own] = await Promise.all([connect(port), connect(port, false, PING)])
      await own.subscribe(CHANNEL, heard)
      return { commands, close: closing(own, commands) }
    },
  },
]
