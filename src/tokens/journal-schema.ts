import type { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { TokenRecord } from './token-journal.ts'

/** Written into the file's header, so that somebody else's database is not taken for ours. */
const APPLICATION_ID = 0x506f7374

/** `MIGRATIONS[n]` leads from version n to n + 1; a new file takes them all. Never change one that was released. */
const MIGRATIONS: readonly ((db: DatabaseSync) => void)[] = [
  (db) => {
    db.exec(`
      CREATE TABLE tokens (
        digest BLOB PRIMARY KEY,
        grant_id TEXT NOT NULL,
        client TEXT NOT NULL,
        granted INTEGER NOT NULL,
        kind TEXT NOT NULL,
        issued INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        spent INTEGER
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
      PRAGMA application_id = ${APPLICATION_ID};
    `)
  },
  // SQLite sees damage to its structure, not to what a row says: a checksum in each row shows that, too.
  (db) => {
    db.exec('ALTER TABLE tokens ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0')
    const update = db.prepare('UPDATE tokens SET checksum = ? WHERE digest = ?')
    for (const row of db.prepare('SELECT * FROM tokens').all()) {
      const record = parseRecord(row)
      if (record !== undefined) update.run(checksum(record), Buffer.from(record.digest, 'base64url'))
    }
  },
]

const SCHEMA_VERSION = MIGRATIONS.length

export type Version = 'current' | 'older' | 'newer' | 'foreign'

function pragma(db: DatabaseSync, name: string): number {
  const value = db.prepare(`PRAGMA ${name}`).get()?.[name]
  return typeof value === 'number' ? value : -1
}

export function versionOf(db: DatabaseSync): Version {
  const version = pragma(db, 'user_version')
  if (pragma(db, 'application_id') !== APPLICATION_ID || version < 1) return 'foreign'
  if (version === SCHEMA_VERSION) return 'current'
  return version < SCHEMA_VERSION ? 'older' : 'newer'
}

/** Brings a file of any earlier version, or an empty one, to the current version; in one step or not at all. */
export function migrate(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    for (const step of MIGRATIONS.slice(pragma(db, 'user_version'))) step(db)
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`)
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

/** Reading all rows costs time in proportion to the file anyway; past this size the structure check is left out. */
const CHECKED_PAGES = 16_384

/** Whether SQLite finds the file well formed. Some 10 ms for the default capacity; bounded for any. */
export function isWellFormed(db: DatabaseSync): boolean {
  const pages = pragma(db, 'page_count')
  if (pages < 1) return false
  if (pages > CHECKED_PAGES) return true
  const rows = db.prepare('PRAGMA quick_check(1)').all()
  return rows.length === 1 && rows[0]?.quick_check === 'ok'
}

export function checksum(record: TokenRecord): number {
  const { digest, grant, client, granted, kind, issued, expires, spent } = record
  return crc32([digest, grant, client, granted, kind, issued, expires, spent].join('\n'))
}

function parseRecord(row: Record<string, unknown>): TokenRecord | undefined {
  const { digest, grant_id: grant, client, granted, kind, issued, expires, spent } = row
  if (!(digest instanceof Uint8Array) || typeof grant !== 'string' || typeof client !== 'string')
    return undefined
  if (typeof granted !== 'number' || typeof issued !== 'number' || typeof expires !== 'number')
    return undefined
  if (kind !== 'access' && kind !== 'refresh') return undefined
  if (spent !== null && typeof spent !== 'number') return undefined
  return {
    digest: Buffer.from(digest).toString('base64url'),
    grant,
    client,
    granted,
    kind,
    issued,
    expires,
    spent,
  }
}

/** Every token in the file, or `undefined` when one of them is not what was written. */
export function readRecords(db: DatabaseSync): TokenRecord[] | undefined {
  const records: TokenRecord[] = []
  for (const row of db.prepare('SELECT * FROM tokens').iterate()) {
    const record = parseRecord(row)
    if (record === undefined || checksum(record) !== row.checksum) return undefined
    records.push(record)
  }
  return records
}

export function readMeta(db: DatabaseSync): Map<string, string> {
  const rows = db.prepare('SELECT key, value FROM meta').all()
  return new Map(rows.map((row) => [String(row.key), String(row.value)]))
}
