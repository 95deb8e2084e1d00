import type { Digest } from './mint.ts'

/** What is wrong with a file that is there but cannot be used. */
export type Fault = 'damaged' | 'newer' | 'foreign'

/** One token as it outlives the process: its digest, its grant, and wall-clock times in milliseconds. */
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
}

/**
 * What the store tells the disk. None of it throws: a disk in trouble is the journal's to report and to catch
 * up with, and clients are served from memory meanwhile.
 */
export interface TokenJournal {
  /** What an earlier process left, in no order; given out once. */
  restore(): readonly TokenRecord[]
  /** Where to get the whole state from when the disk has to be made to match it again. */
  attach(snapshot: () => Iterable<TokenRecord>): void
  /** Adds or replaces records in one step that a `kill -9` straight afterwards cannot undo. */
  record(records: readonly TokenRecord[]): void
  /** Drops what expired or was evicted: lazily, as nothing can come of a late drop. */
  forget(digests: readonly Digest[]): void
  /** Drops what was revoked; when it returns, not even a power cut brings it back. */
  revoke(digests: readonly Digest[] | 'all'): void
  /** How many live tokens a crash would lose, because the disk does not hold them. */
  unsaved(): number
  /** Small facts about the whole state, such as which password it belongs to. */
  getMeta(key: string): string | undefined
  setMeta(key: string, value: string): void
  /** Writes lazy drops, flushes, and retries after trouble. To be called about once a second. */
  maintain(): void
  close(): void
}

/** What the journal was doing when the disk failed it: the `operation` label of `postern_store_errors_total`. */
export type JournalOperation = 'open' | 'issue' | 'revoke' | 'expire' | 'meta' | 'flush' | 'close'

export interface JournalListener {
  /** The disk failed; clients are served from memory. Said for every attempt that fails, not for every token. */
  trouble(operation: JournalOperation, error: Error): void
  /** The disk works again and holds the whole state. */
  recovered(): void
  /** A file could not be used: it now has the name `path`, and no token in it is known. */
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
