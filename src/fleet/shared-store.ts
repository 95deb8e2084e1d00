import { formatDuration } from '../config/units.ts'
import { BackendUnavailable } from '../tokens/backend.ts'

/** A Lua script. The server runs it in one atomic step. */
export interface Script {
  /** Its name in logs and in the `operation` label of `postern_store_errors_total`. */
  readonly name: StoreOperation
  readonly source: string
}

/**
 * The operations of a sidecar at the shared store, and `lost` for data that the store has lost: the values of the `operation` label of
 * `postern_store_errors_total`.
 */
export const STORE_OPERATIONS = [
  'connect',
  'state',
  'issue',
  'refresh',
  'lookup',
  'revoke',
  'list',
  'follow',
  'count',
  'places',
  'replicate',
  'upkeep',
  'lost',
] as const

export type StoreOperation = (typeof STORE_OPERATIONS)[number]

/**
 * Why the shared store gave no answer. `timeout`: none in time (`STORE_BOUNDS`). `disconnected`: there is no connection. `read-only`:
 * the server accepts no writes, because it is a replica, has too few replicas, or cannot save its data to disk. `full`: it is out of
 * memory. `refused`: it does not accept the user, the password or the command. `loading`: it reads its data after a start.
 * `error`: any other error of the server.
 */
export type StoreFailure = 'timeout' | 'disconnected' | 'read-only' | 'full' | 'refused' | 'loading' | 'error'

/** The shared store gave no answer, so whether it has run the command is unknown. The message names no key, token or password. */
export class StoreUnavailable extends BackendUnavailable {
  override readonly name = 'StoreUnavailable'
  readonly operation: StoreOperation
  readonly failure: StoreFailure

  constructor(operation: StoreOperation, failure: StoreFailure, message: string) {
    super(message)
    this.operation = operation
    this.failure = failure
  }
}

/** Returns a handler of rejections that reports all but `StoreUnavailable`: these are bugs. */
export function unlessUnavailable(onBug: (error: unknown) => void): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof StoreUnavailable)) onBug(error)
  }
}

/** A value of a reply: Lua integers are numbers, strings are strings, arrays are arrays, false and nil are null. */
export type StoreReply = string | number | null | readonly StoreReply[]

/** The items of a reply that is an array; none if it is anything else. */
export function listOf(reply: StoreReply | undefined): readonly StoreReply[] {
  return Array.isArray(reply) ? reply : []
}

/** The value of a name in a reply that lists names and values. */
export function valueIn(reply: StoreReply | undefined, name: string): string | undefined {
  const pairs = listOf(reply)
  const at = pairs.indexOf(name)
  return at === -1 ? undefined : String(pairs[at + 1])
}

export interface StreamEntry {
  readonly id: string
  readonly fields: readonly string[]
}

/**
 * The connection to the Valkey or Redis server that several sidecars share. It connects and reconnects by itself. Every promise settles
 * within the timeout of the store (`STORE_BOUNDS`), and rejects only with `StoreUnavailable`.
 */
export interface SharedStore {
  /** The beginning of all keys of this device: `{postern}:`. The braces are a hash tag: a store that spreads keys keeps these together. */
  readonly prefix: string
  /**
   * Runs a script on the primary. Scripts of one turn of the event loop travel in one packet. While the store is known to be down,
   * it rejects at once.
   *
   * @param keys full names; the script may derive further keys that begin with `prefix`
   */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<StoreReply>
  /**
   * Like `run`, but waits until `store.replicas` replicas have the writes, too. If too few confirm in time, reports that (`replicate`) and
   * fulfils all the same: the primary has the writes. If the connection ends meanwhile, rejects: the primary may have died with the writes.
   */
  runDurably(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<StoreReply>
  /**
   * The entries of a stream after `id`, oldest first, at most `FOLLOW_LIMIT`. Waits for the first one up to `FOLLOW_WAIT`; empty if none
   * came. The wait delays no script, because it has its own connection. The promise settles within `FOLLOW_WAIT` plus the timeout.
   */
  follow(stream: string, id: string): Promise<readonly StreamEntry[]>
  /** Whether there is a session with the server. */
  readonly up: boolean
  /** Why a server that answers refuses commands: it is full, accepts no writes, or its user lacks a right. Undefined if it does not. */
  readonly trouble: string | undefined
  close(): Promise<void>
}

/** How long `follow` waits for an entry (ms). A sidecar notices a silent server within this time plus the timeout of the store. */
export const FOLLOW_WAIT = 2_000

/** The most entries that `follow` returns at once. */
export const FOLLOW_LIMIT = 1_000

export interface SharedStoreListener {
  failed(error: StoreUnavailable): void
  /** `up`: the store answers, for the first time or again. `down`: it does not answer any more. */
  up(): void
  down(error: StoreUnavailable): void
  /** `refusing`: the server answers, but refuses commands. `accepting`: it accepts them again. `down` ends a refusal, too. */
  refusing(error: StoreUnavailable): void
  accepting(): void
  answered(duration: number): void
}

/** An error that the server sent as its reply: `READONLY You can't write against a read only replica.` */
export class ServerReplyError extends Error {
  override readonly name = 'ServerReplyError'
  /** The first word of the text. */
  readonly code: string

