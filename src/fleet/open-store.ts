import { hash } from 'node:crypto'
import { type Clock, rest, systemClock } from '../system/clock.ts'
import { watchAcceptance } from './acceptance.ts'
import { CLOSED, readLogin, type StoreSettings } from './connection.ts'
import { createReplicatedRuns, type Run } from './replicated-runs.ts'
import { keepSessions } from './sessions.ts'
import {
  FOLLOW_LIMIT,
  FOLLOW_WAIT,
  listOf,
  type SharedStore,
  type SharedStoreListener,
  type StoreFailure,
  type StoreReply,
  StoreUnavailable,
  type StreamEntry,
} from './shared-store.ts'

/** The longest wait of the opening for the first connections (ms). */
const OPENING_LIMIT = 5_000

/**
 * Opens the shared store, and keeps a session with its primary. Resolves when the first attempt to connect has ended, well or not, at the
 * latest after `timeout` or `OPENING_LIMIT`. Rejects only with a `SetupError`, if the password file or `store.tls.ca` cannot be used.
 */
export async function openSharedStore(
  settings: StoreSettings,
  listener: SharedStoreListener,
  clock: Clock = systemClock,
): Promise<SharedStore> {
  await readLogin(settings)
  const { timeout, prefix } = settings
  const life = new AbortController()
  const { signal } = life
  const acceptance = watchAcceptance(
    (question) => sessions.ask('scripts', 'connect', question),
    prefix,
    listener,
    clock,
  )
  /** The failures reported since the store was last up. */
  const reported = new Set<StoreFailure>()
  const sessions = keepSessions(
    settings,
    signal,
    {
      begun() {
        reported.clear()
        listener.up()
        acceptance.look()
      },
      lost(failure) {
        acceptance.forget()
        if (signal.aborted) return
        listener.failed(failure)
        if (reported.has(failure.failure)) return
        reported.add(failure.failure)
        listener.down(failure)
      },
      refused: acceptance.refused,
    },
    clock,
  )
  const { run, runDurably } = scriptRuns(clock, settings, sessions, listener)
  const opening = rest(clock, Math.min(timeout, OPENING_LIMIT))
  await Promise.race([sessions.attempted, opening])
  return {
    prefix: `{${prefix}}:`,
    run: (script, keys, args) => measured(clock, run(script, keys, args.map(String)), listener),
    runDurably: (script, keys, args) => measured(clock, runDurably(script, keys, args.map(String)), listener),
    follow: (key, id) => reportingFailure(follow(sessions, timeout, key, id), listener),
    get up() {
      return sessions.up
    },
    get trouble() {
      return acceptance.trouble
    },
    async close() {
      life.abort(CLOSED)
      await sessions.ended
    },
  }
}

type Sessions = Pick<ReturnType<typeof keepSessions>, 'ask'>

/** The two ways to run a script: `run` waits for the primary, `runDurably` also until replicas have the writes. */
function scriptRuns(
  clock: Clock,
  settings: StoreSettings,
  { ask }: Sessions,
  { failed: unconfirmed }: SharedStoreListener,
): { readonly run: Run; readonly runDurably: Run } {
  const { timeout, replicas } = settings
  const run: Run = (script, keys, args) => {
    const rest = [String(keys.length), ...keys, ...args]
    const question = ['EVALSHA', hash('sha1', script.source), ...rest]
    return ask('scripts', script.name, question, timeout, ['EVAL', script.source, ...rest])
  }
  if (replicas === 0) return { run, runDurably: run }
  const confirmed = { replicas, timeout, clock, unconfirmed }
  return { run, runDurably: createReplicatedRuns((...question) => ask('confirmed', ...question), confirmed) }
}

/** As `SharedStore.follow`. */
async function follow(
  { ask }: Sessions,
  timeout: number,
  key: string,
  id: string,
): Promise<readonly StreamEntry[]> {
  const wait = ['COUNT', String(FOLLOW_LIMIT), 'BLOCK', String(FOLLOW_WAIT)]
  const question = ['XREAD', ...wait, 'STREAMS', key, id]
  // `[[stream, [[id, [name, value, ...]], ...]]]`
  const [read] = listOf(await ask('stream', 'follow', question, FOLLOW_WAIT + timeout))
  const [, entries] = listOf(read)
  return listOf(entries).map((entry) => {
    const [id, fields] = listOf(entry)
    // An entry that was deleted meanwhile has no fields.
    return { id: String(id), fields: listOf(fields).map(String) }
  })
}

/** Reports the duration of a script, or its failure. */
async function measured(
  { monotonic }: Clock,
  asking: Promise<StoreReply>,
  listener: SharedStoreListener,
): Promise<StoreReply> {
  const start = monotonic()
  const reply = await reportingFailure(asking, listener)
  listener.answered(monotonic() - start)
  return reply
}

function reportingFailure<T>(asking: Promise<T>, { failed }: SharedStoreListener): Promise<T> {
  return asking.catch((error: unknown) => {
    if (error instanceof StoreUnavailable) failed(error)
    throw error
  })
}
