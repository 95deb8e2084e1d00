import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Clock, systemClock } from '../system/clock.ts'
import { readLogin, type StoreSettings, wantedReplicas } from './connection.ts'
import { watchRefusals } from './refusal-watch.ts'
import { createReplicatedRuns, type Run } from './replicated-runs.ts'
import { keepSession } from './session.ts'
import {
  FOLLOW_WAIT,
  listOf,
  type SharedStore,
  type SharedStoreListener,
  type StoreFailure,
  type StoreReply,
  StoreUnavailable,
  type StreamEntry,
} from './shared-store.ts'

/** The maximum number of entries that `follow` returns at once. */
const PAGE_LIMIT = '1000'

/** How long opening waits for the first connections (ms). A start must not take as long as the slowest of many nodes. */
const OPENING_LIMIT = 5_000

/**
 * Opens the shared store. Resolves when the first attempt to connect has ended, well or not, or after `store.timeout` or 5 s: a server
 * that is down is tried again until it answers. Rejects only with a `SetupError`, if the password file or the file of `store.tls.ca`
 * cannot be used.
 */
export async function openSharedStore(
  settings: StoreSettings,
  listener: SharedStoreListener,
  clock: Clock = systemClock,
): Promise<SharedStore> {
  await readLogin(settings)
  const { timeout, prefix } = settings
  const replicas = wantedReplicas(settings)
  /** The failures reported since the store was last up. */
  const reported = new Set<StoreFailure>()
  const session = keepSession(settings, {
    opened() {
      reported.clear()
      listener.up()
      refusals.opened()
    },
    failed(error) {
      refusals.closed()
      listener.failed(error)
      if (reported.has(error.failure)) return
      reported.add(error.failure)
      listener.down(error)
    },
    refused: (error) => refusals.refused(error),
  })
  const refusals = watchRefusals((question) => session.ask('scripts', 'connect', question), prefix, listener)

  const run: Run = (script, keys, args) => {
    const rest = [String(keys.length), ...keys, ...args]
    const question = ['EVALSHA', hash('sha1', script.source), ...rest]
    return session.ask('scripts', script.name, question, timeout, ['EVAL', script.source, ...rest])
  }

  const runDurably: Run =
    replicas === 0
      ? run
      : createReplicatedRuns((...question) => session.ask('confirmed', ...question), {
          replicas,
          timeout,
          clock,
          isPrimary: session.isPrimary,
          unconfirmed: listener.failed,
        })

  async function follow(key: string, id: string): Promise<readonly StreamEntry[]> {
    const wait = ['COUNT', PAGE_LIMIT, 'BLOCK', String(FOLLOW_WAIT)]
    const question = ['XREAD', ...wait, 'STREAMS', key, id]
    // `[stream, [[id, [name, value, ...]], ...]]`
    const [, entries] = listOf(await session.ask('stream', 'follow', question, FOLLOW_WAIT + timeout))
    return listOf(entries).map((entry) => {
      const [id, fields] = listOf(entry)
      // An entry that was deleted meanwhile has no fields.
      return { id: String(id), fields: listOf(fields).map(String) }
    })
  }

  /** Reports the duration of a script, or why it has no reply. */
  async function measured(asking: Promise<StoreReply>): Promise<StoreReply> {
    const start = clock.monotonic()
    const reply = await reportingFailure(asking)
    listener.answered(clock.monotonic() - start)
    return reply
  }

  function reportingFailure<T>(asking: Promise<T>): Promise<T> {
    return asking.catch((error: unknown) => {
      if (error instanceof StoreUnavailable) listener.failed(error)
      throw error
    })
  }

  const limit = pause(Math.min(timeout, OPENING_LIMIT), undefined, { ref: false })
  await Promise.race([session.firstAttempt, limit])
  return {
    prefix: `{${prefix}}:`,
    run: (script, keys, args) => measured(run(script, keys, args.map(String))),
    runDurably: (script, keys, args) => measured(runDurably(script, keys, args.map(String))),
    follow: (key, id) => reportingFailure(follow(key, id)),
    get up() {
      return session.open
    },
    get trouble() {
      return refusals.present?.message
    },
    async close() {
      refusals.closed()
      await session.close()
    },
  }
}
