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
  /** Too few replicas have confirmed in time. */
  readonly unconfirmed: (error: StoreUnavailable) => void
}

/**
 * Runs scripts and waits until replicas have their writes. `WAIT` blocks its connection, so this has one of its own. One `WAIT` confirms all
 * scripts before it; the scripts that come while it runs start after it, together.
 *
 * If the connection ends before a run is confirmed, the run rejects, although the primary had its writes: it may have ended with them.
 *
 * The time of a run is shared out, so that it settles within `store.timeout`: a quarter until the `WAIT` before it ends, a half for the
 * script, and a quarter for its own `WAIT`.
 */
export function createReplicatedRuns(
  connection: KeptConnection,
  { replicas, timeout, unconfirmed }: ReplicatedRunsSettings,
): ReplicatedRuns {
  const quarter = timeout / 4
  // The server ends the wait a little earlier than the timer, which would end the connection.
  const wait = String(Math.max(1, Math.floor(quarter * 0.8)))
  let confirming: Promise<StoreUnavailable | undefined> | undefined

  /** Resolves with the shortfall, if there is one. Rejects if the connection ends meanwhile. */
  async function confirm(): Promise<StoreUnavailable | undefined> {
    try {
      const confirmed = await connection.ask('replicate', ['WAIT', String(replicas), wait], quarter)
      if (Number(confirmed) >= replicas) return undefined
      const message = `${confirmed} of ${replicas} replicas confirmed in time; see store.replicas`
      return new StoreUnavailable('replicate', 'timeout', message)
    } finally {
      confirming = undefined
    }
  }

  return {
    async run(script, keys, args) {
      while (confirming !== undefined) await confirming.catch(() => {})
      // Not EVALSHA: its repetition after NOSCRIPT could miss the WAIT of the scripts beside it.
      const question = ['EVAL', script.source, String(keys.length), ...keys, ...args]
      const reply = await connection.ask(script.name, question, timeout / 2)
      confirming ??= confirm()
      const shortfall = await confirming
      if (shortfall !== undefined) unconfirmed(shortfall)
      return reply
    },
  }
}
