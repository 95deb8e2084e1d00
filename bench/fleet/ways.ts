import { type Client, connect } from './server.ts'

/** Keys as a sidecar names them. The bench of the messages has no other keys. */
export const PREFIX = '{postern}:'
const STREAM = `${PREFIX}events`
const CHANNEL = `${PREFIX}revoked`

/** A sidecar that waits for revocations. */
export interface Follower {
  /** Its connection for commands, over which it reads tokens. */
  readonly commands: Client
  close(): void
}

/** A way in which sidecars learn of a revocation. */
export interface Way {
  readonly name: string
  /** Whether the server keeps messages for a follower whose connection is cut. */
  readonly keeps: boolean
  /** Lua at the end of the script that revokes: it tells the followers of the token `KEYS[1]`. */
  readonly tell: string
  /** Opens the connections of one sidecar, and calls `heard` with the key of each token that became void. */
  follow(port: number, heard: (key: string) => void): Promise<Follower>
}

/** A sidecar that waits for pushes alone would not notice a dead connection, so it asks this often (ms). */
const PING = 2_000

/** The id of the last entry, so that a follower continues there. Each reading waits up to 2 s for an entry. */
const stream: Way = {
  name: 'stream',
  keeps: true,
  tell: `redis.call('XADD', '${STREAM}', 'MAXLEN', '~', 10000, '*', 'token', KEYS[1])`,
  async follow(port, heard) {
    const [commands, own] = await Promise.all([connect(port), connect(port)])
    let id = '0-0'
    let open = true
    const read = async (): Promise<void> => {
      while (open) {
        // A connection that was cut: the next command waits until it is back.
        const reply = await own
          .sendCommand<StreamReply>(['XREAD', 'COUNT', '1000', 'BLOCK', String(PING), 'STREAMS', STREAM, id])
          .catch(() => null)
        for (const [entry, fields] of entriesOf(reply)) {
          id = entry
          heard(fields[1] ?? '')
        }
      }
    }
    void read()
    return {
      commands,
      close() {
        open = false
        own.destroy()
        commands.destroy()
      },
    }
  },
}

type Entry = readonly [id: string, fields: readonly string[]]
type StreamReply =
  | Readonly<Record<string, readonly Entry[]>>
  | readonly (readonly [string, readonly Entry[]])[]
  | null

/** The entries of a reply, in whichever form of RESP3 the client returns it. */
function entriesOf(reply: StreamReply): readonly Entry[] {
  if (reply === null) return []
  const streams = Array.isArray(reply) ? reply.map(([, entries]) => entries) : Object.values(reply)
  return streams.flat() as Entry[] // both forms have entries there
}

/** The server remembers which connection has read which key. */
const tracking: Way = {
  name: 'tracking',
  keeps: false,
  tell: '',
  async follow(port, heard) {
    const commands = await connect(port, true, PING)
    commands.on('invalidate', (key: Buffer | null) => heard(String(key)))
    return { commands, close: () => commands.destroy() }
  },
}

/** The server tells every change of every key that begins with the prefix. */
const broadcast: Way = {
  name: 'tracking BCAST',
  keeps: false,
  tell: '',
  async follow(port, heard) {
    const commands = await connect(port, true, PING)
    commands.on('invalidate', (key: Buffer | null) => heard(String(key)))
    const choose = async (): Promise<void> => {
      await commands.sendCommand(['CLIENT', 'TRACKING', 'OFF'])
      await commands.sendCommand(['CLIENT', 'TRACKING', 'ON', 'BCAST', 'PREFIX', `${PREFIX}t:`])
    }
    await choose()
    commands.on('ready', () => void choose().catch(() => {}))
    return { commands, close: () => commands.destroy() }
  },
}

const publish: Way = {
  name: 'pub/sub',
  keeps: false,
  tell: `redis.call('PUBLISH', '${CHANNEL}', KEYS[1])`,
  async follow(port, heard) {
    const [commands, own] = await Promise.all([connect(port), connect(port, false, PING)])
    await own.subscribe(CHANNEL, heard)
    return {
      commands,
      close() {
        own.destroy()
        commands.destroy()
      },
    }
  },
}

export const WAYS: readonly Way[] = [stream, tracking, broadcast, publish]
