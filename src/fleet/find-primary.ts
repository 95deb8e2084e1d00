import type { StoreNode } from '../config/store-fields.ts'
import { formatHostPort } from '../system/listen-address.ts'
import { type Connection, connect, type Login, readAccount, type StoreSettings } from './connection.ts'
import { ANOTHER_PRIMARY, firstOf, openSentinels, shuffled } from './sentinels.ts'
import { listOf, noReply, ServerReplyError, type StoreReply } from './shared-store.ts'

export interface ServerFacts {
  /** `redis` or `valkey`. */
  readonly server: string
  readonly version: string
  /** `standalone`, `cluster` or `sentinel`. */
  readonly mode: string
  /** `host:port`, or the path of the Unix socket. */
  readonly at: string
}

/** A connection to the primary that has the keys, and what the primary says of itself. */
interface PrimaryConnection {
  readonly connection: Connection
  readonly facts: ServerFacts
}

const NOT_THE_PRIMARY = new Error('not the primary')

/** A cluster names the right node at once. More hops mean that its nodes disagree. */
const HOP_LIMIT = 5

/**
 * Connects to the server that accepts writes to the keys. Asks the sentinels or follows the redirections of the cluster, and resolves a
 * host name anew. Each connection may take `store.timeout`. Rejects with a `SetupError` if a file cannot be read, with a
 * `ServerReplyError`, or with the error of the system.
 */
export async function connectToPrimary(
  settings: StoreSettings,
  signal: AbortSignal,
): Promise<PrimaryConnection> {
  const account = await readAccount(settings)
  const { kind, nodes, path, database } = settings.address
  const open = (at: Login['at']): Promise<PrimaryConnection> =>
    openPrimary(settings, { ...account, at, database }, signal)
  if (path !== undefined) return open({ path })
  switch (kind) {
    case 'sentinel':
      return openBySentinels(open, settings, signal)
    case 'cluster':
      return firstOf(shuffled(nodes), (node) => openInCluster(open, node))
    default:
      return firstOf(nodes, open)
  }
}

async function openPrimary(
  { timeout, prefix }: StoreSettings,
  login: Login,
  signal: AbortSignal,
): Promise<PrimaryConnection> {
  const connection = await connect(login, timeout, signal)
  const timer = setTimeout(() => connection.end(noReply(timeout)), timeout)
  try {
    const [hello] = await Promise.all([
      connection.send(['HELLO']),
      // Fails like every script: without the right to run it, while the server loads, at the wrong node of a cluster.
      connection.send(['EVAL', 'return 1', '1', `{${prefix}}:state`]),
    ])
    const facts = factsIn(hello)
    if (facts.role !== 'master') throw new ServerReplyError('READONLY')
    const at = 'path' in login.at ? login.at.path : formatHostPort(login.at)
    return { connection, facts: { ...facts, at } }
  } catch (error) {
    connection.end(NOT_THE_PRIMARY)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Connects to the named primary, then asks the sentinels again. A primary that was frozen during a failover still reports role master
 * until a sentinel reaches it.
 */
async function openBySentinels(
  open: (at: StoreNode) => Promise<PrimaryConnection>,
  settings: StoreSettings,
  signal: AbortSignal,
): Promise<PrimaryConnection> {
  const asking = new AbortController()
  try {
    const sentinels = openSentinels(settings, AbortSignal.any([signal, asking.signal]))
    const opened = await open(await sentinels.find())
    if (!(await sentinels.isReplaced(opened.facts.at))) return opened
    opened.connection.end(NOT_THE_PRIMARY)
    throw new Error(ANOTHER_PRIMARY)
  } finally {
    asking.abort()
  }
}

/** Opens a node, and the one to which it redirects the keys. */
async function openInCluster(
  open: (at: StoreNode) => Promise<PrimaryConnection>,
  first: StoreNode,
): Promise<PrimaryConnection> {
  let node = first
  for (let hops = 0; ; hops += 1) {
    try {
      return await open(node)
    } catch (error) {
      const next = movedTo(error, node)
      if (next === undefined || hops === HOP_LIMIT) throw error
      node = next
    }
  }
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
