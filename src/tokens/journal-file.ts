import { existsSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { isWithheld } from '../system/node-permission.ts'
import { ensureFolder } from '../system/own-files.ts'
import { createDatabase, readDatabase, setDatabaseAside } from './journal-recovery.ts'
import { checksum } from './journal-schema.ts'
import type { Digest } from './mint.ts'
import { empty, fileIdentity, syncFolder } from './private-file.ts'
import { takeStateLock } from './state-lock.ts'
import type { Fault, TokenRecord } from './token-journal.ts'

export interface JournalWriter {
  put(record: TokenRecord): void
  drop(digest: Digest): void
  clear(): void
  setMeta(key: string, value: string): void
}

/** The open files of a state folder. Everything here throws when the disk does not do what it is asked. */
export interface JournalFile {
  /**
   * Writes all of it or nothing. Either way a `kill -9` afterwards takes nothing back; `durable` waits until a power
   * cut cannot either. Without it, what a power cut takes is what was written since the last `flush`.
   */
  write(durable: boolean, work: (writer: JournalWriter) => void): void
  /** Whether the names in the folder still stand for the files that are open: SQLite would not notice. */
  inPlace(): boolean
  /** Makes everything written so far durable; off this thread, unless Node's permission model leaves no way. */
  flush(): Promise<void>
  close(): void
}

export type Opened =
  | {
      readonly kind: 'open'
      readonly file: JournalFile
      readonly records: readonly TokenRecord[]
      readonly meta: Map<string, string>
    }
  | { readonly kind: 'locked' }

const DATABASE = 'tokens.db'

/**
 * Locks a state folder and opens its database, made anew if it is missing or unusable. `patience` is how long
 * to wait for a lock, in milliseconds; the thread waits too.
 */
export function openJournalFile(
  dir: string,
  patience: number,
  wall: () => number,
  onSetAside: (fault: Fault, name: string) => void,
): Opened {
  // An existing folder keeps its mode: it might be one that others need. The files are 0600 in any case.
  ensureFolder(dir)
  const lockPath = join(dir, 'tokens.lock')
  const path = join(dir, DATABASE)
  const lock = takeStateLock(lockPath, patience)
  if (lock === undefined) return { kind: 'locked' }

  function openDatabase(): Exclude<ReturnType<typeof readDatabase>, Fault> {
    if (!existsSync(path)) createDatabase(path)
    const found = readDatabase(path, patience)
    if (typeof found !== 'string') return found
    onSetAside(found, setDatabaseAside(path, found, wall()))
    createDatabase(path)
    const fresh = readDatabase(path, patience)
    if (typeof fresh === 'string') throw new Error(`a new database was ${fresh} at once`)
    return fresh
  }

  try {
    const { db, records, meta } = openDatabase()
    const paths = [lockPath, path, `${path}-wal`]
    const identities = paths.map(fileIdentity)
    const put = db.prepare('INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
    const drop = db.prepare('DELETE FROM tokens WHERE digest = ?')
    const setMeta = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)')
    const writer: JournalWriter = {
      put(record) {
        const { digest, grant, client, granted, kind, issued, expires, spent } = record
        const key = Buffer.from(digest, 'base64url')
        put.run(key, grant, client, granted, kind, issued, expires, spent, checksum(record))
      },
      drop: (digest) => {
        drop.run(Buffer.from(digest, 'base64url'))
      },
      clear: () => db.exec('DELETE FROM tokens'),
      setMeta: (key, value) => {
        setMeta.run(key, value)
      },
    }
    const write: JournalFile['write'] = (durable, work) => {
      db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'NORMAL'}; BEGIN IMMEDIATE`)
      try {
        work(writer)
        db.exec('COMMIT')
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    }
    return {
      kind: 'open',
      records,
      meta,
      file: {
        write,
        inPlace: () => paths.every((each, i) => fileIdentity(each) === identities[i]),
        async flush() {
          const log = await open(`${path}-wal`, 'r')
          try {
            await log.datasync()
          } catch (error) {
            if (!isWithheld(error)) throw error
            // SQLite may sync: a durable transaction takes everything before it along.
            if (db.isOpen) write(true, ({ setMeta }) => setMeta('flushed', ''))
          } finally {
            await log.close()
          }
        },
        close() {
          try {
            db.close()
          } finally {
            lock.release()
          }
        },
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

/**
 * The last resort when a revocation cannot be written: without the file, nothing in it can come back. Emptied
 * first, which works in a folder that is read-only, too; SQLite does not play a log back into an empty file.
 */
export function destroyJournalFile(dir: string): void {
  const path = join(dir, DATABASE)
  if (!existsSync(path)) return
  empty(path)
  for (const side of ['', '-wal']) rmSync(path + side, { force: true })
  syncFolder(dir)
}
