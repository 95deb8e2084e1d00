import { hash, randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock as clock } from '../system/clock.ts'
import { formatHostPort } from '../system/listen-address.ts'
import { CLOSED, readLogin, type StoreSettings, wantedReplicas } from './connection.ts'
import { openSentinels, openSession, type Session } from './find-primary.ts'
import { createReplicatedRuns, type Run } from './replicated-runs.ts'
import { forbiddenCommands } from './server-report.ts'
import {
  FOLLOW_LIMIT,
  FOLLOW_WAIT,
  isAtWrongServer,
  isRefusal,
  listOf,
  type SharedStore,
  type SharedStoreListener,
  type StoreFailure,
  type StoreOperation,
  type StoreReply,
  StoreUnavailable,
  type StreamEntry,
  unavailable,
} from './shared-store.ts'

/** How long opening waits for the first connections (ms). A start must not take as long as the slowest of many nodes. */
const OPENING_LIMIT = 5_000

/**
 * The pause before the next attempt (ms), random between two bounds, so that sidecars do not come all at once. A refused login waits
 * longer, because each may count as one of an attacker.
 */
const AFTER_LOSS = [10, 50] as const
const AFTER_FAILURE = [250, 500] as const
const AFTER_REFUSAL = [750, 1_000] as const

/** How often the sentinels are asked for the primary, and a server that refuses commands whether it still does (ms). */
const WATCH_INTERVAL = 1_000

/**
 * Opens the shared store, and keeps a session with its primary: when one of its connections ends, all end, and the next session begins.
 * Resolves when the first attempt to connect has ended, well or not, or after `store.timeout` or 5 s. Rejects only with a `SetupError`, if
 * the password file or the file of `store.tls.ca` cannot be used.
 */
export async function openSharedStore(
  settings: StoreSettings,
  listener: SharedStoreListener,
): Promise<SharedStore> {
  await readLogin(settings)
  const { timeout, prefix } = settings
  const replicas = wantedReplicas(settings)
  const life = new AbortController()
  const { signal } = life
  const sentinels = openSentinels(settings, signal)
  const firstAttempt = Promise.withResolvers<void>()
  let session: Session | undefined
  let failure = new StoreUnavailable('connect', 'disconnected', 'not connected yet')
  /** The failures reported since the store was last up. */
  const reported = new Set<StoreFailure>()
  /** Why the server, although it answers, refuses commands. */
  let refusal: StoreUnavailable | undefined

  /** Opens a session, and waits for its end. Returns the pause before the next attempt. */
  async function keepOnce(): Promise<number> {
    try {
      session = await openSession(settings, signal, sentinels)
    } catch (error) {
      fail(error)
      return failure.failure === 'refused' ? randomInt(...AFTER_REFUSAL) : randomInt(...AFTER_FAILURE)
    }
    reported.clear()
    listener.up()
    firstAttempt.resolve()
    // So that a sidecar without logins knows it, too.
    void acceptsAll()
    const reason = await session.ended
    session = undefined
    fail(reason)
    return randomInt(...AFTER_LOSS)
  }

  function fail(error: unknown): void {
    failure = unavailable('connect', error)
    refusal = undefined
    firstAttempt.resolve()
    if (signal.aborted) return
    listener.failed(failure)
    if (reported.has(failure.failure)) return
    reported.add(failure.failure)
    listener.down(failure)
  }

  /** As `Connection.send`. Rejects with `StoreUnavailable`, at once without a session. */
  async function ask(
    purpose: keyof Session['to'],
    operation: StoreOperation,
    question: readonly string[],
    within = timeout,
    repetition?: readonly string[],
  ): Promise<StoreReply> {
    const at = session?.to[purpose]
    if (at === undefined) throw unavailable(operation, failure)
    try {
      return await at.send(question, within, repetition)
    } catch (error) {
      const reason = unavailable(operation, error)
      // Behind a floating address or in a cluster, the next session may reach the right server.
      if (isAtWrongServer(error)) at.end(reason)
      if (isRefusal(error)) refused(reason)
      throw reason
    }
  }

  /** Whether the server accepts all commands of Postern. */
  async function acceptsAll(): Promise<boolean> {
    try {
      const forbidden = await forbiddenCommands((question) => ask('scripts', 'connect', question), prefix)
      if (forbidden.length === 0) return true
      const message = `the user of the server may not run ${forbidden.join(', ')}; see its ACL`
      refused(new StoreUnavailable('connect', 'refused', message))
    } catch {
      // `ask` has noted the refusal of the question itself.
    }
    return false
  }

  /** The server is full, accepts no writes, or its user lacks a right. */
  function refused(error: StoreUnavailable): void {
    if (refusal !== undefined) return
    refusal = error
    listener.refusing(error)
    void awaitAcceptance(error)
  }

  /**
   * Asks a server that refuses commands until it accepts all. Requests cannot tell: a load balancer sends none to a sidecar that is not
   * ready, and a script that succeeds may have written nothing.
   */
  async function awaitAcceptance(present: StoreUnavailable): Promise<void> {
    while (refusal === present) {
      await pause(WATCH_INTERVAL, undefined, { ref: false })
      // The end of a session ends its refusal, too.
      if (refusal !== present || !(await acceptsAll()) || refusal !== present) continue
      refusal = undefined
      listener.accepting()
    }
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
    asked.to.scripts.end(new Error('the sentinels name another primary'))
    return false
  }

  const run: Run = (script, keys, args) => {
    const rest = [String(keys.length), ...keys, ...args]
    const question = ['EVALSHA', hash('sha1', script.source), ...rest]
    return ask('scripts', script.name, question, timeout, ['EVAL', script.source, ...rest])
  }

  const runDurably: Run =
    replicas === 0
      ? run
      : createReplicatedRuns((...question) => ask('confirmed', ...question), {
          replicas,
          timeout,
          clock,
          isPrimary,
          unconfirmed: listener.failed,
        })

  async function follow(key: string, id: string): Promise<readonly StreamEntry[]> {
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

  const watch = (): Promise<number> => isPrimary().then(() => WATCH_INTERVAL)
  const running = Promise.all([repeat(keepOnce), sentinels && repeat(watch)])
  await Promise.race([
    firstAttempt.promise,
    pause(Math.min(timeout, OPENING_LIMIT), undefined, { ref: false }),
  ])
  return {
    prefix: `{${prefix}}:`,
    run: (script, keys, args) => measured(run(script, keys, args.map(String))),
    runDurably: (script, keys, args) => measured(runDurably(script, keys, args.map(String))),
    follow: (key, id) => reportingFailure(follow(key, id)),
    get up() {
      return session !== undefined
    },
    get trouble() {
      return refusal?.message
    },
    async close() {
      life.abort(CLOSED)
      await running
    },
  }
}
