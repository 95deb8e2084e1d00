import type { Digest } from './mint.ts'

/**
 * Why an existing file is not used: it is damaged, from a newer version, or from another program. `unread`: it could not be opened at the
 * start, and what happened since fits its tokens no more.
 */
export type Fault = 'damaged' | 'newer' | 'foreign' | 'unread'

/** A token on disk. Times are on the wall clock (ms). */
export interface TokenRecord {
  readonly digest: Digest
  readonly grant: string
  /** The client that gave the password. */
  readonly client: string
  /** When the password was given. */
  readonly granted: number
  readonly kind: 'access' | 'refresh'
  readonly issued: number
  readonly expires: number
  /** When a rotated refresh token was spent. */
  readonly spent: number | null
  /** When its grace ends; null, too, in a file of version 2 or earlier: there it is over. */
  readonly graceEnd: number | null
}

/**
 * Keeps the tokens on disk. No method throws: if the disk fails, the journal reports it and rewrites the disk later, and the
 * store continues in memory.
 */
export interface TokenJournal {
  /** The tokens of the earlier process, in no order. Called once, before `attach`. */
  restore(): readonly TokenRecord[]
  /** @param snapshot all tokens of the store, from which the journal rewrites the disk after a failure */
  attach(snapshot: () => Iterable<TokenRecord>): void
  /** Adds or replaces records in one transaction. A `kill -9` after it does not undo it. */
  record(records: readonly TokenRecord[]): void
  /** Deletes expired or evicted tokens, with a delay, because a late deletion does no harm. */
  forget(digests: readonly Digest[]): void
  /**
   * Deletes revoked tokens. After it returns, not even a power cut undoes it. If the deletion cannot be written, deletes the whole
   * file. On a read-only file system that fails too: the file stays, and a restart that can open it restores the tokens.
   */
  revoke(digests: readonly Digest[] | 'all'): void
  /** How many live tokens are not on disk: a crash would lose them. */
  unsaved(): number
  /** Facts about the whole state, such as the fingerprint of the password. */
  getMeta(key: string): string | undefined
  setMeta(key: string, value: string): void
  /** Writes delayed deletions, flushes, and retries after a failure. Call it about once a second. */
  maintain(): void
  close(): void
}

/** What can fail: the values of the `operation` label of `postern_store_errors_total`. */
export const JOURNAL_OPERATIONS = ['open', 'issue', 'revoke', 'expire', 'meta', 'flush', 'close'] as const

export type JournalOperation = (typeof JOURNAL_OPERATIONS)[number]

export interface JournalListener {
  /**
   * The disk failed, and the store continues in memory; after a failed `flush` the file stays in use. Called for every failed
   * attempt, not for every token.
   */
  failed(operation: JournalOperation, error: Error): void
  /** The disk works again and holds all tokens. */
  recovered(): void
  /** A file that is not used was renamed to `path`. Its tokens are not valid. */
  setAside(fault: Fault, path: string): void
}

/** `tokens.store: memory`: a restart forgets every token. */
export function createMemoryJournal(): TokenJournal {
  const meta = new Map<string, string>()
  return {
    restore: () => [],
    attach: () => {},
    record: () => {},
    forget: () => {},
    revoke: () => {},
    unsaved: () => 0,
    getMeta: (key) => meta.get(key),
    setMeta: (key, value) => {
      meta.set(key, value)
    },
    maintain: () => {},
    close: () => {},
  }
}
