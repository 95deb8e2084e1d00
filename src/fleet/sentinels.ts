import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { StoreNode } from '../config/store-fields.ts'
import { formatHostPort } from '../system/listen-address.ts'
import { type Connection, connect, readAccount, type StoreSettings } from './connection.ts'
import { listOf, noReply, ServerReplyError } from './shared-store.ts'

/** Why a connection ends whose server the sentinels do not name. */
export const ANOTHER_PRIMARY = 'the sentinels name another primary'

/** How often the sentinels are asked for the primary (ms). */
const WATCH_INTERVAL = 1_000

/**
 * The sentinels of `tokens.store`, each with a connection that stays open. `createSentinel` of `@redis/client` breaks H145: it believes the
 * first sentinel that answers, so with one that is cut off it writes to the former primary (measured with version 6.3.1).
 */
type Sentinels = ReturnType<typeof openSentinels>

/** How long the answers of the last sentinels are waited for when most have answered (ms). */
const LAGGARDS = 200

/** What one sentinel says: the primary, and the number of the failover that made it one. */
interface View {
  readonly primary: StoreNode
  readonly epoch: number
}

/** Connects to the sentinels when they are first asked. The connections end with the signal. */
export function openSentinels(settings: StoreSettings, signal: AbortSignal) {
  const { nodes } = settings.address
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

  const ask = async (at: StoreNode): Promise<View> => askSentinel(await connectionTo(at), settings)

  return {
    /** The primary by the word of one of them, asked in random order until one knows it. Rejects if none does. */
    find: async (): Promise<StoreNode> => (await firstOf(shuffled(nodes), ask)).primary,
    /**
     * Whether they name another primary than `primary` (`host:port`). Those that know of the latest failover decide, most of them if they
     * disagree: the others hear of it up to two seconds later, and one that is cut off does not. Resolves when all have answered, or soon
     * after most have; if none does, with false.
     */
    isReplaced(primary: string): Promise<boolean> {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const views: View[] = []
      let pending = nodes.length
      let laggards: NodeJS.Timeout | undefined
      function decide(): void {
        clearTimeout(laggards)
        resolve(namesAnother(views, primary))
      }
      function ended(): void {
        pending -= 1
        if (pending === 0) decide()
        else if (views.length > nodes.length / 2) laggards ??= setTimeout(decide, LAGGARDS)
      }
      for (const at of nodes) {
        ask(at)
          .then((view) => void views.push(view))
          .then(ended, ended)
      }
      return promise
    },
  }
}

function namesAnother(views: readonly View[], primary: string): boolean {
  const latest = Math.max(...views.map(({ epoch }) => epoch))
  const informed = views.filter(({ epoch }) => epoch === latest)
  return informed.filter((view) => formatHostPort(view.primary) !== primary).length > informed.length / 2
}

/**
 * Calls `moved` when the sentinels name another primary than `current` (`host:port`, or undefined without a connection). A primary
 * that is cut off from its sentinels, but not from this sidecar, still accepts writes that the failover has already lost. Runs until
 * the signal.
 */
export async function watchSentinels(
  sentinels: Sentinels,
  { current, moved }: { readonly current: () => string | undefined; readonly moved: (from: string) => void },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await pause(WATCH_INTERVAL, undefined, { signal }).catch(() => {})
    const primary = current()
    if (primary !== undefined && (await sentinels.isReplaced(primary))) moved(primary)
  }
}

/** A sentinel may have no users of its own: then it refuses the one of the servers. */
async function connectToSentinel(
  settings: StoreSettings,
  at: StoreNode,
  signal: AbortSignal,
): Promise<Connection> {
  const { timeout } = settings
  const login = { ...(await readAccount(settings)), at, database: 0 }
  try {
    return await connect(login, timeout, signal)
  } catch (error) {
    if (!(error instanceof ServerReplyError && error.code === 'WRONGPASS')) throw error
    return await connect({ ...login, user: undefined, password: undefined }, timeout, signal)
  }
}

async function askSentinel(sentinel: Connection, { timeout, address }: StoreSettings): Promise<View> {
  const name = address.primary ?? ''
  const timer = setTimeout(() => sentinel.end(noReply(timeout)), timeout)
  const asked = Promise.all([
    // During a failover only this one names the new primary.
    sentinel.send(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]),
    sentinel.send(['SENTINEL', 'MASTER', name]).catch(() => null),
  ])
  const [named, details] = await asked.finally(() => clearTimeout(timer))
  const [host, port] = listOf(named)
  if (typeof host !== 'string' || host === '') {
    throw new Error(`the sentinels monitor no primary with the name ${name}; see the end of tokens.store`)
  }
  const facts = listOf(details)
  return {
    primary: { host, port: Number(port) },
    epoch: Number(facts[facts.indexOf('config-epoch') + 1] ?? 0) || 0,
  }
}

/** The first success, tried in order; otherwise rejects with the last error. */
export async function firstOf<T, R>(choices: readonly T[], attempt: (choice: T) => Promise<R>): Promise<R> {
  let failure: unknown = new Error('no server is named')
  for (const each of choices) {
    try {
      return await attempt(each)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** In random order, so that sidecars spread over the nodes, and none sticks to one that is down or cut off. */
export function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item) => ({ item, order: randomInt(1 << 30) }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item)
}
