import { accessSync, constants, existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { setAside } from '../system/own-files.ts'
import type { Fault, TokenRecord } from './journal-records.ts'
import { createPrivate, sqliteCode, sync } from './state-folder.ts'

/** The name of the file in the state folder. */
export const DATABASE = 'tokens.db'

/** Creates the file under another name and renames it. So an empty file is always damage, never the result of a crash in this function. */
export function createDatabase(path: string): void {
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  createPrivate(draft)
  const db = new DatabaseSync(draft)
  try {
    db.exec('PRAGMA journal_mode = WAL')
    db.exec(`BEGIN IMMEDIATE; ${SCHEMA}; COMMIT`)
  } finally {
    db.close()
  }
  // SQLite would replay the log of an earlier file into this one.
  for (const side of ['-wal', '-shm']) rmSync(path + side, { force: true })
  renameSync(draft, path)
  sync(dirname(path))
}

/**
 * Opens and locks an existing file and reads all of it: SQLite opens garbage without an error, and only the first query
 * fails (H72). Returns a `Fault` if the file itself cannot be used, and throws on any other failure.
 *
 * @param patience how long to wait for a lock (ms)
 * @param isUnread whether a file with tokens is a fault
 */
export function readDatabase(path: string, patience: number, isUnread: boolean) {
  createPrivate(path)
  const db = new DatabaseSync(path, { timeout: patience })
  const reject = (fault: Fault): Fault => {
    db.close()
    return fault
  }
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON')
    const version = pragma(db, 'user_version')
    const isOurs = pragma(db, 'application_id') === APPLICATION_ID
    if (!isWellFormed(db)) return reject('damaged')
    if (!isOurs) return reject('foreign')
    if (version > VERSION) return reject('newer')
    db.exec('PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 4194304')
    // Deletes nothing. It shows now, and not at the first token, whether the file is writable.
    db.exec("DELETE FROM meta WHERE key = ''")
    const records = readRecords(db)
    if (records === undefined) return reject('damaged')
    if (isUnread && records.length > 0) return reject('unread')
    const meta = db.prepare('SELECT key, value FROM meta').all()
    return { db, records, meta: new Map(meta.map(({ key, value }) => [String(key), String(value)])) }
  } catch (error) {
    db.close()
    const code = sqliteCode(error)
    if (code === 'damaged' || (code === 'read-only' && isWritable(path))) return 'damaged'
    throw error
  }
}

/** If the system allows writing and SQLite does not, the header of the file is damaged. */
function isWritable(path: string): boolean {
  try {
    for (const target of [path, dirname(path)]) accessSync(target, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Renames a database and its log to a dated name and returns that name. */
export function setDatabaseAside(path: string, fault: Fault, wall: number): string {
  const name = setAside(path, fault, wall)
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${name}-wal`)
  return name
}

/** In the header of the file. The database of another program has a different one. */
const APPLICATION_ID = 0x506f7374

/** The version of the tables. A file of a later version is set aside as `newer`. */
const VERSION = 1

/** SQLite detects damage to the structure of the file. The checksum of each row detects damage to its content. */
const SCHEMA = `CREATE TABLE tokens (
     digest BLOB PRIMARY KEY,
     grant_id TEXT NOT NULL,
     client TEXT NOT NULL,
     granted INTEGER NOT NULL,
     kind TEXT NOT NULL,
     issued INTEGER NOT NULL,
     expires INTEGER NOT NULL,
     spent INTEGER,
     grace_end INTEGER,
     label TEXT,
     checksum INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
   PRAGMA application_id = ${APPLICATION_ID};
   PRAGMA user_version = ${VERSION}`

function pragma(db: DatabaseSync, name: string): number {
  const value = db.prepare(`PRAGMA ${name}`).get()?.[name]
  return typeof value === 'number' ? value : -1
}

/** Above this size the structure check is skipped, because its time grows with the file. */
const CHECKED_PAGES = 16_384

/** Whether SQLite finds the file well formed. Takes about 10 ms for the default capacity; the size limit bounds it. */
function isWellFormed(db: DatabaseSync): boolean {
  const pages = pragma(db, 'page_count')
  if (pages < 1) return false
  if (pages > CHECKED_PAGES) return true
  return db.prepare('PRAGMA quick_check(1)').get()?.quick_check === 'ok'
}

export function checksum(record: TokenRecord): number {
  const { digest, grant, client, granted, kind, issued, expires, spent, graceEnd, label } = record
  return crc32([digest, grant, client, granted, kind, issued, expires, spent, graceEnd, label].join('\n'))
}

/** All tokens of the file, or `undefined` if one of them fails its checksum. */
function readRecords(db: DatabaseSync): readonly TokenRecord[] | undefined {
  const records: TokenRecord[] = []
  for (const row of db.prepare('SELECT * FROM tokens').iterate()) {
    const { digest, grant_id: grant, grace_end: graceEnd, checksum: sum, ...others } = row
    const text = Buffer.from(digest instanceof Uint8Array ? digest : []).toString('base64url')
    // Proof of the cast: the table is STRICT, and the checksum below is right only for a row that this program has written.
    const record = { ...others, digest: text, grant, graceEnd } as typeof others & TokenRecord
    if (checksum(record) !== sum) return undefined
    records.push(record)
  }
  return records
}
