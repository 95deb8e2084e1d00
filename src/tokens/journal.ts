import type { Clock } from '../system/clock.ts'
import { destroyJournalFile, type JournalFile, type JournalWriter, openJournalFile } from './journal-file.ts'
import type { Digest } from './mint.ts'
import type { JournalListener, JournalOperation, TokenJournal, TokenRecord } from './token-journal.ts'

export interface JournalDependencies {
  readonly dir: string
  readonly clock: Clock
  readonly listener: JournalListener
}

export type OpenedJournal =
  | { readonly kind: 'open'; readonly journal: TokenJournal }
  | { readonly kind: 'locked'; readonly message: string }

/** How long opening may wait for a lock at the start; later on, requests are waiting and it may not wait at all. */
const PATIENCE_AT_START = 1000
const RETRY_EVERY = 5000
/** Expired tokens leave the disk in batches: flash wears by the page, and a late drop harms nobody. */
const EXPIRE_EVERY = 60_000
const EXPIRE_BATCH = 500

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)))

/**
 * The token store's state in `<dir>/tokens.db`: SQLite in WAL mode. Refuses a folder that another sidecar has;
 * any other trouble is reported, served through from memory, and tried again.
 *
 * What a crash takes: nothing, of the process; of the power, the logins and refreshes of the last second or so,
 * as `maintain` flushes them (their clients log in again), but no revocation. On a virtual SSD a login took 0.04 ms
 * (99 %: 1.3 ms) and a revocation, which waits for the disk, 0.35 ms (99 %: 1.1 ms): rare enough to need no thread.
 * What it costs flash: one transaction and about 10 KB of log for a login, and a share of a batch for its end.
 */
export function openJournal({ dir, clock, listener }: JournalDependencies): OpenedJournal {
  let file: JournalFile | undefined
  let retryAt = 0
  let recoveredAt = Number.NEGATIVE_INFINITY
  let restored: readonly TokenRecord[] = []
  let snapshot: () => Iterable<TokenRecord> = () => restored
  let meta = new Map<string, string>()
  let forgotten: Digest[] = []
  let expireAt = clock.monotonic() + EXPIRE_EVERY
  let unflushed = false
  /** Tokens that could not be written. */
  const unwritten = new Set<Digest>()
  /** The files with all earlier tokens are gone as well. */
  let filesLost = false

  const openFile = (patience: number): ReturnType<typeof openJournalFile> =>
    openJournalFile(dir, patience, clock.wall, (fault, name) => {
      filesLost = true
      listener.setAside(fault, name)
    })

  function fail(operation: JournalOperation, error: unknown): void {
    retryAt = clock.monotonic() + RETRY_EVERY
    listener.trouble(operation, asError(error))
    const broken = file
    file = undefined
    try {
      broken?.close()
    } catch (closeError) {
      listener.trouble('close', asError(closeError))
    }
  }

  function attempt(
    operation: JournalOperation,
    durable: boolean,
    work: (writer: JournalWriter) => void,
  ): boolean {
    if (file === undefined) return false
    try {
      if (!file.inPlace()) {
        filesLost = true
        throw new Error(`the files in ${dir} were removed or replaced`)
      }
      file.write(durable, work)
      unflushed = !durable
      return true
    } catch (error) {
      fail(operation, error)
      return false
    }
  }

  /** Opens the files anew and makes them match the memory, which alone knows what happened meanwhile. */
  function recover(): 'recovered' | 'locked' | 'failed' {
    recoveredAt = clock.monotonic()
    try {
      const opened = openFile(0)
      if (opened.kind === 'locked') {
        fail('open', new Error(`another process has locked ${dir}`))
        return 'locked'
      }
      file = opened.file
    } catch (error) {
      fail('open', error)
      return 'failed'
    }
    forgotten = []
    const whole = attempt('open', true, (writer) => {
      writer.clear()
      for (const record of snapshot()) writer.put(record)
      for (const [key, value] of meta) writer.setMeta(key, value)
    })
    if (!whole) return 'failed'
    unwritten.clear()
    filesLost = false
    listener.recovered()
    return 'recovered'
  }

  /**
   * Files that were unlinked or damaged under way are made anew at once, before the token is answered; but not over
   * and over, as that writes everything and a disk that is almost full would invite it to.
   */
  function write(operation: JournalOperation, durable: boolean, work: (writer: JournalWriter) => void): void {
    const now = clock.monotonic()
    if (file === undefined && now < retryAt) return
    if (!attempt(operation, durable, work) && now - recoveredAt >= RETRY_EVERY) recover()
  }

  function expire(writer: JournalWriter): void {
    for (const digest of forgotten.splice(0, EXPIRE_BATCH)) writer.drop(digest)
  }

  function unsaved(): number {
    if (unwritten.size === 0 && !filesLost) return 0
    let count = 0
    for (const { digest, spent } of snapshot()) {
      if (spent === null && (filesLost || unwritten.has(digest))) count += 1
    }
    return count
  }

  function revoke(digests: readonly Digest[] | 'all'): void {
    if (digests === 'all') unwritten.clear()
    else for (const digest of digests) unwritten.delete(digest)
    const done = attempt('revoke', true, (writer) => {
      if (digests === 'all') writer.clear()
      else for (const digest of digests) writer.drop(digest)
    })
    if (done) return
    // Not put off until the next retry, unlike the rest: what the disk still holds would be valid after a restart.
    if (recover() !== 'failed') return
    try {
      destroyJournalFile(dir)
      filesLost = true
    } catch (error) {
      listener.trouble('revoke', asError(error))
    }
  }

  function flush(): void {
    if (file === undefined || !unflushed) return
    unflushed = false
    file.flush().catch((error: Error) => {
      listener.trouble('flush', error)
    })
  }

  function maintain(): void {
    const now = clock.monotonic()
    if (file !== undefined && !file.inPlace()) write('open', true, () => {})
    else if (file === undefined && now >= retryAt) recover()
    if (forgotten.length >= EXPIRE_BATCH || (forgotten.length > 0 && now >= expireAt)) {
      expireAt = now + EXPIRE_EVERY
      write('expire', false, expire)
    }
    flush()
  }

  const journal: TokenJournal = {
    restore: () => restored,
    attach(source) {
      snapshot = source
      restored = []
    },
    record(records) {
      write('issue', false, (writer) => {
        expire(writer)
        for (const record of records) writer.put(record)
      })
      if (file === undefined) for (const { digest } of records) unwritten.add(digest)
    },
    forget(digests) {
      for (const digest of digests) unwritten.delete(digest)
      if (file !== undefined) forgotten = forgotten.concat(digests)
    },
    revoke,
    unsaved,
    getMeta: (key) => meta.get(key),
    setMeta(key, value) {
      meta.set(key, value)
      write('meta', true, (writer) => writer.setMeta(key, value))
    },
    maintain,
    close() {
      if (forgotten.length > 0) attempt('expire', false, expire)
      try {
        file?.close()
      } catch (error) {
        fail('close', error)
      }
      file = undefined
      retryAt = Number.POSITIVE_INFINITY
    },
  }

  try {
    const opened = openFile(PATIENCE_AT_START)
    if (opened.kind === 'locked') {
      return { kind: 'locked', message: `another sidecar is using ${dir}: give each its own state_dir` }
    }
    file = opened.file
    restored = opened.records
    meta = opened.meta
    filesLost = false
  } catch (error) {
    fail('open', error)
  }
  return { kind: 'open', journal }
}
