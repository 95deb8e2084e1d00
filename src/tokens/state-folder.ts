import { chmodSync, closeSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { codeOf, isWithheld } from '../system/setup-error.ts'

/** Makes sure that a file exists and has mode 0600 (H74). SQLite gives its side files the same mode. */
export function createPrivate(path: string): void {
  // An existing file is not opened: closing a second descriptor would release the locks that SQLite holds on it.
  if (statSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, 'wx', 0o600))
  else chmodSync(path, 0o600)
}

/**
 * Makes created and removed names in a folder durable; with `w`, truncates a file durably. Node's permission model forbids fsync: then the
 * kernel writes the change within half a minute. SQLite still syncs its own files, and the folder of a new one.
 */
export function sync(path: string, flags: 'r' | 'w' = 'r'): void {
  const descriptor = openSync(path, flags)
  try {
    fsyncSync(descriptor)
  } catch (error) {
    if (!isWithheld(error)) throw error
  } finally {
    closeSync(descriptor)
  }
}

/** Device and inode of the file that a path names now; undefined without a file. */
export function fileIdentity(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`
}

/**
 * Identifies a file across restarts, so a later run can tell it from a copy: by its inode and its time of creation, because a file system
 * soon reuses the inode of a deleted file. The device number is left out: a reboot or another machine may change it.
 */
export function lastingIdentity(path: string): string {
  const { ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true })
  // If the file system keeps no time of creation, Node gives 0 or the time of the last change.
  return `${ino}:${birthtimeNs === ctimeNs || birthtimeNs === 0n ? '' : birthtimeNs}`
}

/** Whether two results of `lastingIdentity` mean the same file. The times of creation count only if both have one. */
export function isSameFile(one: string, other: string): boolean {
  const [inode, created] = one.split(':')
  const [otherInode, otherCreated] = other.split(':')
  return inode === otherInode && (created === otherCreated || created === '' || otherCreated === '')
}

/**
 * Locks a folder against other sidecars with an exclusive SQLite transaction on an empty file. The kernel releases the lock when the
 * process ends, even after a crash; a file with a process id would stay. `patience`: how long to wait for the lock (ms). Returns a function
 * that releases the lock; undefined if another process holds it.
 */
export function lockStateFolder(path: string, patience: number): (() => void) | undefined {
  for (let attempt = 0; ; attempt++) {
    createPrivate(path)
    const db = new DatabaseSync(path, { timeout: patience })
    try {
      // Nothing is written, so a journal in memory leaves no file behind.
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      return () => db.close()
    } catch (error) {
      db.close()
      const code = sqliteCode(error)
      if (code === 'busy') return undefined
      // A damaged file is not locked: SQLite reports a lock (`busy`) before it reads the file.
      if (code !== 'damaged' || attempt > 0) throw error
      rmSync(path)
    }
  }
}

/** What the result codes of SQLite mean here (https://sqlite.org/rescode.html), without their extended bits. */
const CODES: ReadonlyMap<number, 'busy' | 'damaged' | 'read-only'> = new Map([
  [1, 'damaged'], // SQLITE_ERROR: a table or column is missing
  [5, 'busy'], // SQLITE_BUSY
  [6, 'busy'], // SQLITE_LOCKED
  [8, 'read-only'], // SQLITE_READONLY
  [11, 'damaged'], // SQLITE_CORRUPT
  [26, 'damaged'], // SQLITE_NOTADB
])

/** Classifies an error of `node:sqlite`. */
export function sqliteCode(error: unknown): 'busy' | 'damaged' | 'read-only' | 'other' {
  // A row holds a number larger than any that the sidecar writes.
  if (codeOf(error) === 'ERR_OUT_OF_RANGE') return 'damaged'
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : Number.NaN
  return CODES.get(code) ?? 'other'
}
