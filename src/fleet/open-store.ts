import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Clock, systemClock } from '../system/clock.ts'
import { readAccount, type StoreSettings, wantedReplicas } from './connection.ts'
import { connectToPrimary } from './find-primary.ts'
import { createReplicatedRuns, type KeptConnection, keepConnection, type Run } from './kept-connection.ts'
import { watchRefusals } from './refusal-watch.ts'
import { ANOTHER_PRIMARY, openSentinels, watchSentinels } from './sentinels.ts'
import {
  FOLLOW_WAIT,
  listOf,
  type Script,
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
 *
 * Scripts, `follow` and confirmed scripts have a connection each, because the last two block theirs. All lead to the same server: when the
 * connection of the scripts ends, the others are opened anew, too.
 */
export async function openSharedStore(
  settings: StoreSettings,
  listener: SharedStoreListener,
  clock: Clock = systemClock,
): Promise<SharedStore> {
  await readAccount(settings)
  const { timeout, address, prefix } = settings
  const replicas = wantedReplicas(settings)
  const life = new AbortController()
  /** `host:port` of the connection of the scripts. */
  let primary: string | undefined
  /** The failures reported since the store was last up. */
  const reported = new Set<StoreFailure>()

  const connect = async (signal: AbortSignal) => (await connectToPrimary(settings, signal)).connection
  const scripts = keepConnection(
    async (signal) => {
      const { connection, facts } = await connectToPrimary(settings, signal)
      primary = facts.at
      return connection
    },
    {
      opened() {
        reported.clear()
        listener.up()
        refusals.opened()
      },
      failed(error) {
        primary = undefined
        refusals.closed()
        for (const other of [stream, confirmed]) other?.renew(error)
        listener.failed(error)
        if (reported.has(error.failure)) return
        reported.add(error.failure)
        listener.down(error)
      },
      refused: (error) => refusals.refused(error),
    },
  )
  const refusals = watchRefusals((question) => scripts.ask('connect', question, timeout), prefix, listener)
  const events = {
    // The server ends the waiting of `follow` when it becomes a replica; a question would still be answered.
    wrongServer: (error: StoreUnavailable) => scripts.renew(error),
    refused: refusals.refused,
    // A sidecar without requests would not notice that the other connection is dead, too.
    failed: () => scripts.ask('connect', ['HELLO'], timeout).catch(() => {}),
  }
  const stream: KeptConnection = keepConnection(connect, events)
  const confirmed: KeptConnection | undefined = replicas === 0 ? undefined : keepConnection(connect, events)
  const replicated =
    confirmed &&
    createReplicatedRuns(confirmed, { replicas, timeout, clock, isPrimary, unconfirmed: listener.failed })
  const sentinels = address.kind === 'sentinel' ? openSentinels(settings, life.signal) : undefined
  const watching = sentinels && watchSentinels(sentinels, { current: () => primary, moved }, life.signal)

  /** Unless the sentinels say otherwise, the primary is taken for one. */
  async function isPrimary(): Promise<boolean> {
    const asked = primary
    if (sentinels === undefined || asked === undefined) return true
    if (!(await sentinels.isReplaced(asked))) return true
    moved(asked)
    return false
  }

  function moved(from: string): void {
    if (primary === from) scripts.renew(new Error(ANOTHER_PRIMARY))
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

  const run: Run = (script, keys, args) => {
    const rest = [String(keys.length), ...keys, ...args]
    const whole = ['EVAL', script.source, ...rest]
    return scripts.ask(script.name, ['EVALSHA', digestOf(script), ...rest], timeout, whole)
  }

  async function follow(key: string, id: string): Promise<readonly StreamEntry[]> {
    const wait = ['COUNT', PAGE_LIMIT, 'BLOCK', String(FOLLOW_WAIT)]
    const question = ['XREAD', ...wait, 'STREAMS', key, id]
    return entriesIn(await stream.ask('follow', question, FOLLOW_WAIT + timeout))
  }

  /** Right after a failure, the scripts may have a connection again before the confirmed ones do. */
  const runDurably: Run = (...call) => {
    if (replicated === undefined) return run(...call)
    if (confirmed?.open === true || !scripts.open) return replicated(...call)
    const message = 'no replica was asked: that connection is not open yet'
    listener.failed(new StoreUnavailable('replicate', 'disconnected', message))
    return run(...call)
  }

  const attempts = Promise.all([scripts.firstAttempt, stream.firstAttempt, confirmed?.firstAttempt])
  const soon = new AbortController()
  await Promise.race([attempts, pause(Math.min(timeout, OPENING_LIMIT), undefined, { signal: soon.signal })])
  soon.abort()
  return {
    prefix: `{${prefix}}:`,
    run: (script, keys, args) => measured(run(script, keys, args.map(String))),
    runDurably: (script, keys, args) => measured(runDurably(script, keys, args.map(String))),
    follow: (key, id) => reportingFailure(follow(key, id)),
    get up() {
      return scripts.open
    },
    get trouble() {
      return refusals.present?.message
    },
    async close() {
      life.abort()
      refusals.closed()
      await Promise.all([scripts.close(), stream.close(), confirmed?.close(), watching])
    },
  }
}

const digests = new WeakMap<Script, string>()

function digestOf(script: Script): string {
  let digest = digests.get(script)
  if (digest === undefined) {
    digest = createHash('sha1').update(script.source).digest('hex')
    digests.set(script, digest)
  }
  return digest
}

/** The entries in `[stream, [[id, [name, value, ...]], ...]]`. */
function entriesIn(reply: StoreReply): readonly StreamEntry[] {
  const [, entries] = listOf(reply)
  return listOf(entries).map((entry) => {
    const [id, fields] = listOf(entry)
    // An entry that was deleted meanwhile has no fields.
    return { id: String(id), fields: listOf(fields).map(String) }
  })
}
