import { randomInt } from 'node:crypto'
import type { StoreNode } from '../config/store-fields.ts'
import { formatHostPort } from '../system/listen-address.ts'
import {
  CLOSED,
  type Connection,
  connect,
  type ServerAddress,
  type StoreSettings,
  wantedReplicas,
} from './connection.ts'
import { listOf, ServerReplyError, valueIn } from './shared-store.ts'

export interface ServerFacts {
  /** `redis` or `valkey`. */
  readonly server: string
  readonly version: string
  /** `standalone`, `cluster` or `sentinel`. */
  readonly mode: string
  /** `host:port`, or the path of the Unix socket. */
  readonly at: string
}

/** A connection to the primary that has the keys, where it listens, and what it says of itself. */
export interface Primary {
  readonly connection: Connection
  readonly server: ServerAddress
  readonly facts: ServerFacts
}

/** A cluster names the right node at once. More hops mean that its nodes disagree. */
const HOP_LIMIT = 5

/**
 * Connects to the server that accepts writes to the keys. Asks the sentinels or follows the redirections of the cluster, and resolves a
 * host name anew. Each connection may take `store.timeout`. Rejects with a `SetupError` if a file cannot be read, with a
 * `ServerReplyError`, or with the error of the system.
 *
 * @param sentinels those of `tokens.store`
 */
export async function connectToPrimary(
  settings: StoreSettings,
  signal: AbortSignal,
  sentinels: AskSentinels | undefined,
): Promise<Primary> {
  const servers = await serversOf(settings, sentinels)
  let hops = settings.address.kind === 'cluster' ? HOP_LIMIT : 0
  let failure: unknown
  for (let server = servers.shift(); server !== undefined; server = servers.shift()) {
    try {
      return await openPrimary(settings, server, signal)
    } catch (error) {
      failure = error
      const next = hops > 0 ? movedTo(error, server) : undefined
      if (next === undefined) continue
      hops -= 1
      servers.unshift(next)
    }
  }
  throw failure
}

async function serversOf(
  { address }: StoreSettings,
  sentinels: AskSentinels | undefined,
): Promise<ServerAddress[]> {
  const { nodes, path } = address
  if (path !== undefined) return [{ path }]
  if (sentinels !== undefined) return [await sentinels()]
  // In turn from a random one, so that sidecars spread over the nodes, and none sticks to one that is down.
  const first = randomInt(nodes.length)
  return [...nodes.slice(first), ...nodes.slice(0, first)]
}

async function openPrimary(
  settings: StoreSettings,
  server: ServerAddress,
  signal: AbortSignal,
): Promise<Primary> {
  const connection = await connect(settings, server, signal)
  try {
    const [hello] = await Promise.all([
      connection.send(['HELLO']),
      // Fails like every script: without the right to run it, while the server loads, at the wrong node of a cluster.
      connection.send(['EVAL', 'return 1', '1', `{${settings.prefix}}:state`]),
    ])
    const fact = (name: string): string => valueIn(hello, name) ?? ''
    if (fact('role') !== 'master') throw new ServerReplyError('READONLY')
    const at = 'path' in server ? server.path : formatHostPort(server)
    const facts = { server: fact('server'), version: fact('version'), mode: fact('mode'), at }
    return { connection, server, facts }
  } catch (error) {
    connection.end(CLOSED)
    throw error
  }
}

/** The node in `MOVED 3999 127.0.0.1:6381`. Without a host, it is another port of the same host. */
function movedTo(error: unknown, from: ServerAddress): StoreNode | undefined {
  if (!(error instanceof ServerReplyError) || error.code !== 'MOVED' || 'path' in from) return undefined
  const [, host = '', port] = /^MOVED \d+ (.*):(\d+)$/.exec(error.message) ?? []
  if (port === undefined || host === '?') return undefined
  return { host: host === '' ? from.host : host, port: Number(port) }
}

/** The connections to one server. When one ends, all end, so all lead to the same primary. */
export interface StoreSession {
  readonly at: string
  /** `follow` and confirmed scripts block theirs. */
  readonly to: Readonly<Record<'scripts' | 'stream' | 'confirmed', Connection>>
  /** Why the first of its connections ended. */
  readonly ended: Promise<Error>
}

