import { existsSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureFolder } from '../system/own-files.ts'
import { isWithheld } from '../system/setup-error.ts'
import { checksum, createDatabase, DATABASE, readDatabase, setDatabaseAside } from './journal-database.ts'
import type { Fault, TokenRecord } from './journal-records.ts'
import type { Digest } from './mint.ts'
import { fileIdentity, lastingIdentity, lockStateFolder, sync } from './state-folder.ts'

/** The open files of a state folder. Each method throws if the disk fails. */
export type JournalFile = Exclude<ReturnType<typeof openJournalFile>, undefined>['file']

interface Opening {
  readonly dir: string
  /** How long to wait for a lock (ms). The wait blocks the thread. */
  readonly patience: number
  /** True if the process has issued and revoked tokens without having read this file: a database with tokens is set aside. */
  readonly isUnread: boolean
  readonly wall: () => number
  readonly onSetAside: (fault: Fault, name: string) => void
}

/**
 * Locks a state folder, opens its database, and reads the tokens of the earlier process and the facts about the whole state (`meta`);
 * undefined if another process has locked the folder. A new database replaces a missing one, and one that is set aside.
 */
export function openJournalFile({ dir, patience, isUnread, wall, onSetAside }: Opening) {
  // An existing folder keeps its mode, because other programs may use it. The files have mode 0600.
  ensureFolder(dir)
  const lockPath = join(dir, 'tokens.lock')
  const path = join(dir, DATABASE)
  const release = lockStateFolder(lockPath, patience)
  if (release === undefined) return undefined

  function openDatabase(isNew = false): Exclude<ReturnType<typeof readDatabase>, Fault> {
    if (!existsSync(path)) createDatabase(path)
    const found = readDatabase(path, patience, isUnread)
    if (typeof found !== 'string') return found
    if (isNew) throw new Error(`a new database was ${found} immediately`)
    onSetAside(found, setDatabaseAside(path, found, wall()))
    return openDatabase(true)
  }

  try {
    const { db, records, meta } = openDatabase()
    const paths = [lockPath, path, `${path}-wal`]
    const identities = paths.map(fileIdentity)
    const columns =
      ':digest, :grant, :client, :granted, :kind, :issued, :expires, :spent, :graceEnd, :label, :checksum'
    const put = db.prepare(`INSERT OR REPLACE INTO tokens VALUES (${columns})`)
    const drop = db.prepare('DELETE FROM tokens WHERE digest = ?')
    const setMeta = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)')
    /**
     * Runs `work`, which changes the file by `put`, `drop`, `clear` and `setMeta`, in one transaction, which survives a `kill -9`. With
     * `durable` it also survives a power cut, which otherwise undoes all transactions since the last `flush`.
     */
    function write(durable: boolean, work: () => void): void {
      db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'NORMAL'}; BEGIN IMMEDIATE`)
      try {
        work()
        db.exec('COMMIT')
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    }
    const file = {
      write,
      put(record: TokenRecord): void {
        const digest = Buffer.from(record.digest, 'base64url')
        put.run({ ...record, digest, checksum: checksum(record) })
      },
      drop: (digest: Digest): unknown => drop.run(Buffer.from(digest, 'base64url')),
      clear: (): void => db.exec('DELETE FROM tokens'),
      setMeta: (key: string, value: string): unknown => setMeta.run(key, value),
      /** A later run compares it (`isSameFile`) to tell the file from a copy. */
      identity: lastingIdentity(path),
      /** Whether the paths still name the open files. SQLite itself does not notice that a file was removed or replaced. */
      inPlace: (): boolean => paths.every((each, i) => fileIdentity(each) === identities[i]),
      /** Makes all earlier transactions durable. Runs off this thread, except under Node's permission model. */
      async flush(): Promise<void> {
        const log = await open(`${path}-wal`, 'r')
        try {
          await log.datasync()
        } catch (error) {
          if (!isWithheld(error)) throw error
          // SQLite may still sync: a durable transaction makes all earlier ones durable.
          if (db.isOpen) write(true, () => setMeta.run('flushed', ''))
        } finally {
          await log.close()
        }
      },
      close(): void {
        try {
          db.close()
        } finally {
          release()
        }
      },
    }
    return { file, records, meta }
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
  // `existsSync` is false for a file in a folder that cannot be searched; here that is an error.
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return
  sync(path, 'w')
  for (const side of ['', '-wal']) rmSync(path + side, { force: true })
  sync(dir)
}
