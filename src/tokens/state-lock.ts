import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivate } from './private-file.ts'
import { sqliteCode } from './sqlite-error.ts'

export interface StateLock {
  release(): void
}

/**
 * Keeps other sidecars off a folder: an exclusive SQLite transaction that stays open on an empty file. The kernel
 * holds it, so it ends with the process however that dies, which a file with a process id in it does not.
 * `undefined` when another process has it.
 */
export function takeStateLock(path: string, patience: number): StateLock | undefined {
  for (let attempt = 0; ; attempt++) {
    createPrivate(path)
    const db = new DatabaseSync(path, { timeout: patience })
    try {
      // Nothing is ever written, so nothing may be left lying about either.
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      return { release: () => db.close() }
    } catch (error) {
      db.close()
      const code = sqliteCode(error)
      if (code === 'busy') return undefined
      // A file that cannot be read as a database is locked by nobody: its holder would have shown as busy first.
      if (code !== 'damaged' || attempt > 0) throw error
      rmSync(path)
    }
  }
}
