import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import { CLOSED, type Connection } from './connection.ts'
import {
  isAtWrongServer,
  isRefusal,
  noReply,
  type Script,
  ServerReplyError,
  type StoreOperation,
  type StoreReply,
  StoreUnavailable,
  unavailable,
} from './shared-store.ts'

export type KeptConnection = ReturnType<typeof keepConnection>

interface Events {
  readonly opened?: () => void
  readonly failed?: (error: StoreUnavailable) => void
  /** The server on this connection is not the primary. The connection has been closed. */
  readonly wrongServer?: (error: StoreUnavailable) => void
  /** The server answers, but refuses the command: it is full, accepts no writes, or the user lacks a right. */
  readonly refused?: (error: StoreUnavailable) => void
}

/**
 * The pause before the next attempt (ms), random between two bounds, so that sidecars do not come all at once. A refused login waits
 * longer, because each may count as one of an attacker.
 */
const AFTER_LOSS = [10, 50] as const
const AFTER_FAILURE = [250, 500] as const
const AFTER_REFUSAL = [750, 1_000] as const

/** The maximum number of questions without a reply. Only a stalled server has so many: each waits for `store.timeout` at most. */
const PENDING_LIMIT = 10_000

/** Keeps a connection open: it is opened again whenever it ends. `connect` opens one, and gives up at the signal. */
export function keepConnection(
  connect: (signal: AbortSignal) => Promise<Connection>,
  { opened, failed, wrongServer, refused }: Events = {},
) {
  const life = new AbortController()
  const firstAttempt = Promise.withResolvers<void>()
  let connection: Connection | undefined
  let pending = 0
  let failure = new StoreUnavailable('connect', 'disconnected', 'not connected yet')

  const fail = (error: unknown): void => {
    failure = unavailable('connect', error)
    if (!life.signal.aborted) failed?.(failure)
  }

  /** Opens the connection, and waits for its end. Returns the pause before the next attempt. */
  async function keepOnce(): Promise<number> {
    try {
      connection = await connect(life.signal)
    } catch (error) {
      fail(error)
      firstAttempt.resolve()
      return failure.failure === 'refused' ? randomInt(...AFTER_REFUSAL) : randomInt(...AFTER_FAILURE)
    }
    opened?.()
    firstAttempt.resolve()
    const reason = await connection.ended
    connection = undefined
    fail(reason)
    return randomInt(...AFTER_LOSS)
  }

  async function keep(): Promise<void> {
    while (!life.signal.aborted) {
      const delay = await keepOnce()
      await pause(delay, undefined, { signal: life.signal }).catch(() => {})
    }
    connection?.end(CLOSED)
  }

  const kept = keep()

  return {
    /** Resolves when the first attempt to connect has ended, well or not. */
    firstAttempt: firstAttempt.promise,
    get open(): boolean {
      return connection !== undefined
    },
    /**
     * Asks the server. Rejects with `StoreUnavailable`: at once without a connection, otherwise after `timeout` (ms) at the latest. A
     * question without a reply ends the connection, and with it every other question on it: a late reply must not be taken for another.
     *
     * @param repetition what to ask instead if the server does not know the script of the question
     */
    async ask(
      operation: StoreOperation,
      question: readonly string[],
      timeout: number,
      repetition?: readonly string[],
    ): Promise<StoreReply> {
      const at = connection
      if (at === undefined) throw unavailable(operation, failure)
      if (pending === PENDING_LIMIT)
        throw new StoreUnavailable(operation, 'timeout', `${PENDING_LIMIT} questions wait for the server`)
      pending += 1
      const timer = setTimeout(() => at.end(unavailable(operation, noReply(timeout))), timeout)
      try {
        const asking = at.send(question)
        return await (repetition === undefined ? asking : asking.catch(repeated(at, repetition)))
      } catch (error) {
        const reported = unavailable(operation, error)
        if (isAtWrongServer(error)) {
          at.end(reported)
          wrongServer?.(reported)
        }
        if (isRefusal(error)) refused?.(reported)
        throw reported
      } finally {
        clearTimeout(timer)
        pending -= 1
      }
    },
    /** Ends the connection. It is opened again at once. */
    renew: (reason: Error): void => connection?.end(reason),
    async close(): Promise<void> {
      life.abort()
      await kept
    },
  }
}