/** Opens all connections of a session, or none. Rejects as `connectToPrimary`. */
export async function openSession(
  settings: StoreSettings,
  signal: AbortSignal,
  sentinels: AskSentinels | undefined,
): Promise<StoreSession> {
  const over = new AbortController()
  const either = AbortSignal.any([signal, over.signal])
  try {
    const { connection: scripts, server, facts } = await connectToPrimary(settings, either, sentinels)
    const [stream, confirmed] = await Promise.all([
      connect(settings, server, either),
      wantedReplicas(settings) === 0 ? scripts : connect(settings, server, either),
    ])
    const to = { scripts, stream, confirmed }
    const ended = Promise.race(Object.values(to).map((each) => each.ended))
    ended.then((reason) => over.abort(reason))
    return { at: facts.at, to, ended }
  } catch (error) {
    over.abort(CLOSED)
    throw error
  }
}

/** How long the answers of the last sentinels are waited for when most have answered (ms). */
const LAGGARDS = 200

/** What one sentinel says: the primary, its `host:port`, and the number of the failover that made it one. */
interface View {
  readonly node: StoreNode
  readonly name: string
  readonly epoch: number
}

/** Asks the sentinels for the primary. Rejects if none knows it. */
export type AskSentinels = () => Promise<StoreNode>

/**
 * The sentinels of `tokens.store`, if it names any, each with a connection that opens when it is first asked, stays open and ends with
 * the signal.
 *
 * `createSentinel` of `@redis/client` breaks H145: it believes the first sentinel that answers, so with one that is cut off it writes to
 * the former primary. It breaks H135, too: its command timeout does not end the wait for a frozen primary (both measured with version 6.3.1).
 */
export function openSentinels(settings: StoreSettings, signal: AbortSignal): AskSentinels | undefined {
  const { kind, nodes, primary: group = '' } = settings.address
  if (kind !== 'sentinel') return undefined
  const open = new Map<StoreNode, Promise<Connection>>()

  function openTo(at: StoreNode): Promise<Connection> {
    const opening = connectToSentinel(settings, at, signal)
    const forget = (): void => void open.delete(at)
    opening.then(({ ended }) => ended).then(forget, forget)
    return opening
  }

  /** Resolves when all sentinels have answered, or soon after most have. */
  return async () => {
    const views: View[] = []
    const most = Promise.withResolvers<void>()
    let laggards: NodeJS.Timeout | undefined
    const asking = nodes.map(async (at) => {
      const view = await askSentinel(await open.getOrInsertComputed(at, openTo), group)
      views.push(view)
      if (views.length > nodes.length / 2) laggards ??= setTimeout(most.resolve, LAGGARDS)
      return view
    })
    await Promise.race([Promise.allSettled(asking), most.promise])
    clearTimeout(laggards)
    const { node } = elect(views) ?? (await Promise.race(asking))
    return node
  }
}

/**
 * The primary of those that know of the latest failover, of most of them if they disagree: the others hear of it up to two seconds later,
 * and one that is cut off does not.
 */
export function elect(views: readonly View[]): View | undefined {
  const votes = ({ epoch, name }: View): number =>
    views.filter((each) => each.epoch === epoch && each.name === name).length
  // By the name, too, so that a tie is decided the same way each time.
  const [elected] = views.toSorted(
    (a, b) => b.epoch - a.epoch || votes(b) - votes(a) || (a.name < b.name ? -1 : 1),
  )
  return elected
}

/** A sentinel may have no users of its own: then it refuses the one of the servers. */
function connectToSentinel(settings: StoreSettings, at: StoreNode, signal: AbortSignal): Promise<Connection> {
  return connect(settings, at, signal, { database: 0 }).catch((error: unknown) => {
    if (!(error instanceof ServerReplyError && error.code === 'WRONGPASS')) throw error
    return connect(settings, at, signal, { database: 0, isAnonymous: true })
  })
}

/** @param group the name of the primary at the sentinels */
async function askSentinel(sentinel: Connection, group: string): Promise<View> {
  const [named, details] = await Promise.all([
    // During a failover only this one names the new primary.
    sentinel.send(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', group]),
    sentinel.send(['SENTINEL', 'MASTER', group]).catch(() => null),
  ])
  const [host, port] = listOf(named)
  if (typeof host !== 'string' || host === '') {
    throw new Error(`the sentinels monitor no primary with the name ${group}; see the end of tokens.store`)
  }
  const node = { host, port: Number(port) }
  const epoch = Number(valueIn(details, 'config-epoch')) || 0
  return { node, name: formatHostPort(node), epoch }
}
