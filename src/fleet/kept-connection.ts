import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { CLOSED, type Connection } from './connection.ts'
import { isAtWrongServer, isRefusal, noReply, ServerReplyError, unavailable } from './failures.ts'
import { type StoreOperation, type StoreReply, StoreUnavailable } from './shared-store.ts'

/** A connection that is opened again whenever it ends. */
export interface KeptConnection {
  /** Resolves when the first attempt to connect has ended, well or not. */
  readonly firstAttempt: Promise<void>
  readonly open: boolean
  /**
   * Asks the server. Rejects with `StoreUnavailable`: at once without a connection, otherwise after `timeout` (ms) at the latest. A
   * question without a reply ends the connection, and with it every other question on it: a late reply must not be taken for another.
   *
   * @param repetition what to ask instead if the server does not know the script of the question
   */
  ask(
    operation: StoreOperation,
    question: readonly string[],
    timeout: number,
    repetition?: readonly string[],
  ): Promise<StoreReply>
  /** Ends the connection. It is opened again at once. */
  renew(reason: Error): void
  close(): Promise<void>
}

interface KeptConnectionEvents {
  readonly opened?: () => void
  /** The connection has ended, or an attempt to open it has failed. */
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

/** Keeps a connection open. `connect` opens one, and gives up at the signal. */
export function keepConnection(
  connect: (signal: AbortSignal) => Promise<Connection>,
  { opened, failed, wrongServer, refused }: KeptConnectionEvents = {},
): KeptConnection {
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
    firstAttempt: firstAttempt.promise,
    get open() {
      return connection !== undefined
    },
    async ask(operation, question, timeout, repetition) {
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
    renew: (reason) => connection?.end(reason),
    async close() {
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
