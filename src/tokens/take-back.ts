import { existsSync, lstatSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nameOfGrant } from '../http/scope.ts'
import { readDatabase, setDatabaseAside } from './journal-database.ts'
import { type JournalFile, openJournalFile } from './journal-file.ts'
import { BACK } from './set-aside.ts'
import { fileIdentity, sync } from './state-folder.ts'
import { comparePasswords, type Fault, FINGERPRINT, SALT, withName } from './token-journal.ts'

/** The key of the journal for the file whose tokens it has and which is not deleted yet. Empty: none. */
const TAKEN = 'taken_back'
/** How long to wait for a lock (ms). */
const PATIENCE = 1000

interface TakeBack {
  readonly dir: string
  readonly wall: () => number
  /** The name that grants without a name get; empty: none. */
  readonly heir: string
  /** The fingerprints of the present passwords: see `textOfNames`; undefined if they are unknown. */
  readonly fingerprint: (salt: Uint8Array) => Promise<string | undefined>
  readonly onSetAside: (fault: Fault, name: string) => void
}

/** What became of the tokens of the file. `path`: where it is now. `unknown`: the passwords are unknown, and the file stays. */
type Taken =
  | { readonly taken: number; readonly dropped: number }
  | { readonly fault: Fault; readonly path: string }
  | 'unknown'

/**
 * Adds the tokens of `tokens.db.back` to the token file, which no process has open, and deletes `tokens.db.back`. Drops tokens that were
 * issued for another password than the present one. A login that the token file has already stays as it is there. A crash at any moment
 * loses no token, and adds none a second time: it may have been revoked since the first.
 */
export async function takeBack({ dir, wall, heir, fingerprint, onSetAside }: TakeBack): Promise<Taken> {
  const back = join(dir, BACK)
  // SQLite would open what a link names, and this would change its mode.
  if (!lstatSync(back).isFile()) throw new Error(`${back} is no file`)
  const opened = openJournalFile({ dir, patience: PATIENCE, isUnread: false, wall, onSetAside })
  if (opened === undefined) throw new Error(`another process has locked ${dir}`)
  const { file, meta, records: held } = opened
  try {
    if (meta.get(TAKEN) === markOf(back)) {
      remove(back, file)
      return { taken: 0, dropped: 0 }
    }
    const found = readDatabase(back, PATIENCE, false)
    if (typeof found === 'string') {
      return { fault: found, path: setDatabaseAside(back, found, wall()) }
    }
    found.db.close()
    const salt = found.meta.get(SALT) ?? ''
    const text = await fingerprint(Buffer.from(salt, 'base64url'))
    if (text === undefined) return 'unknown'
    const isSame = comparePasswords(text, found.meta.get(FINGERPRINT) ?? '', heir)
    const valid = found.records.filter(({ grant }) => isSame(nameOfGrant(withName(grant, heir))))
    const known = new Set(held.map(({ grant }) => withName(grant, heir)))
    const records = valid.filter(({ grant }) => !known.has(withName(grant, heir)))
    file.write(true, () => {
      for (const record of records) file.put(record)
      if (meta.get(FINGERPRINT) === undefined) {
        file.setMeta(SALT, salt)
        file.setMeta(FINGERPRINT, text)
      }
      file.setMeta(TAKEN, markOf(back))
    })
    remove(back, file)
    return { taken: records.length, dropped: found.records.length - valid.length }
  } finally {
    file.close()
  }
}

/** Tells a file from another one, also from a later one with the same inode. */
function markOf(path: string): string {
  return `${fileIdentity(path)}:${statSync(path).mtimeMs}`
}

function remove(back: string, file: JournalFile): void {
  for (const path of [`${back}-wal`, `${back}-shm`, back]) if (existsSync(path)) rmSync(path)
  sync(dirname(back))
  file.write(true, () => file.setMeta(TAKEN, ''))
}
