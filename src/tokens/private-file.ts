import { chmodSync, closeSync, fsyncSync, ftruncateSync, openSync, statSync } from 'node:fs'
import { isWithheld } from '../system/node-permission.ts'

/** Makes sure that a file is there and its owner's only (H74). SQLite gives its side files the same mode. */
export function createPrivate(path: string): void {
  // Not opened when it is there: closing a second descriptor would drop the locks that SQLite holds on the file.
  if (statSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, 'wx', 0o600))
  else chmodSync(path, 0o600)
}

/** Makes names that were added to or removed from a folder last through a power cut. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    sync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Which file a name stands for just now; `undefined` when there is none. */
export function fileIdentity(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`
}

/** Empties a file, and lasts through a power cut. */
export function empty(path: string): void {
  const file = openSync(path, 'r+')
  try {
    ftruncateSync(file)
    sync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Under its permission model Node lets nobody call fsync. SQLite does so by itself, for its files and the folder of a new
 * one; the rest the kernel then writes when it likes, within half a minute.
 */
function sync(descriptor: number): void {
  try {
    fsyncSync(descriptor)
  } catch (error) {
    if (!isWithheld(error)) throw error
  }
}
