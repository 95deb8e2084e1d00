import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { type JournaledStore, openJournaledStore } from './journaled-store.ts'
import { HOUR, present, SECOND } from './support.ts'

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

/** What a client and an operator see: which access tokens are valid, and the grants with the numbers of their tokens. */
function seen({ store }: JournaledStore, tokens: readonly IssuedTokens[]): unknown {
  const valid = tokens.filter(({ accessToken }) => store.identify(accessToken).kind === 'valid')
  const grants = store
    .grants()
    .map(({ id, accessTokens, refreshTokens }) => [id, accessTokens, refreshTokens])
  return { valid: valid.map(({ grant }) => grant), grants: grants.sort() }
}

test('H71 H102 a write-ahead log that ends at any byte holds what was done before that byte, and nothing in part', async () => {
  const dir = join(temporaryDirectory(), 'state')
  const policy = { capacity: 5, rotateRefresh: true }
  const first = openJournaledStore(dir, policy)
  const { store, clock } = first
  const log = join(dir, 'tokens.db-wal')
  const issued: IssuedTokens[] = []
  const note = (tokens: IssuedTokens | undefined): number => issued.push(present(tokens))
  const acts: readonly (() => unknown)[] = [
    () => note(store.issue('a', 'password')),
    () => note(store.issue('b', 'password')),
    () => note(store.refresh(present(issued[0]).refreshToken)),
    () => store.handOut({ name: '', label: 'probe', lifetime: HOUR }),
    () => store.revoke({ token: present(issued[1]).refreshToken }, 'test'),
    () => clock.advance(20 * SECOND),
    // The spent token is used again, so its grant is revoked.
    () => store.refresh(present(issued[0]).refreshToken),
    () => note(store.issue('c', 'password')),
    () => note(store.issue('d', 'password')),
    // Evicts the login before the last.
    () => note(store.issue('e', 'password')),
    () => store.revoke({ all: true }, 'test'),
    () => note(store.issue('f', 'password')),
  ]
  const states: { readonly end: number; readonly seen: unknown }[] = []
  const look = (): number => states.push({ end: readFileSync(log).length, seen: seen(first, issued) })
  look()
  for (const act of acts) {
    await act()
    look()
  }
  const [bytes, page] = [readFileSync(log), readFileSync(log).readUInt32BE(8)]
  const begin = present(states[0]).end
  // A frame is a head of 24 bytes and a page. So these are the ends of frames and of their heads, the bytes beside, and the middle.
  const ends = new Set<number>()
  for (let end = begin; end <= bytes.length; end += 24 + page)
    for (const at of [-1, 0, 1, 23, 24, 25, page / 2])
      if (end + at >= begin && end + at <= bytes.length) ends.add(end + at)
  expect(states.map(({ end }) => ends.has(end))).not.toContain(false)
  for (const end of ends) {
    const torn = join(temporaryDirectory(), 'state')
    mkdirSync(torn, { mode: 0o700 })
    copyFileSync(join(dir, 'tokens.db'), join(torn, 'tokens.db'))
    writeFileSync(join(torn, 'tokens.db-wal'), bytes.subarray(0, end))
    const restored = openJournaledStore(torn, { ...policy, clock })
    const last = states.findLast((state) => state.end <= end)
    expect(seen(restored, issued), `${end} bytes`).toEqual(last?.seen)
    expect(restored.reports.filter((report) => report !== 'copied')).toEqual([])
    restored.journal.close()
  }
})

test('a lock file with garbage does not prevent the start', () => {
  const { dir, accessToken } = closedFolder()
  writeFileSync(join(dir, 'tokens.lock'), 'garbage'.repeat(1000))
  const { store, reports } = openJournaledStore(dir)
  expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
  expect(reports).toEqual([])
})
