import { existsSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureFolder } from '../system/own-files.ts'
import { isWithheld } from '../system/setup-error.ts'
import { checksum, createDatabase, readDatabase, setDatabaseAside } from './journal-database.ts'
import type { Digest } from './mint.ts'
import { emptyFile, fileIdentity, lockStateFolder, syncFolder } from './state-folder.ts'
import type { Fault, TokenRecord } from './token-journal.ts'

export interface JournalWriter {
  put(record: TokenRecord): void
  drop(digest: Digest): void
  clear(): void
  setMeta(key: string, value: string): void
}

/** The open files of a state folder. Each method throws if the disk fails. */
export interface JournalFile {
  /**
   * Runs `work` in one transaction. It survives a `kill -9`. With `durable` it also survives a power cut, which otherwise
   * undoes all transactions since the last `flush`.
   */
  write(durable: boolean, work: (writer: JournalWriter) => void): void
  /** Whether the paths still name the open files. SQLite does not notice if the files are removed or replaced. */
  inPlace(): boolean
  /** Makes all earlier transactions durable. Runs off this thread, except under Node's permission model. */
  flush(): Promise<void>
  close(): void
}

interface Opened {
  readonly file: JournalFile
  readonly records: readonly TokenRecord[]
  readonly meta: Map<string, string>
}

const DATABASE = 'tokens.db'

interface Opening {
  readonly dir: string
  /** How long to wait for a lock (ms). The wait blocks the thread. */
  readonly patience: number
  /** Tokens were issued and revoked without those of the file: a database with tokens is set aside, too. */
  readonly isUnread: boolean
  readonly wall: () => number
  readonly onSetAside: (fault: Fault, name: string) => void
}

/**
 * Locks a state folder and opens its database; undefined if another process has locked it. A missing database, and one that is set aside,
 * is replaced by a new one.
 */
export function openJournalFile({ dir, patience, isUnread, wall, onSetAside }: Opening): Opened | undefined {
  // An existing folder keeps its mode, because other programs may use it. The files have mode 0600.
  ensureFolder(dir)
  const lockPath = join(dir, 'tokens.lock')
  const path = join(dir, DATABASE)
  const release = lockStateFolder(lockPath, patience)
  if (release === undefined) return undefined

  function openDatabase(): Exclude<ReturnType<typeof readDatabase>, Fault> {
    if (!existsSync(path)) createDatabase(path)
    const found = readDatabase(path, patience)
    if (typeof found !== 'string' && !(isUnread && found.records.length > 0)) return found
    if (typeof found !== 'string') found.db.close()
    const fault = typeof found === 'string' ? found : 'unread'
    onSetAside(fault, setDatabaseAside(path, fault, wall()))
    createDatabase(path)
    const fresh = readDatabase(path, patience)
    if (typeof fresh === 'string') throw new Error(`a new database was ${fresh} immediately`)
    return fresh
  }

  try {
    const { db, records, meta } = openDatabase()
    const paths = [lockPath, path, `${path}-wal`]
    const identities = paths.map(fileIdentity)
    const put = db.prepare('INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    const drop = db.prepare('DELETE FROM tokens WHERE digest = ?')
    const setMeta = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)')
    const writer: JournalWriter = {
      put(record) {
        const { digest, grant, client, granted, kind, issued, expires, spent, graceEnd } = record
        const key = Buffer.from(digest, 'base64url')
        put.run(key, grant, client, granted, kind, issued, expires, spent, checksum(record), graceEnd)
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
            // SQLite may still sync: a durable transaction makes all earlier ones durable.
            if (db.isOpen) write(true, ({ setMeta }) => setMeta('flushed', ''))
          } finally {
            await log.close()
          }
        },
        close() {
          try {
            db.close()
          } finally {
            release()
          }
        },
      },
    }
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Deletes the token file if a revocation cannot be written to it: after a restart, revoked tokens in it would be valid again.
 * The file is truncated first, which also works in a read-only folder. SQLite does not replay a log into an empty file.
 */
export function destroyJournalFile(dir: string): void {
  const path = join(dir, DATABASE)
  if (!existsSync(path)) return
  emptyFile(path)
  for (const side of ['', '-wal']) rmSync(path + side, { force: true })
  syncFolder(dir)
}
