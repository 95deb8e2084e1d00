import { copyFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { openJournaledStore } from './journaled-store.ts'
import { present } from './support.ts'

/** Makes a folder with `count` grants whose journal was closed cleanly. */
function closedFolder(count = 50): { dir: string; path: string; accessToken: string; tokens: string[] } {
  const dir = join(temporaryDirectory(), 'state')
  const { store, journal } = openJournaledStore(dir)
  const tokens = Array.from({ length: count }, () => store.issue('192.0.2.1', 'password').accessToken)
  journal.close()
  return { dir, path: join(dir, 'tokens.db'), accessToken: present(tokens[0]), tokens }
}

const asideIn = (dir: string): string[] => readdirSync(dir).filter((name) => /\.db\.\w+-\d{4}-/.test(name))

describe('H72 a database that cannot be used is set aside with the time in its name, and the store starts empty', () => {
  const faults: [string, string, (path: string) => void][] = [
    ['garbage', 'damaged', (path) => writeFileSync(path, 'not a database at all\n'.repeat(500))],
    ['empty', 'damaged', (path) => truncateSync(path, 0)],
    ['truncated in the middle', 'damaged', (path) => truncateSync(path, readFileSync(path).length / 2)],
    ['truncated in its header', 'damaged', (path) => truncateSync(path, 50)],
    [
      'overwritten after its header',
      'damaged',
      (path) => writeFileSync(path, readFileSync(path).fill(0xa5, 100)),
    ],
    ['of a newer version', 'newer', (path) => change(path, 'PRAGMA user_version = 99')],
    ['of another program', 'foreign', (path) => change(path, 'PRAGMA application_id = 1')],
    ['without its table', 'damaged', (path) => change(path, 'DROP TABLE tokens')],
    ['with a changed row', 'damaged', (path) => change(path, 'UPDATE tokens SET expires = expires + 1')],
  ]

  function change(path: string, sql: string): void {
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
  }

  test.each(faults)('%s', (_, fault, damage) => {
    const { dir, path, accessToken } = closedFolder()
    damage(path)
    const bytes = readFileSync(path)
    const { store, reports, journal } = openJournaledStore(dir)
    expect(reports).toEqual([`set aside: ${fault}`])
    const aside = asideIn(dir).filter((name) => !name.endsWith('-wal'))
    expect(aside).toHaveLength(1)
    expect(readFileSync(join(dir, present(aside[0]))).equals(bytes)).toBe(true)
    expect(store.identify(accessToken)).toEqual({ kind: 'refused', cause: 'unknown' })
    const fresh = store.issue('a', 'password')
    journal.close()
    const again = openJournaledStore(dir)
    expect(again.reports).toEqual([])
    expect(again.store.identify(fresh.accessToken)).toMatchObject({ kind: 'valid' })
  })

  test('does not overwrite another one of the same time', () => {
    const { dir, path } = closedFolder()
    for (let i = 0; i < 3; i++) {
      writeFileSync(path, `garbage ${i}`)
      openJournaledStore(dir).journal.close()
    }
    expect(asideIn(dir).length).toBeGreaterThanOrEqual(3)
  })
})

test('H72 any flipped bit is harmless or detected: it causes no crash and no token that was not issued', () => {
  const { dir, path, tokens } = closedFolder(20)
  const sound = readFileSync(path)
  fc.assert(
    fc.property(fc.nat(sound.length * 8 - 1), (bit) => {
      const bytes = Buffer.from(sound)
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      writeFileSync(path, bytes)
      const { store, journal, reports } = openJournaledStore(dir)
      const alive = tokens.filter((token) => store.identify(token).kind === 'valid').length
      const fresh = store.issue('a', 'password')
      journal.close()
      // After one that was set aside, the next run writes the same bytes into another file.
      const faults = reports.filter((report) => report !== 'copied')
      if (faults.length === 0) expect(alive).toBe(20)
      else {
        expect(faults).toEqual([expect.stringMatching(/^set aside: /)])
        expect(alive).toBe(0)
      }
      const again = openJournaledStore(dir)
      expect(again.store.identify(fresh.accessToken)).toMatchObject({ kind: 'valid' })
      again.journal.close()
    }),
    { numRuns: 60, examples: [[18 * 8 + 2], [19 * 8 + 2], [0], [16 * 8], [60 * 8 + 31]] },
  )
})

test('H72 a write-ahead log without its database is not replayed into a new one', () => {
  const dir = join(temporaryDirectory(), 'state')
  const { store, journal } = openJournaledStore(dir)
  const { accessToken } = store.issue('a', 'password')
  copyFileSync(join(dir, 'tokens.db-wal'), join(dir, 'copy'))
  journal.close()
  rmSync(join(dir, 'tokens.db'))
  copyFileSync(join(dir, 'copy'), join(dir, 'tokens.db-wal'))
  const again = openJournaledStore(dir)
  expect(again.store.identify(accessToken)).toMatchObject({ kind: 'refused' })
  expect(again.reports).toEqual([])
})

test('a lock file with garbage does not prevent the start', () => {
  const { dir, accessToken } = closedFolder()
  writeFileSync(join(dir, 'tokens.lock'), 'garbage'.repeat(1000))
  const { store, reports } = openJournaledStore(dir)
  expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
  expect(reports).toEqual([])
})
