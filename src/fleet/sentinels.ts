import type { StoreNode } from '../config/store-fields.ts'
import { formatHostPort } from '../system/listen-address.ts'
import { type Connection, connect, type StoreSettings } from './connection.ts'
import { listOf, ServerReplyError } from './shared-store.ts'

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
 * the former primary (measured with version 6.3.1).
 */
export function openSentinels(settings: StoreSettings, signal: AbortSignal): AskSentinels | undefined {
  const { kind, nodes, primary: group = '' } = settings.address
  if (kind !== 'sentinel') return undefined
  const open = new Map<StoreNode, Promise<Connection>>()

  function connectionTo(at: StoreNode): Promise<Connection> {
    const kept = open.get(at)
    if (kept !== undefined) return kept
    const opening = connectToSentinel(settings, at, signal)
    open.set(at, opening)
    const forget = (): void => void open.delete(at)
    opening.then(({ ended }) => ended).then(forget, forget)
    return opening
  }

  /** Resolves when all sentinels have answered, or soon after most have. */
  return () => {
    const { promise, resolve, reject } = Promise.withResolvers<StoreNode>()
    const views: View[] = []
    let pending = nodes.length
    let laggards: NodeJS.Timeout | undefined
    function decide(error?: unknown): void {
      clearTimeout(laggards)
      const elected = elect(views)
      if (elected === undefined) reject(error)
      else resolve(elected)
    }
    function ended(error?: unknown): void {
      pending -= 1
      if (pending === 0) decide(error)
      else if (views.length > nodes.length / 2) laggards ??= setTimeout(decide, LAGGARDS)
    }
    for (const at of nodes) {
      connectionTo(at)
        .then((sentinel) => askSentinel(sentinel, group))
        .then((view) => void views.push(view))
        .then(ended, ended)
    }
    return promise
  }
}

/**
 * The primary of those that know of the latest failover, of most of them if they disagree: the others hear of it up to two seconds later,
 * and one that is cut off does not.
 */
function elect(views: readonly View[]): StoreNode | undefined {
  const latest = Math.max(...views.map(({ epoch }) => epoch))
  const informed = Map.groupBy(
    views.filter(({ epoch }) => epoch === latest),
    ({ name }) => name,
  )
  // By the name, too, so that a tie is decided the same way each time.
  const [elected] = [...informed].sort(
    ([a, one], [b, other]) => other.length - one.length || (a < b ? -1 : 1),
  )
  return elected?.[1][0]?.node
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
  const facts = listOf(details)
  const node = { host, port: Number(port) }
  const epoch = Number(facts[facts.indexOf('config-epoch') + 1] ?? 0) || 0
  return { node, name: formatHostPort(node), epoch }
}
