import { randomInt } from 'node:crypto'
import type { StoreNode } from '../config/store-fields.ts'
import { formatHostPort } from '../system/listen-address.ts'
import { CLOSED, type Connection, connect, type Place, type StoreSettings } from './connection.ts'
import type { AskSentinels } from './sentinels.ts'
import { listOf, ServerReplyError, type StoreReply } from './shared-store.ts'

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
  readonly place: Place
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
  const { kind, nodes, path } = settings.address
  const open = (at: Place): Promise<Primary> => openPrimary(settings, at, signal)
  if (path !== undefined) return open({ path })
  if (sentinels !== undefined) return open(await sentinels())
  // In turn from a random one, so that sidecars spread over the nodes, and none sticks to one that is down.
  const first = randomInt(nodes.length)
  let failure: unknown
  for (const node of [...nodes.slice(first), ...nodes.slice(0, first)]) {
    try {
      return await (kind === 'cluster' ? openInCluster(open, node) : open(node))
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function openPrimary(settings: StoreSettings, place: Place, signal: AbortSignal): Promise<Primary> {
  const connection = await connect(settings, place, signal)
  try {
    const [hello] = await Promise.all([
      connection.send(['HELLO']),
      // Fails like every script: without the right to run it, while the server loads, at the wrong node of a cluster.
      connection.send(['EVAL', 'return 1', '1', `{${settings.prefix}}:state`]),
    ])
    const { role, ...facts } = factsIn(hello)
    if (role !== 'master') throw new ServerReplyError('READONLY')
    const at = 'path' in place ? place.path : formatHostPort(place)
    return { connection, place, facts: { ...facts, at } }
  } catch (error) {
    connection.end(CLOSED)
    throw error
  }
}

/** Opens a node, and the one to which it redirects the keys. */
function openInCluster(
  open: (at: StoreNode) => Promise<Primary>,
  node: StoreNode,
  hops = HOP_LIMIT,
): Promise<Primary> {
  return open(node).catch((error: unknown) => {
    const next = movedTo(error, node)
    if (next === undefined || hops === 0) throw error
    return openInCluster(open, next, hops - 1)
  })
}

/** The node in `MOVED 3999 127.0.0.1:6381`. Without a host, it is another port of the same host. */
function movedTo(error: unknown, from: StoreNode): StoreNode | undefined {
  if (!(error instanceof ServerReplyError) || error.code !== 'MOVED') return undefined
  const [, host = '', port] = /^MOVED \d+ (.*):(\d+)$/.exec(error.message) ?? []
  if (port === undefined || host === '?') return undefined
  return { host: host === '' ? from.host : host, port: Number(port) }
}

function factsIn(hello: StoreReply): Omit<ServerFacts, 'at'> & { readonly role: string } {
  const pairs = listOf(hello)
  const value = (name: string): string => String(pairs[pairs.indexOf(name) + 1] ?? '')
  return { server: value('server'), version: value('version'), mode: value('mode'), role: value('role') }
}
