import type { Clock } from '../system/clock.ts'
import { formatHostPort } from '../system/listen-address.ts'
import { CLOSED, type Connection, connect, type StoreSettings } from './connection.ts'
import { ServerReplyError, valueIn } from './shared-store.ts'

export interface ServerFacts {
  /** `redis` or `valkey`. */
  readonly server: string
  readonly version: string
  /** The `mode` of `HELLO`: `standalone`, `cluster` or `sentinel`. */
  readonly mode: string
  /** `host:port`, or the path of the Unix socket. */
  readonly at: string
}

/** A connection to the server, and what the server says about itself. */
interface Primary {
  readonly connection: Connection
  readonly facts: ServerFacts
}

/**
 * Connects to the server, with a new look-up of its host name, within `timeout`. Rejects with a `SetupError` if a file cannot be read, with
 * a `ServerReplyError` (`READONLY`: the server is a replica), or with the error of the system.
 */
export async function connectToPrimary(
  settings: StoreSettings,
  signal: AbortSignal,
  clock?: Clock,
): Promise<Primary> {
  const connection = await connect(settings, signal, clock)
  try {
    const [hello] = await Promise.all([
      connection.send(['HELLO']),
      // Fails as every later script would: if the user may not run scripts, or while the server loads its data.
      connection.send(['EVAL', 'return 1', '1', `{${settings.prefix}}:state`]),
    ])
    const fact = (name: string): string => valueIn(hello, name) ?? ''
    if (fact('role') !== 'master') throw new ServerReplyError('READONLY')
    const { server } = settings.address
    const at = 'path' in server ? server.path : formatHostPort(server)
    return { connection, facts: { server: fact('server'), version: fact('version'), mode: fact('mode'), at } }
  } catch (error) {
    connection.end(CLOSED)
    throw error
  }
}

/** The connections to one server. When one ends, all end: the address may lead to another server from then on. */
export interface StoreSession {
  /** One connection for each purpose, because `follow` and confirmed scripts block theirs. */
  readonly to: Readonly<Record<'scripts' | 'stream' | 'confirmed', Connection>>
  /** Resolves with the reason when the first of its connections ends. */
  readonly ended: Promise<Error>
}

/** Opens all connections of a session, or none. Rejects as `connectToPrimary`. */
export async function openSession(
  settings: StoreSettings,
  signal: AbortSignal,
  clock?: Clock,
): Promise<StoreSession> {
  const over = new AbortController()
  const either = AbortSignal.any([signal, over.signal])
  try {
    const { connection: scripts } = await connectToPrimary(settings, either, clock)
    const [stream, confirmed] = await Promise.all([
      connect(settings, either, clock),
      settings.replicas === 0 ? scripts : connect(settings, either, clock),
    ])
    const to = { scripts, stream, confirmed }
    const ended = Promise.race(Object.values(to).map((each) => each.ended))
    ended.then((reason) => over.abort(reason))
    return { to, ended }
  } catch (error) {
    over.abort(CLOSED)
    throw error
  }
}
