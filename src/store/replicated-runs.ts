import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../system/clock.ts'
import type { KeptConnection } from './kept-connection.ts'
import { type Script, type StoreReply, StoreUnavailable } from './shared-store.ts'

export interface ReplicatedRuns {
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<StoreReply>
}

export interface ReplicatedRunsSettings {
  /** How many replicas have to confirm. */
  readonly replicas: number
  /** `store.timeout` (ms). */
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
 * If the connection ends before a run is confirmed, the run rejects, although the primary had its writes: it may have ended with them.
 *
 * Each run settles within `store.timeout`. The server ends a `WAIT` after a fifth of that, so that the time left is enough for its reply
 * even if the server is slow: the timer would end the connection.
 */
export function createReplicatedRuns(
  connection: KeptConnection,
  { replicas, timeout, clock, isPrimary, unconfirmed }: ReplicatedRunsSettings,
): ReplicatedRuns {
  const wait = String(Math.max(1, Math.floor(timeout / 5)))
  let confirming: Promise<StoreUnavailable | undefined> | undefined

  /** Resolves with the shortfall, if there is one. Rejects if the connection ends meanwhile, or leads to a former primary. */
  async function confirm(left: () => number): Promise<StoreUnavailable | undefined> {
    try {
      const confirmed = await connection.ask('replicate', ['WAIT', String(replicas), wait], left())
      if (Number(confirmed) >= replicas) return undefined
      const message = `${confirmed} of ${replicas} replicas confirmed in time; see store.replicas`
      const still = await Promise.race([isPrimary(), pause(left(), true, { ref: false })])
      if (still) return new StoreUnavailable('replicate', 'timeout', message)
      throw new StoreUnavailable(
        'replicate',
        'read-only',
        `${message}, and the sentinels name another primary`,
      )
    } finally {
      confirming = undefined
    }
  }

  return {
    async run(script, keys, args) {
      const deadline = clock.monotonic() + timeout
      const left = (): number => Math.max(1, deadline - clock.monotonic())
      while (confirming !== undefined) await confirming.catch(() => {})
      // Not EVALSHA: its repetition after NOSCRIPT could miss the WAIT of the scripts beside it.
      const question = ['EVAL', script.source, String(keys.length), ...keys, ...args]
      const reply = await connection.ask(script.name, question, left() / 2)
      confirming ??= confirm(left)
      const shortfall = await confirming
      if (shortfall !== undefined) unconfirmed(shortfall)
      return reply
    },
  }
}
