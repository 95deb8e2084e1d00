import type { Clock } from '../system/clock.ts'
import type { Uptime } from '../system/clock-steps.ts'
import { isBug, SetupError } from '../system/setup-error.ts'
import type { TokenPolicy } from './grant-rules.ts'
import type { GrantTable, Token } from './grant-table.ts'
import { createJournalClock } from './journal-clock.ts'
import { destroyJournalFile, type JournalFile, openJournalFile } from './journal-file.ts'
import {
  COPIED,
  IDENTITY,
  type JournalListener,
  type JournalOperation,
  type TokenRecord,
} from './journal-records.ts'
import type { Digest } from './mint.ts'
import { isSameFile } from './state-folder.ts'

interface Dependencies {
  readonly dir: string
  readonly clock: Clock
  readonly listener: JournalListener
  /** An empty table. The journal restores the tokens of the earlier process into it, and rewrites the disk from it after a failure. */
  readonly table: GrantTable
  readonly policy: TokenPolicy
  /** Distinguishes a suspend of the machine from a step of its clock. */
  readonly uptime?: Uptime
  /** The name that restored grants without a name get; empty: none. */
  readonly heir: string
}

/** Times in ms. Only the start waits for a lock: later a wait would block requests. */
const PATIENCE_AT_START = 1000
const RETRY_EVERY = 5000
/** How often an idle store checks that its files are still in place. Each write checks it, too. */
const LOOK_EVERY = 5000
/** Expired tokens are deleted from disk in batches, because flash wears by the page and a late deletion does no harm. */
const EXPIRE_EVERY = 60_000
const EXPIRE_BATCH = 500

export type TokenJournal = ReturnType<typeof openJournal>

/**
 * Keeps the tokens of a table in `<dir>/tokens.db`, an SQLite database in WAL mode. Throws a `SetupError` if another sidecar uses the
 * folder. It reports any other failure and tries again, and the store continues in memory: no method throws.
 *
 * - A crash of the process loses nothing. A power cut loses the logins and refreshes since the last flush by `maintain`, about
 *   a second; their clients log in again. It never undoes a revocation.
 * - On a virtual SSD a login takes 0.04 ms (99 %: 1.3 ms). A revocation waits for the disk and takes 0.35 ms (99 %: 1.1 ms).
 *   Both are rare enough for the main thread.
 * - Flash wear: a login costs one transaction and about 10 KB of log, and later a share of a batch of deletions. The time is written
 *   once an hour, or every ten minutes while the wall clock has lost it.
 * - After a step of the wall clock, the tokens of this run are written again with corrected times, because their age is known. Restored
 *   tokens keep their records, unless this run has spent them, and their expiry is recomputed.
 */