  constructor(text: string) {
    super(text)
    this.code = /^[A-Z]+/.exec(text)?.[0] ?? ''
  }
}

/** A failure, and a message for the operator: the cause, and a remedy. */
type Explanation = Pick<StoreUnavailable, 'failure' | 'message'>

const LOGIN_REMEDY = 'see the user in tokens.store, and store.password_file'

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  READONLY: { failure: 'read-only', message: 'the server is a replica, which accepts no writes' },
  UNBLOCKED: { failure: 'read-only', message: 'the server became a replica, which accepts no writes' },
  MASTERDOWN: { failure: 'read-only', message: 'the server is a replica that has lost its primary' },
  MISCONF: {
    failure: 'read-only',
    message: 'the server cannot save its data to disk; see the log of the server',
  },
  NOREPLICAS: { failure: 'read-only', message: 'the server has too few replicas (min-replicas-to-write)' },
  OOM: { failure: 'full', message: 'the server is out of memory; raise its maxmemory' },
  WRONGPASS: { failure: 'refused', message: `the server refuses the user or the password; ${LOGIN_REMEDY}` },
  NOAUTH: { failure: 'refused', message: `the server requires a password; ${LOGIN_REMEDY}` },
  LOADING: { failure: 'loading', message: 'the server loads its data after a start' },
  MOVED: { failure: 'error', message: 'the server is a node of a cluster, and another node has the keys' },
  BUSY: { failure: 'timeout', message: 'the server runs a script of another client for too long' },
}

/**
 * Errors after which a new connection may reach the right server: behind a floating address or a proxy, the primary has moved.
 * NOAUTH: the server has got a password since the connection began; the next connection sends it.
 */
const MOVING: ReadonlySet<string> = new Set(['READONLY', 'UNBLOCKED', 'MASTERDOWN', 'NOAUTH'])

export function isAtWrongServer(error: unknown): boolean {
  return error instanceof ServerReplyError && MOVING.has(error.code)
}

/** Errors of a server that answers, but refuses the command to every client: it needs its operator. */
const REFUSING: ReadonlySet<string> = new Set(['OOM', 'MISCONF', 'NOREPLICAS', 'NOPERM'])

export function isRefusal(error: unknown): boolean {
  return error instanceof ServerReplyError && REFUSING.has(error.code)
}

/**
 * The error for an operation whose question failed with `error`: an error reply, or the reason for the end of the connection. The message
 * repeats nothing that was sent.
 */
export function unavailable(operation: StoreOperation, error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable && error.operation === operation) return error
  const { failure, message } = error instanceof StoreUnavailable ? error : explain(error)
  return new StoreUnavailable(operation, failure, message)
}

export function noReply(timeout: number): StoreUnavailable {
  const message = `the server does not reply within ${formatDuration(timeout)}`
  return new StoreUnavailable('connect', 'timeout', message)
}

export function noAddress(host: string, timeout: number): StoreUnavailable {
  return new StoreUnavailable(
    'connect',
    'timeout',
    `the name ${host} is not resolved within ${formatDuration(timeout)}`,
  )
}

function explain(error: unknown): Explanation {
  if (!(error instanceof Error)) return { failure: 'error', message: String(error) }
  if (!(error instanceof ServerReplyError)) return { failure: 'disconnected', message: messageOf(error) }
  const known = EXPLANATIONS[error.code]
  if (known !== undefined) return known
  if (error.code === 'NOPERM') {
    const [, command] = /'([\w|-]+)' command/.exec(error.message) ?? []
    const what = command === undefined ? 'reach the keys with store.prefix' : `run ${command.toUpperCase()}`
    return { failure: 'refused', message: `the user of the server may not ${what}; see its ACL` }
  }
  // The text after `script:` names the script. The server cites arguments only in quotes.
  const text = error.message.replace(/ script: .*$/s, '').replaceAll(/'[^']*'|"[^"]*"|\{.*/gs, '…')
  return { failure: 'error', message: `the server responds with an error: ${text.slice(0, 120)}` }
}

/** The message of an error. For a host with several addresses, Node gives an `AggregateError` without one: that of its first error. */
function messageOf(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : []
  return first instanceof Error ? first.message : error.message
}
