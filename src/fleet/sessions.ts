import { randomInt } from 'node:crypto'
import type { Clock } from '../system/clock.ts'
import type { StoreSettings } from './connection.ts'
import { openSession, type StoreSession } from './open-session.ts'
import {
  isAtWrongServer,
  isRefusal,
  type StoreOperation,
  type StoreReply,
  StoreUnavailable,
  unavailable,
} from './shared-store.ts'

/**
 * The pause before the next attempt (ms), random between two bounds, so that the sidecars do not connect all at once. After a refused login
 * it is longer: the server may count each one as an attack.
 */
const AFTER_LOSS = [10, 50] as const
const AFTER_FAILURE = [250, 500] as const
const AFTER_REFUSAL = [750, 1_000] as const

interface SessionEvents {
  begun(): void
  /** A session has ended, or none could be opened. */
  lost(error: StoreUnavailable): void
  /** The server answers, but refuses the command to every client: it needs its operator. */
  refused(error: StoreUnavailable): void
}

/** Keeps a session with the primary until the signal. When one connection of a session ends, all end, and the next session begins. */
export function keepSessions(
  settings: StoreSettings,
  signal: AbortSignal,
  events: SessionEvents,
  clock: Clock,
) {
  let session: StoreSession | undefined
  let failure = new StoreUnavailable('connect', 'disconnected', 'not connected yet')
  const attempted = Promise.withResolvers<void>()

  /** Opens a session, and waits for its end. Returns the pause before the next attempt. */
  async function keepOnce(): Promise<number> {
    try {
      session = await openSession(settings, signal, clock)
    } catch (error) {
      lose(error)
      return failure.failure === 'refused' ? randomInt(...AFTER_REFUSAL) : randomInt(...AFTER_FAILURE)
    }
    attempted.resolve()
    events.begun()
    const reason = await session.ended
    session = undefined
    lose(reason)
    return randomInt(...AFTER_LOSS)
  }

  function lose(error: unknown): void {
    failure = unavailable('connect', error)
    attempted.resolve()
    events.lost(failure)
  }

  /** As `Connection.send`. Rejects with `StoreUnavailable`, at once without a session. */
  async function ask(
    purpose: keyof StoreSession['to'],
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
      const reason = unavailable(operation, error)
      // Behind a floating address or a proxy, the next session may reach the right server.
      if (isAtWrongServer(error)) at.end(reason)
      if (isRefusal(error)) events.refused(reason)
      throw reason
    }
  }

  async function keep(): Promise<void> {
    while (!signal.aborted) await clock.pause(await keepOnce(), signal)
  }

  return {
    ask,
    get up(): boolean {
      return session !== undefined
    },
    /** Resolves when the first attempt to connect has ended, well or not. */
    attempted: attempted.promise,
    /** Resolves after the signal, when no attempt is under way any more. */
    ended: keep(),
  }
}
