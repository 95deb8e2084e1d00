import { setTimeout as pause } from 'node:timers/promises'
import { formatNode, type StoreNode } from '../config/store-url.ts'
import { firstOf, shuffled } from './choices.ts'
import { type Connection, connect } from './connection.ts'
import { noReply, ServerReplyError } from './failures.ts'
import { readAccount, type StoreSettings } from './login.ts'
import { listOf } from './shared-store.ts'

/** Why a connection ends whose server most sentinels do not name. */
export const ANOTHER_PRIMARY = 'the sentinels name another primary'

/** How often the sentinels are asked for the primary (ms). */
const WATCH_INTERVAL = 1_000

/** The sentinels of `tokens.store`, each with a connection that stays open. */
export interface Sentinels {
  /** The primary by the word of one of them, asked in random order until one knows it. Rejects if none does. */
  find(): Promise<StoreNode>
  /**
   * Whether most of them name another primary than `primary` (`host:port`). One alone may be cut off, and not know of a failover or
   * name a server that is none. Resolves as soon as enough have answered; one without an answer names no other.
   */
  isReplaced(primary: string): Promise<boolean>
}

/** Connects to the sentinels when they are first asked. The connections end with the signal. */
export function openSentinels(settings: StoreSettings, signal: AbortSignal): Sentinels {
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

  const ask = async (at: StoreNode): Promise<StoreNode> => askSentinel(await connectionTo(at), settings)

  return {
    find: () => firstOf(shuffled(nodes), ask),
    isReplaced(primary) {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      let [against, pending] = [0, nodes.length]
      function count(other: boolean): void {
        pending -= 1
        if (other) against += 1
        if (against > nodes.length / 2) resolve(true)
        else if (against + pending <= nodes.length / 2) resolve(false)
      }
      for (const at of nodes) {
        ask(at).then(
          (named) => count(formatNode(named) !== primary),
          () => count(false),
        )
      }
      return promise
    },
  }
}

/**
 * Calls `moved` when most sentinels name another primary than `current` (`host:port`, or undefined without a connection). A primary
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

async function askSentinel(sentinel: Connection, { timeout, address }: StoreSettings): Promise<StoreNode> {
  const name = address.primary ?? ''
  const timer = setTimeout(() => sentinel.end(noReply(timeout)), timeout)
  const question = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]
  const reply = await sentinel.send(question).finally(() => clearTimeout(timer))
  const [host, port] = listOf(reply)
  if (typeof host !== 'string' || host === '') {
    throw new Error(`the sentinels monitor no primary with the name ${name}; see the end of tokens.store`)
  }
  return { host, port: Number(port) }
}