/** Sends the repetition after the error of an unknown script. */
function repeated(at: Connection, repetition: readonly string[]): (error: unknown) => Promise<StoreReply> {
  return (error) => {
    if (error instanceof ServerReplyError && error.code === 'NOSCRIPT') return at.send(repetition)
    throw error
  }
}

/** Runs a script. The names of its keys are whole. */
export type Run = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<StoreReply>

interface ReplicatedRunsSettings {
  readonly replicas: number
  readonly timeout: number
  readonly clock: Clock
  /** Whether the server is still the primary, as far as is known. Asked if too few replicas have confirmed. */
  readonly isPrimary: () => Promise<boolean>
  /** Too few replicas have confirmed in time. */
  readonly unconfirmed: (error: StoreUnavailable) => void
}

/**
 * Runs scripts and waits until replicas have their writes. `WAIT` blocks its connection, so this has one of its own. One `WAIT` confirms all
 * scripts before it; the scripts that come while it runs start after it, together.
 *
 * A primary without replicas may have been replaced and not know it: then what it has written is lost, and the run rejects.
 * If the connection ends before a run is confirmed, the run rejects. The primary has executed the script, but it may have died before
 * replicating it.
 *
 * Each run settles within `store.timeout`. The server ends a `WAIT` after a fifth of that, so that the time left is enough for its reply
 * even if the server is slow: the timer would end the connection. For the same reason, a run that has waited for more than half of its
 * time rejects without asking.
 */
export function createReplicatedRuns(
  connection: KeptConnection,
  { replicas, timeout, clock, isPrimary, unconfirmed }: ReplicatedRunsSettings,
): Run {
  const wait = String(Math.max(1, Math.floor(timeout / 5)))
  /** While `WAIT` blocks the connection: it, and what becomes of the scripts before it. */
  let present:
    | { readonly waiting: Promise<unknown>; readonly confirming: ReturnType<typeof judge> }
    | undefined

  function confirm(left: () => number): ReturnType<typeof judge> {
    if (present !== undefined) return present.confirming
    const waiting = connection.ask('replicate', ['WAIT', String(replicas), wait], left()).finally(() => {
      present = undefined
    })
    const confirming = waiting.then((confirmed) => judge(Number(confirmed), left))
    present = { waiting, confirming }
    return confirming
  }

  /**
   * Undefined if enough replicas have confirmed. Rejects if the connection leads to a former primary. It does not keep the next scripts
   * waiting.
   */
  async function judge(confirmed: number, left: () => number): Promise<StoreUnavailable | undefined> {
    if (confirmed >= replicas) return undefined
    const message = `${confirmed} of ${replicas} replicas confirmed in time; see store.replicas`
    const asked = new AbortController()
    const silent = pause(left(), true, { signal: asked.signal })
    const still = await Promise.race([isPrimary(), silent]).finally(() => asked.abort())
    if (still) return new StoreUnavailable('replicate', 'timeout', message)
    throw new StoreUnavailable('replicate', 'read-only', `${message}, and the sentinels name another primary`)
  }

  return async (script, keys, args) => {
    const deadline = clock.monotonic() + timeout
    const left = (): number => Math.max(1, deadline - clock.monotonic())
    while (present !== undefined) await present.waiting.catch(() => {})
    if (left() < timeout / 2)
      throw new StoreUnavailable(script.name, 'timeout', 'it has waited too long for those before it')
    // Not EVALSHA: its repetition after NOSCRIPT could miss the WAIT of the scripts beside it.
    const question = ['EVAL', script.source, String(keys.length), ...keys, ...args]
    const reply = await connection.ask(script.name, question, left() / 2)
    const shortfall = await confirm(left)
    if (shortfall !== undefined) unconfirmed(shortfall)
    return reply
  }
}
