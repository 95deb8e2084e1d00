import type { Clock } from '../system/clock.ts'
import { type Script, type StoreOperation, type StoreReply, StoreUnavailable } from './shared-store.ts'

/** Asks the server, and waits for `timeout` (ms) at most. Rejects with `StoreUnavailable`. */
export type Ask = (
  operation: StoreOperation,
  question: readonly string[],
  timeout: number,
) => Promise<StoreReply>

/** Runs a script. `keys` are full names. */
export type Run = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<StoreReply>

interface ReplicatedRunsSettings {
  readonly replicas: number
  readonly timeout: number
  readonly clock: Clock
  /** Too few replicas have confirmed in time. */
  readonly unconfirmed: (error: StoreUnavailable) => void
}

/**
 * Runs scripts and waits until replicas have their writes. `WAIT` blocks its connection, so `ask` has a connection of its own. One `WAIT`
 * confirms all scripts before it; scripts that come while it runs start together after it.
 *
 * If the connection ends before a run is confirmed, the run rejects. The primary has executed the script, but it may have died before
 * replicating it.
 *
 * Each run settles within `timeout`. The server ends a `WAIT` after a fifth of that. So even a slow server can reply in the time left: at
 * the end of `timeout`, the connection would be closed. For the same reason, a run that has waited for more than half of its time rejects
 * without asking.
 */
export function createReplicatedRuns(
  ask: Ask,
  { replicas, timeout, clock, unconfirmed }: ReplicatedRunsSettings,
): Run {
  const wait = String(Math.max(1, Math.floor(timeout / 5)))
  /** While `WAIT` blocks the connection: its reply, and the result of `confirm` for the scripts before it. */
  let waiting: Promise<StoreReply> | undefined
  let confirming: ReturnType<typeof confirm> | undefined

  /** Undefined if enough replicas have confirmed. */
  async function confirm(left: () => number): Promise<StoreUnavailable | undefined> {
    waiting = ask('replicate', ['WAIT', String(replicas), wait], left()).finally(() => {
      waiting = confirming = undefined
    })
    const confirmed = Number(await waiting)
    if (confirmed >= replicas) return undefined
    const message = `${confirmed} of ${replicas} replicas confirmed in time; see store.replicas`
    return new StoreUnavailable('replicate', 'timeout', message)
  }

  return async (script, keys, args) => {
    const deadline = clock.monotonic() + timeout
    const left = (): number => Math.max(1, deadline - clock.monotonic())
    while (waiting !== undefined) await waiting.catch(() => {})
    if (left() < timeout / 2)
      throw new StoreUnavailable(script.name, 'timeout', 'it has waited too long for those before it')
    // Not EVALSHA: its repetition after NOSCRIPT could come after the WAIT that confirms the scripts beside it.
    const question = ['EVAL', script.source, String(keys.length), ...keys, ...args]
    const reply = await ask(script.name, question, left() / 2)
    confirming ??= confirm(left)
    const shortfall = await confirming
    if (shortfall !== undefined) unconfirmed(shortfall)
    return reply
  }
}