export function openJournal({ dir, clock, uptime, listener, table, policy, heir }: Dependencies) {
  let file: JournalFile | undefined
  let recoverAt = Number.NEGATIVE_INFINITY
  let lookAt = 0
  let meta = new Map<string, string>()
  const deletions = createDelayedDeletions(clock)
  let unflushed = false
  /** After a failed flush, when the next one is due (ms, monotonic); otherwise 0. */
  let flushAt = 0
  /** The tokens that are not on disk. It is used only while no file is open: an open file has all tokens. */
  let unwritten = new WeakSet<Token>()
  /** The start could not open the file, and no file was opened since: the one in the folder may have tokens that are not in memory. */
  let isUnread = false
  /** When a file was last set aside (ms, wall clock). */
  let setAsideAt: number | undefined

  const openFile = (patience: number) =>
    openJournalFile({
      dir,
      patience,
      isUnread,
      wall: clock.wall,
      onSetAside(fault, name) {
        markUnwritten(tokens())
        setAsideAt = clock.wall()
        listener.setAside(fault, name)
      },
    })

  const tokens = () => table.grants().flatMap((grant) => grant.tokens)

  /** Marks tokens that are not on disk. */
  function markUnwritten(lost: Iterable<Token>): void {
    for (const token of lost) unwritten.add(token)
  }

  function fail(operation: JournalOperation, error: unknown): void {
    listener.failed(operation, error)
    close()
  }

  function close(): void {
    const open = file
    file = undefined
    try {
      open?.close()
    } catch (error) {
      listener.failed('close', error)
    }
  }

  function flushed(): void {
    if (flushAt > 0) listener.recovered()
    flushAt = 0
  }

  function notFlushed(error: unknown): void {
    unflushed = true
    flushAt = clock.monotonic() + RETRY_EVERY
    listener.failed('flush', error)
  }

  function attempt(
    operation: JournalOperation,
    durable: boolean,
    work: (file: JournalFile) => void,
  ): boolean {
    const open = file
    if (open === undefined) return false
    try {
      if (!open.inPlace()) {
        markUnwritten(tokens())
        throw new Error(`the files in ${dir} were removed or replaced`)
      }
      open.write(durable, () => work(open))
      unflushed = !durable
      // A durable write makes all earlier ones durable.
      if (durable) flushed()
      return true
    } catch (error) {
      fail(operation, error)
      return false
    }
  }

  /**
   * Reopens the files and rewrites them from memory, because only memory has the changes since the failure. A file that was never read is
   * set aside, not loaded: its tokens have missed every revocation and every change of the password since the start.
   */
  function recover(): 'recovered' | 'locked' | 'failed' {
    recoverAt = clock.monotonic() + RETRY_EVERY
    try {
      file = openFile(0)?.file
    } catch (error) {
      fail('open', error)
      return 'failed'
    }
    if (file === undefined) {
      fail('open', new Error(`another process has locked ${dir}`))
      return 'locked'
    }
    isUnread = false
    deletions.clear()
    const whole = attempt('open', true, (file) => {
      file.clear()
      for (const each of time.toRecords(tokens())) file.put(each)
      for (const [key, value] of meta) file.setMeta(key, value)
      file.setMeta(IDENTITY, file.identity)
    })
    if (!whole) return 'failed'
    unwritten = new WeakSet()
    listener.recovered()
    return 'recovered'
  }

  /**
   * Writes to the files. Recreates removed or damaged files before the token response is sent, but at most once in `RETRY_EVERY`:
   * recreation writes all tokens, and on a nearly full disk it would fail each time.
   */
  function write(operation: JournalOperation, durable: boolean, work: (file: JournalFile) => void): void {
    if (!attempt(operation, durable, work) && clock.monotonic() >= recoverAt) recover()
  }

  /** Adds or replaces tokens in one transaction. A `kill -9` after it does not undo it. */
  function record(changed: readonly Token[]): void {
    write('issue', false, (file) => {
      deletions.write(file)
      for (const each of time.toRecords(changed)) file.put(each)
      if (time.isDue()) time.keep(file)
    })
    if (file === undefined) markUnwritten(changed)
  }

  /**
   * Detects that the file is a copy, such as a restored backup. A copy may contain tokens that were revoked after the copy was made: they
   * are valid again.
   */
  function recognize(open: JournalFile): void {
    const known = meta.get(IDENTITY)
    if (known === open.identity) return
    meta.set(IDENTITY, open.identity)
    if (known !== undefined && !isSameFile(known, open.identity) && table.grantCount > 0) {
      meta.set(COPIED, String(clock.wall()))
      listener.copied()
    }
    write('meta', true, (file) => {
      for (const key of [IDENTITY, COPIED]) file.setMeta(key, meta.get(key) ?? '')
    })
  }

  function followClock(): boolean {
    const changed = time.follow()
    if (changed === undefined) return false
    write('issue', true, (file) => {
      for (const each of time.toRecords(changed)) file.put(each)
      time.keep(file)
    })
    return true
  }

  let stored: readonly TokenRecord[] = []
  try {
    const opened = openFile(PATIENCE_AT_START)
    if (opened === undefined)
      throw new SetupError(`another sidecar is using ${dir}: give each its own state_dir`)
    ;({ file, meta, records: stored } = opened)
  } catch (error) {
    if (error instanceof SetupError) throw error
    isUnread = true
    recoverAt = clock.monotonic() + RETRY_EVERY
    fail('open', error)
  }
  const time = createJournalClock({ clock, uptime, listener, table, policy, stored, meta })
  const { changed, over } = time.restore(stored, heir)
  deletions.add(over)
  if (changed.length > 0) record(changed)
  if (time.isLost()) write('meta', true, (file) => time.keep(file))
  if (file !== undefined) recognize(file)

  return {
    record,
    /**
     * Checks whether the wall clock was set since the last call, and returns that. After a step it writes the tokens of this run again, and
     * recomputes the expiry of restored tokens.
     */
    followClock,
    /** Deletes expired or evicted tokens, with a delay, because a late deletion does no harm. */
    forget(removed: readonly Token[]): void {
      if (file !== undefined) deletions.add(removed.map(({ digest }) => digest))
    },
    /**
     * Deletes revoked tokens durably: after the return, a power cut does not undo the deletion. If it cannot be written, deletes the whole
     * file. On a read-only file system that fails too: the file stays, and a restart that can open it restores the tokens.
     */
    revoke(revoked: readonly Token[] | 'all'): void {
      if (revoked === 'all') meta.delete(COPIED)
      const done = attempt('revoke', true, (file) => {
        if (revoked === 'all') {
          file.clear()
          file.setMeta(COPIED, '')
          return
        }
        for (const { digest } of revoked) file.drop(digest)
        // An evicted token that is still on disk may belong to the same grant or password.
        for (const digest of deletions.waiting()) file.drop(digest)
      })
      if (done) return
      // A revocation does not wait for the next retry: revoked tokens on the disk would be valid after a restart.
      // If another process holds the lock, the folder and its file belong to that process: the file is not deleted.
      // A file that was never read is not deleted either: it has none of these tokens.
      if (recover() !== 'failed' || (isUnread && revoked !== 'all')) return
      try {
        destroyJournalFile(dir)
        markUnwritten(tokens())
      } catch (error) {
        listener.failed('revoke', error)
      }
    },
    /**
     * When the file was found to be a copy (ms, wall clock). Undefined if it is no copy, after a revocation of all tokens, and once all
     * logins of the copy have expired.
     */
    copiedAt(): number | undefined {
      const at = Number(meta.get(COPIED) ?? '')
      return at > 0 && clock.wall() < at + policy.refreshLifetime ? at : undefined
    },
    /** When a file that could not be used was last set aside (ms, wall clock); undefined if none was in this run. */
    setAsideAt: (): number | undefined => setAsideAt,
    /** The number of live tokens that are not on disk: a crash would lose them. */
    unsaved(): number {
      if (file !== undefined) return 0
      return [...tokens()].filter((token) => token.spent === undefined && unwritten.has(token)).length
    },
    /** Facts about the whole state, such as the fingerprint of the password. */
    getMeta: (key: string): string | undefined => meta.get(key),
    setMeta(key: string, value: string): void {
      meta.set(key, value)
      write('meta', true, (file) => file.setMeta(key, value))
    },
    /** Writes delayed deletions, flushes, and retries after a failure. Call it about once a second. */
    maintain(): void {
      const now = clock.monotonic()
      if (file === undefined && now >= recoverAt) recover()
      else if (file !== undefined && now >= lookAt) {
        lookAt = now + LOOK_EVERY
        if (!isInPlace(file)) write('open', true, () => {})
      }
      if (deletions.areDue(now)) write('expire', false, deletions.write)
      if (table.grantCount > 0 && time.isDue()) write('meta', false, (file) => time.keep(file))
      if (file === undefined || !unflushed || now < flushAt) return
      unflushed = false
      file.flush().then(flushed, notFlushed)
    },
    close(): void {
      if (file !== undefined) followClock()
      if (table.grantCount > 0) attempt('meta', false, (file) => time.keep(file, true))
      if (deletions.waiting().length > 0) attempt('expire', false, deletions.write)
      close()
      recoverAt = Number.POSITIVE_INFINITY
    },
  }
}

/** As `inPlace`, but false if a folder above the file cannot be searched any more: the next write reports the reason. */
function isInPlace(file: JournalFile): boolean {
  try {
    return file.inPlace()
  } catch (error) {
    if (isBug(error)) throw error
    return false
  }
}

/** Expired and evicted tokens that are still on disk. They are deleted together with other writes, or in batches. */
function createDelayedDeletions(clock: Clock) {
  let digests: Digest[] = []
  let dueAt = clock.monotonic() + EXPIRE_EVERY
  return {
    waiting: (): readonly Digest[] => digests,
    add(removed: readonly Digest[]): void {
      digests = digests.concat(removed)
    },
    /** Whether a write for deletions alone is due. If it is, the next one is due a minute later. */
    areDue(now: number): boolean {
      if (digests.length < EXPIRE_BATCH && (digests.length === 0 || now < dueAt)) return false
      dueAt = now + EXPIRE_EVERY
      return true
    },
    /** Deletes one batch. */
    write(file: JournalFile): void {
      for (const digest of digests.splice(0, EXPIRE_BATCH)) file.drop(digest)
    },
    clear(): void {
      digests = []
    },
  }
}
