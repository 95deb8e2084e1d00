import { codeOf } from '../system/setup-error.ts'

export type SqliteCode = 'busy' | 'damaged' | 'read-only' | 'other'

/** What an error of `node:sqlite` is about (https://sqlite.org/rescode.html; extended codes keep the low byte). */
export function sqliteCode(error: unknown): SqliteCode {
  // A number in a row that is too large to be one of ours.
  if (codeOf(error) === 'ERR_OUT_OF_RANGE') return 'damaged'
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return 'other'
  switch (error.errcode & 0xff) {
    case 5: // SQLITE_BUSY
    case 6: // SQLITE_LOCKED
      return 'busy'
    case 1: // SQLITE_ERROR: a table or column that should be there is not
    case 11: // SQLITE_CORRUPT
    case 26: // SQLITE_NOTADB
      return 'damaged'
    case 8: // SQLITE_READONLY
      return 'read-only'
    default:
      return 'other'
  }
}
