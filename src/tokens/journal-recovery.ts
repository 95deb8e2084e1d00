import { accessSync, constants, existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setAside } from '../system/own-files.ts'
import { isWellFormed, migrate, readMeta, readRecords, versionOf } from './journal-schema.ts'
import { createPrivate, syncFolder } from './private-file.ts'
import { sqliteCode } from './sqlite-error.ts'
import type { Fault, TokenRecord } from './token-journal.ts'

export interface OpenDatabase {
  readonly db: DatabaseSync
  readonly records: readonly TokenRecord[]
  readonly meta: Map<string, string>
}

/** Leaves a file under its name or none at all, so that an empty file is always damage and never a crash of ours. */
export function createDatabase(path: string): void {
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  createPrivate(draft)
  const db = new DatabaseSync(draft)
  try {
    db.exec('PRAGMA journal_mode = WAL')
    migrate(db)
  } finally {
    db.close()
  }
  // The log of an earlier file would be played back into this one.
  for (const side of ['-wal', '-shm']) rmSync(path + side, { force: true })
  renameSync(draft, path)
  syncFolder(dirname(path))
}

/**
 * Opens a file that is there, and takes it for itself. Opening garbage succeeds and only the first query fails
 * (H72), so everything is read before it is believed. Throws where the trouble is not the file's own.
 */
export function readDatabase(path: string, patience: number): OpenDatabase | Fault {
  createPrivate(path)
  const db = new DatabaseSync(path, { timeout: patience })
  const reject = (fault: Fault): Fault => {
    db.close()
    return fault
  }
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON')
    const version = versionOf(db)
    if (version === 'newer' || version === 'foreign') return reject(isWellFormed(db) ? version : 'damaged')
    if (!isWellFormed(db)) return reject('damaged')
    db.exec('PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 4194304')
    if (version === 'older') migrate(db)
    // Shows now, and not with the first token, whether the file can be written to; changes nothing.
    db.exec("DELETE FROM meta WHERE key = ''")
    const records = readRecords(db)
    return records === undefined ? reject('damaged') : { db, records, meta: readMeta(db) }
  } catch (error) {
    db.close()
    const code = sqliteCode(error)
    if (code === 'damaged' || (code === 'read-only' && isWritable(path))) return 'damaged'
    throw error
  }
}

/** A header that forbids writing to a file that the system would let us write to is damage. */
function isWritable(path: string): boolean {
  try {
    for (const target of [path, dirname(path)]) accessSync(target, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Moves a database and its log out of the way, under a dated name, and returns that name. */
export function setDatabaseAside(path: string, fault: Fault, wall: number): string {
  const name = setAside(path, fault, wall)
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${name}-wal`)
  return name
}
