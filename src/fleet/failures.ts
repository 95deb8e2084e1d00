import { formatDuration } from '../config/units.ts'
import { type StoreFailure, type StoreOperation, StoreUnavailable } from './shared-store.ts'

/** An error that the server sent as its reply: `READONLY You can't write against a read only replica.` */
export class ServerReplyError extends Error {
  override readonly name = 'ServerReplyError'
  /** Its first word. */
  readonly code: string

  constructor(text: string) {
    super(text)
    this.code = /^[A-Z]+/.exec(text)?.[0] ?? ''
  }
}

/** A failure, and a message for the operator: what is wrong, and what would do. */
interface Explanation {
  readonly failure: StoreFailure
  readonly message: string
}

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
  CLUSTERDOWN: { failure: 'loading', message: 'the cluster has no node for the keys' },
  TRYAGAIN: { failure: 'loading', message: 'the cluster moves the keys to another node' },
  ASK: { failure: 'loading', message: 'the cluster moves the keys to another node' },
  MOVED: { failure: 'loading', message: 'the cluster has moved the keys to another node' },
  BUSY: { failure: 'timeout', message: 'the server runs a script of another client for too long' },
}

/**
 * Errors after which a new connection may reach the right server: behind a floating address or in a cluster, the primary has moved.
 * NOAUTH: the server has got a password since; the next connection sends it.
 */
const MOVING: ReadonlySet<string> = new Set(['READONLY', 'UNBLOCKED', 'MASTERDOWN', 'MOVED', 'NOAUTH'])

export function isAtWrongServer(error: unknown): boolean {
  return error instanceof ServerReplyError && MOVING.has(error.code)
}

/** Errors of a server that answers, but will refuse the same to everyone who asks: it needs its operator. */
const REFUSING: ReadonlySet<string> = new Set(['OOM', 'MISCONF', 'NOREPLICAS', 'NOPERM'])

export function isRefusal(error: unknown): boolean {
  return error instanceof ServerReplyError && REFUSING.has(error.code)
}

/**
 * The error for an operation whose question failed with `error`: an error reply, or why the connection ended. The message holds
 * nothing that was sent.
 */
export function unavailable(operation: StoreOperation, error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) {
    return error.operation === operation
      ? error
      : new StoreUnavailable(operation, error.failure, error.message)
  }
  const { failure, message } = explain(error)
  return new StoreUnavailable(operation, failure, message)
}

export function noReply(timeout: number): StoreUnavailable {
  return new StoreUnavailable(
    'connect',
    'timeout',
    `the server does not reply within ${formatDuration(timeout)}`,
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

/** If a host has several addresses, the error has one error for each, and no message. */
function messageOf(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : []
  return first instanceof Error ? first.message : error.message
}
