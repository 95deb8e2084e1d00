import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { formatHostPort } from '../system/listen-address.ts'
import { type Connection, connect, type StoreSettings, wantedReplicas } from './connection.ts'
import { type AskSentinels, connectToPrimary, openSentinels } from './find-primary.ts'
import {
  isAtWrongServer,
  isRefusal,
  type StoreOperation,
  type StoreReply,
  StoreUnavailable,
  unavailable,
} from './shared-store.ts'

/** What a connection is for. `follow` and confirmed scripts block theirs. */
type Purpose = 'scripts' | 'stream' | 'confirmed'

/** The connections to one server. They begin and end together, so all lead to the same primary. */
interface Session {
  readonly at: string
  readonly to: Readonly<Record<Purpose, Connection | undefined>>
  /** Why the first of its connections ended. */
  readonly ended: Promise<Error>
  end(reason: Error): void
}

interface Events {
  readonly opened: () => void
  readonly failed: (error: StoreUnavailable) => void
  /** The server answers, but refuses the command: it is full, accepts no writes, or the user lacks a right. */
  readonly refused: (error: StoreUnavailable) => void
}

/**
 * The pause before the next attempt (ms), random between two bounds, so that sidecars do not come all at once. A refused login waits
 * longer, because each may count as one of an attacker.
 */
const AFTER_LOSS = [10, 50] as const
const AFTER_FAILURE = [250, 500] as const
const AFTER_REFUSAL = [750, 1_000] as const

/** How often the sentinels are asked for the primary (ms). */
const WATCH_INTERVAL = 1_000

/** Keeps a session with the primary: when one of its connections ends, all end, and the next session begins. */
export function keepSession(settings: StoreSettings, { opened, failed, refused }: Events) {
  const life = new AbortController()
  const { signal } = life
  const sentinels = openSentinels(settings, signal)
  const firstAttempt = Promise.withResolvers<void>()
  let session: Session | undefined
  let failure = new StoreUnavailable('connect', 'disconnected', 'not connected yet')

  /** Opens a session, and waits for its end. Returns the pause before the next attempt. */
  async function keepOnce(): Promise<number> {
    try {
      session = await openSession(settings, signal, sentinels)
    } catch (error) {
      fail(error)
      return failure.failure === 'refused' ? randomInt(...AFTER_REFUSAL) : randomInt(...AFTER_FAILURE)
    }
    opened()
    firstAttempt.resolve()
    const reason = await session.ended
    session.end(reason)
    session = undefined
    fail(reason)
    return randomInt(...AFTER_LOSS)
  }

  function fail(error: unknown): void {
    failure = unavailable('connect', error)
    if (!signal.aborted) failed(failure)
    firstAttempt.resolve()
  }

  async function repeat(step: () => Promise<number>): Promise<void> {
    while (!signal.aborted) await pause(await step(), undefined, { signal }).catch(() => {})
  }

  /**
   * Asks the sentinels, and leaves a server that they do not name. A primary that is cut off from its sentinels, but not from this sidecar,
   * still accepts writes that the failover has already lost. Unless they say otherwise, the server is taken for the primary.
   */
  async function isPrimary(): Promise<boolean> {
    const asked = session
    if (sentinels === undefined || asked === undefined) return true
    const named = await sentinels().catch(() => undefined)
    if (named === undefined || formatHostPort(named) === asked.at) return true
    asked.end(new Error('the sentinels name another primary'))
    return false
  }

  const watch = (): Promise<number> => isPrimary().then(() => WATCH_INTERVAL)
  const running = Promise.all([repeat(keepOnce), sentinels && repeat(watch)])

  return {
    /** Resolves when the first attempt to connect has ended, well or not. */
    firstAttempt: firstAttempt.promise,
    get open(): boolean {
      return session !== undefined
    },
    isPrimary,
    /** As `Connection.send`. Rejects with `StoreUnavailable`, at once without a session. */
    async ask(
      purpose: Purpose,
      operation: StoreOperation,
      question: readonly string[],
      within = settings.timeout,
      repetition?: readonly string[],
    ): Promise<StoreReply> {
      const at = session?.to[purpose]
      if (at === undefined) throw unavailable(operation, failure)
      try {
        return await at.send(question, within, repetition)
      } catch (error) {
        const reported = unavailable(operation, error)
        // Behind a floating address or in a cluster, the next session may reach the right server.
        if (isAtWrongServer(error)) at.end(reported)
        if (isRefusal(error)) refused(reported)
        throw reported
      }
    },
    async close(): Promise<void> {
      life.abort()
      await running
    },
  }
}

async function openSession(
  settings: StoreSettings,
  signal: AbortSignal,
  sentinels: AskSentinels | undefined,
): Promise<Session> {
  const over = new AbortController()
  const either = AbortSignal.any([signal, over.signal])
  try {
    const { connection, place, facts } = await connectToPrimary(settings, either, sentinels)
    const others = wantedReplicas(settings) === 0 ? 1 : 2
    const opening = Array.from({ length: others }, () => connect(settings, place, either))
    const connections = await Promise.all([connection, ...opening])
    const [scripts, stream, confirmed] = connections
    return {
      at: facts.at,
      to: { scripts, stream, confirmed },
      ended: Promise.race(connections.map((each) => each.ended)),
      end(reason) {
        for (const each of connections) each.end(reason)
      },
    }
  } catch (error) {
    over.abort()
    throw error
  }
}
