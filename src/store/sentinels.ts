import { setTimeout as pause } from 'node:timers/promises'
import { formatNode, type StoreNode } from '../config/store-url.ts'
import { type Connection, connect } from './connection.ts'
import { noReply, ServerReplyError } from './failures.ts'
import { type Account, firstOf, readAccount, type StoreSettings, shuffled } from './login.ts'
import { listOf } from './shared-store.ts'

/** How often the sentinels are asked for the primary (ms). */
const WATCH_INTERVAL = 1_000

/** A connection to a sentinel that knows the primary. */
export interface KnowingSentinel {
  readonly primary: StoreNode
  /** Asks it again. */
  ask(): Promise<StoreNode>
  end(): void
}

/** Asks the sentinels in random order for the address of the primary, until one knows it. */
export function findSentinel(
  settings: StoreSettings,
  account: Account,
  signal: AbortSignal,
): Promise<KnowingSentinel> {
  return firstOf(shuffled(settings.address.nodes), async (at) => {
    const sentinel = await connectToSentinel(settings, account, at, signal)
    const ask = (): Promise<StoreNode> => askSentinel(sentinel, settings)
    const end = (): void => sentinel.end(new Error('done'))
    try {
      return { primary: await ask(), ask, end }
    } catch (error) {
      end()
      throw error
    }
  })
}

/** `host:port` of the primary, as one of the sentinels names it. */
export async function findPrimary(settings: StoreSettings, signal: AbortSignal): Promise<string> {
  const sentinel = await findSentinel(settings, await readAccount(settings), signal)
  sentinel.end()
  return formatNode(sentinel.primary)
}

/**
 * Calls `moved` when most sentinels name another primary than `current` (`host:port`, or undefined without a connection). A primary
 * that is cut off from its sentinels, but not from this sidecar, still accepts writes that the failover has already lost. Runs until
 * the signal.
 */
export async function watchSentinels(
  settings: StoreSettings,
  { current, moved }: { readonly current: () => string | undefined; readonly moved: () => void },
  signal: AbortSignal,
): Promise<void> {
  const { nodes } = settings.address
  let sentinel: Connection | undefined
  const ask = async (each: Connection): Promise<string> => formatNode(await askSentinel(each, settings))

  /** How many sentinels name another primary. */
  async function votesAgainst(primary: string, account: Account): Promise<number> {
    const votes = nodes.map(async (at) => {
      const each = await connectToSentinel(settings, account, at, signal)
      const named = await ask(each).finally(() => each.end(new Error('done')))
      return named !== primary
    })
    const known = await Promise.allSettled(votes)
    return known.filter((vote) => vote.status === 'fulfilled' && vote.value).length
  }

  async function look(): Promise<void> {
    const primary = current()
    if (primary === undefined) return
    const account = await readAccount(settings)
    sentinel ??= await firstOf(shuffled(nodes), (at) => connectToSentinel(settings, account, at, signal))
    if ((await ask(sentinel)) === primary) return
    // One sentinel may be the one that is cut off.
    const against = await votesAgainst(primary, account)
    if (against > nodes.length / 2 && current() === primary) moved()
    sentinel.end(new Error('done'))
    sentinel = undefined
  }

  while (!signal.aborted) {
    await pause(WATCH_INTERVAL, undefined, { signal }).catch(() => {})
    if (signal.aborted) break
    await look().catch(() => {
      sentinel?.end(new Error('done'))
      sentinel = undefined
    })
  }
  sentinel?.end(new Error('done'))
}

/** A sentinel may have no users of its own: then it refuses the one of the servers. */
async function connectToSentinel(
  { timeout }: StoreSettings,
  account: Account,
  at: StoreNode,
  signal: AbortSignal,
): Promise<Connection> {
  const login = { ...account, at, database: 0 }
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
