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
 * Makes created and removed names in a folder durable; with `w`, the truncation of a file. Node's permission model forbids fsync. SQLite
 * still syncs its own files, and the folder of a new one; the kernel writes the rest within half a minute.
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

/** Device and inode of the file that a path names now; `undefined` if there is none. */
export function fileIdentity(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`
}

/**
 * Identifies a file over restarts, so that a later run tells it from a copy: its inode, and the time of its creation, because a file system
 * soon reuses the inode of a deleted file. The number of the device is left out: it may change with a reboot or on another machine.
 */
export function lastingIdentity(path: string): string {
  const { ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true })
  // If the file system keeps no time of creation, Node gives 0 or the time of the last change.
  return `${ino}:${birthtimeNs === ctimeNs || birthtimeNs === 0n ? '' : birthtimeNs}`
}

/** Whether two lasting identities are those of one file. The times of creation count only if both have one. */
export function isSameFile(one: string, other: string): boolean {
  const [inode, created] = one.split(':')
  const [otherInode, otherCreated] = other.split(':')
  return inode === otherInode && (created === otherCreated || created === '' || otherCreated === '')
}

/**
 * Locks a folder against other sidecars with an exclusive SQLite transaction on an empty file. The kernel releases the lock
 * when the process ends, in whatever way; a file with a process id would stay. `patience`: how long to wait for the lock (ms).
 * Returns a function that releases it; `undefined`: another process holds it.
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
      // A damaged file is not locked: a lock shows as busy before SQLite reads the file.
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
