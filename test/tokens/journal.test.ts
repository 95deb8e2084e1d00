import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test, vi } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { openJournaledStore } from './journaled-store.ts'
import { DAY, HOUR, POLICY, present, SECOND, WEEK } from './support.ts'

const state = (): string => join(temporaryDirectory(), 'state')

function rows(dir: string): number {
  const db = new DatabaseSync(join(dir, 'tokens.db'), { readOnly: true })
  const count = db.prepare('SELECT count(*) AS n FROM tokens').get()?.n
  db.close()
  return Number(count)
}

describe('a restart', () => {
  test('C6 C7 keeps every token with its expiry, its grant and its client', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock })
    const pairs = [before.store.issue('a', 'password'), before.store.issue('b', 'password')]
    clock.advance(HOUR - 1)
    const grants = before.store.grants()
    before.journal.close()

    const { store, reports } = openJournaledStore(dir, { clock })
    expect(new Set(store.grants())).toEqual(new Set(grants))
    for (const { accessToken } of pairs) expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
    clock.advance(1)
    for (const { accessToken } of pairs) {
      expect(store.identify(accessToken)).toEqual({ kind: 'refused', cause: 'expired' })
    }
    clock.advance(WEEK - HOUR - 1)
    expect(store.refresh(present(pairs[0]).refreshToken)).toBeDefined()
    clock.advance(1)
    expect(store.refresh(present(pairs[0]).refreshToken)).toBeUndefined()
    expect(reports).toEqual([])
  })

  test('C7 drops tokens that expired while the sidecar was down', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock })
    const { accessToken, refreshToken } = before.store.issue('a', 'password')
    before.journal.close()
    clock.advance(HOUR)
    const { store, journal } = openJournaledStore(dir, { clock })
    expect(store.counts()).toEqual({ access: 0, refresh: 1 })
    expect(store.identify(accessToken)).toMatchObject({ kind: 'refused' })
    expect(store.refresh(refreshToken)).toBeDefined()
    journal.close()
    expect(rows(dir)).toBe(2)
  })

  test('C6 keeps the live refresh token of a grant that was refreshed in the millisecond of its login', () => {
    const dir = state()
    const before = openJournaledStore(dir, { rotateRefresh: true })
    const grants = Array.from({ length: 20 }, () => {
      const { refreshToken } = before.store.issue('a', 'password')
      return present(before.store.refresh(refreshToken))
    })
    before.journal.close()
    const { store } = openJournaledStore(dir, { rotateRefresh: true })
    expect(store.grants().map(({ refreshTokens }) => refreshTokens)).toEqual(Array(20).fill(1))
    for (const { refreshToken } of grants) expect(store.refresh(refreshToken)).toBeDefined()
  })

  test('C7 prolongs no token when the wall clock was set back', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock })
    const { accessToken, refreshToken } = before.store.issue('a', 'password')
    before.journal.close()
    clock.jumpWall(-30 * DAY)
    const { store } = openJournaledStore(dir, { clock })
    expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
    clock.advance(HOUR)
    expect(store.identify(accessToken)).toMatchObject({ kind: 'refused' })
    clock.advance(WEEK - HOUR)
    expect(store.refresh(refreshToken)).toBeUndefined()
  })

  test('C7 limits the rest of each lifetime to the configured lifetime', () => {
    const dir = state()
    const before = openJournaledStore(dir)
    const { accessToken } = before.store.issue('a', 'password')
    before.journal.close()
    const { store, clock } = openJournaledStore(dir, { accessLifetime: 60 * SECOND })
    clock.advance(60 * SECOND)
    expect(store.identify(accessToken)).toMatchObject({ kind: 'refused' })
  })

  test('C8 H102 restores no revoked token, in whatever way it was revoked', () => {
    const dir = state()
    const before = openJournaledStore(dir)
    const pairs = ['a', 'b', 'c', 'd'].map((client) => before.store.issue(client, 'password'))
    before.store.revoke({ client: 'a' }, 'test')
    before.store.revoke({ token: present(pairs[1]).refreshToken }, 'test')
    before.journal.close()
    const between = openJournaledStore(dir)
    const kinds = pairs.map(({ accessToken }) => between.store.identify(accessToken).kind)
    expect(kinds).toEqual(['refused', 'refused', 'valid', 'valid'])
    between.store.revoke({ all: true }, 'test')
    between.journal.close()
    expect(openJournaledStore(dir).store.counts()).toEqual({ access: 0, refresh: 0 })
  })

  test('C8 H102 after a crash restores no token of a revoked name, though it was evicted before', () => {
    const dir = state()
    const { store } = openJournaledStore(dir)
    for (const client of ['a', 'b', 'c']) store.issue(client, 'password', 'monitor')
    store.applyPolicy({ ...POLICY, capacity: 4 })
    expect(store.revoke({ name: 'monitor' }, 'test')).toBe(2)
    const copy = state()
    cpSync(dir, copy, { recursive: true })
    expect(openJournaledStore(copy).store.counts()).toEqual({ access: 0, refresh: 0 })
  })

  test('C8 H102 restores no revoked grant that had a single token left', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock })
    const { refreshToken } = before.store.issue('a', 'password')
    clock.advance(HOUR)
    expect(before.store.revoke({ token: refreshToken }, 'test')).toBe(1)
    before.journal.close()
    expect(openJournaledStore(dir, { clock }).store.refresh(refreshToken)).toBeUndefined()
  })

  test('H194 gives grants without a name to the heir for good: a later heir gets none of them', () => {
    const dir = state()
    const before = openJournaledStore(dir)
    before.store.issue('a', 'password')
    before.journal.close()
    const ids = ['admin', 'other'].map((heir) => {
      const { store, journal } = openJournaledStore(dir, { heir })
      const found = store.grants().map(({ id }) => id)
      journal.close()
      return found
    })
    expect(ids).toEqual([[expect.stringMatching(/^admin\.[0-9a-f]{16}$/)], ids[0]])
  })

  test('takes the grants for used in the order in which they last got a token', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock })
    const pairs = ['a', 'b', 'c', 'd', 'e'].map((client) => {
      clock.advance(SECOND)
      return before.store.issue(client, 'password')
    })
    for (const at of [3, 0, 2]) {
      clock.advance(SECOND)
      before.store.refresh(present(pairs[at]).refreshToken)
    }
    before.journal.close()
    const { store } = openJournaledStore(dir, { clock })
    expect(store.owners().map(({ client }) => client)).toEqual(['b', 'e', 'd', 'a', 'c'])
  })

  test('restores no evicted token, although there is room for it now', () => {
    const dir = state()
    const before = openJournaledStore(dir, { capacity: 4 })
    const [first, , last] = ['a', 'b', 'c'].map((client) => before.store.issue(client, 'password'))
    before.journal.close()
    const { store } = openJournaledStore(dir)
    expect(store.counts()).toEqual({ access: 2, refresh: 2 })
    expect(store.identify(present(first).accessToken)).toEqual({ kind: 'refused', cause: 'unknown' })
    expect(store.identify(present(last).accessToken)).toMatchObject({ kind: 'valid' })
  })

  test('C6 keeps which refresh tokens are spent, so that reuse still revokes the grant, and no other one', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock, rotateRefresh: true })
    const first = before.store.issue('a', 'password')
    const second = present(before.store.refresh(first.refreshToken))
    const other = before.store.issue('b', 'password')
    before.journal.close()
    clock.advance(10 * SECOND)
    const { store, journal } = openJournaledStore(dir, { clock, rotateRefresh: true })
    expect(store.counts()).toEqual({ access: 3, refresh: 2 })
    expect(store.refresh(first.refreshToken)).toBeUndefined()
    expect(store.refresh(second.refreshToken)).toBeUndefined()
    expect(store.identify(second.accessToken)).toEqual({ kind: 'refused', cause: 'revoked' })
    journal.close()
    const after = openJournaledStore(dir, { clock, rotateRefresh: true }).store
    expect(after.counts()).toEqual({ access: 1, refresh: 1 })
    expect(after.identify(other.accessToken)).toMatchObject({ kind: 'valid' })
  })

  test.each([
    ['with a longer grace', DAY, 11 * SECOND],
    ['with the clock a day back', 10 * SECOND, -DAY],
    ['with both', 2 * DAY, -DAY],
  ])(
    'C6 a restart %s gives no pair for a spent refresh token, and revokes the grant',
    (_, refreshGrace, jump) => {
      const dir = state()
      const clock = stillClock()
      const before = openJournaledStore(dir, { clock, rotateRefresh: true })
      const first = before.store.issue('a', 'password')
      const second = present(before.store.refresh(first.refreshToken))
      before.journal.close()
      clock.jumpWall(jump)
      // Rewritten from memory, as after a failure of the disk.
      const between = openJournaledStore(dir, { clock, rotateRefresh: true, refreshGrace })
      rmSync(dir, { recursive: true })
      between.store.sweep()
      between.journal.close()
      const { store, events } = openJournaledStore(dir, { clock, rotateRefresh: true, refreshGrace })
      expect(store.refresh(first.refreshToken)).toBeUndefined()
      expect(events.at(-1)).toEqual(['revoked', expect.anything(), 'refresh_token_reuse'])
      expect(store.identify(second.accessToken)).toEqual({ kind: 'refused', cause: 'revoked' })
    },
  )

  test('C6 a restart within the grace gives a retry a new pair, until the grace that had begun is over', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock, rotateRefresh: true })
    const { refreshToken } = before.store.issue('a', 'password')
    const second = present(before.store.refresh(refreshToken))
    before.journal.close()
    clock.advance(9 * SECOND)
    const { store } = openJournaledStore(dir, { clock, rotateRefresh: true, refreshGrace: HOUR })
    const retried = present(store.refresh(refreshToken))
    expect(store.refresh(refreshToken)).toEqual(retried)
    // Which of its requests is answered last does not matter to the client.
    expect(store.refresh(second.refreshToken)).toEqual(retried)
    clock.advance(SECOND)
    expect(store.refresh(refreshToken)).toBeUndefined()
    expect(store.identify(retried.accessToken)).toEqual({ kind: 'refused', cause: 'revoked' })
  })

  test('with a lower capacity evicts the grants whose latest token is the oldest', () => {
    const dir = state()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock })
    const pairs = ['a', 'b', 'c', 'd'].map((client) => {
      clock.advance(1)
      return before.store.issue(client, 'password')
    })
    clock.advance(1)
    before.store.refresh(present(pairs[0]).refreshToken)
    before.journal.close()
    const { store, journal } = openJournaledStore(dir, { clock, capacity: 5 })
    expect(store.grants().map((grant) => grant.client)).toEqual(['d', 'a'])
    journal.close()
    expect(rows(dir)).toBe(5)
  })

  test('keeps the metadata, such as the fingerprint of the password', () => {
    const dir = state()
    const before = openJournaledStore(dir)
    expect(before.journal.getMeta('password')).toBeUndefined()
    before.journal.setMeta('password', 'old')
    before.journal.setMeta('password', 'new')
    before.store.revoke({ all: true }, 'test')
    before.journal.close()
    expect(openJournaledStore(dir).journal.getMeta('password')).toBe('new')
  })
})

test('H74 only the owner can access the folder and its files, and there are no other files', () => {
  const dir = state()
  const { store } = openJournaledStore(dir)
  store.issue('a', 'password')
  const mode = (name: string): number => statSync(join(dir, name)).mode & 0o777
  expect(mode('.')).toBe(0o700)
  expect(readdirSync(dir).sort()).toEqual(['tokens.db', 'tokens.db-wal', 'tokens.lock'])
  for (const name of readdirSync(dir)) expect(mode(name)).toBe(0o600)
})

test('a store that is closed leaves its folder to the next one, whatever still comes', () => {
  const dir = state()
  const { store, journal, clock } = openJournaledStore(dir)
  store.issue('a', 'password')
  journal.close()
  store.issue('b', 'password')
  clock.advance(60 * SECOND)
  store.sweep()
  expect(openJournaledStore(dir).store.grants()).toMatchObject([{ client: 'a' }])
})

test('an existing folder keeps its mode', () => {
  const dir = state()
  mkdirSync(dir, { mode: 0o750 })
  openJournaledStore(dir)
  expect(statSync(dir).mode & 0o777).toBe(0o750)
})

test('C9 no token is on the disk, neither as text nor as bytes', () => {
  const dir = state()
  const { store, journal } = openJournaledStore(dir, { rotateRefresh: true })
  const first = store.issue('a', 'password')
  const second = present(store.refresh(first.refreshToken))
  store.refresh(first.refreshToken)
  journal.maintain()
  const bytes = Buffer.concat(readdirSync(dir).map((name) => readFileSync(join(dir, name))))
  for (const { accessToken, refreshToken } of [first, second]) {
    for (const token of [accessToken, refreshToken]) {
      expect(bytes.includes(token)).toBe(false)
      expect(bytes.includes(Buffer.from(token, 'base64url'))).toBe(false)
    }
  }
})

test('expired tokens are removed from the disk in batches', () => {
  const dir = state()
  const { store, clock, journal } = openJournaledStore(dir)
  for (let i = 0; i < 20; i++) store.issue('a', 'password')
  const size = (): number => statSync(join(dir, 'tokens.db-wal')).size
  clock.advance(HOUR)
  const before = size()
  store.sweep()
  expect(size()).toBeGreaterThan(before)
  clock.advance(WEEK - HOUR)
  store.issue('a', 'password')
  journal.close()
  expect(rows(dir)).toBe(2)
})

test('expired tokens are deleted from the disk once a minute, or when they are 500: a write wears the flash', () => {
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
  closeLater(() => void exec.mockRestore())
  const { store, clock } = openJournaledStore(state(), { accessLifetime: SECOND })
  /** How often the store has written since the last call. */
  function writes(): number {
    const count = exec.mock.calls.filter(([statement]) => statement.includes('BEGIN IMMEDIATE')).length
    exec.mockClear()
    return count
  }
  function expire(count: number): number {
    for (let i = 0; i < count; i++) store.issue('a', 'password')
    writes()
    clock.advance(SECOND)
    store.sweep()
    return writes()
  }
  expect(expire(20)).toBe(0)
  clock.advance(58_999)
  store.sweep()
  expect(writes()).toBe(0)
  clock.advance(1)
  store.sweep()
  expect(writes()).toBe(1)
  expect(expire(499)).toBe(0)
  expect(expire(500)).toBe(1)
})

test('C8 H102 a revocation and a fact wait for the disk, a login does not', () => {
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
  closeLater(() => void exec.mockRestore())
  const { store, journal } = openJournaledStore(state())
  const modeOf = (write: () => unknown): string | undefined => {
    exec.mockClear()
    write()
    const begun = exec.mock.calls.map(([statement]) => /synchronous = (\w+); BEGIN/.exec(statement)?.[1])
    return begun.find((mode) => mode !== undefined)
  }
  expect(modeOf(() => store.issue('a', 'password'))).toBe('NORMAL')
  expect(modeOf(() => store.revoke({ client: 'a' }, 'test'))).toBe('FULL')
  expect(modeOf(() => store.revoke({ all: true }, 'test'))).toBe('FULL')
  expect(modeOf(() => journal.setMeta('key', 'value'))).toBe('FULL')
})

test('a login writes less than 16 KiB to the write-ahead log, to limit flash wear', () => {
  const dir = state()
  const { store } = openJournaledStore(dir)
  const log = join(dir, 'tokens.db-wal')
  const before = existsSync(log) ? statSync(log).size : 0
  for (let i = 0; i < 100; i++) store.issue('192.0.2.1', 'password')
  expect((statSync(log).size - before) / 100).toBeLessThan(16_384)
})

describe('a copy of the token file', () => {
  /** A closed folder with a token, and a revoked token that the backup of the folder still has. */
  function backedUp() {
    const dir = state()
    const clock = stillClock()
    const { store, journal } = openJournaledStore(dir, { clock })
    store.issue('a', 'password')
    const { refreshToken } = store.issue('b', 'password')
    journal.close()
    const backup = state()
    cpSync(dir, backup, { recursive: true })
    const after = openJournaledStore(dir, { clock })
    expect(after.store.revoke({ token: refreshToken }, 'test')).toBeGreaterThan(0)
    expect(after.reports).toEqual([])
    after.journal.close()
    return { dir, backup, clock }
  }

  test('C8 is reported once when a backup was restored, and lasts until all tokens are revoked', () => {
    const { dir, backup, clock } = backedUp()
    // The file system may give the copy the inode of the deleted file.
    rmSync(dir, { recursive: true })
    cpSync(backup, dir, { recursive: true })
    const at = clock.wall()
    const first = openJournaledStore(dir, { clock })
    expect([first.reports, first.journal.copiedAt()]).toEqual([['copied'], at])
    first.journal.close()
    clock.advance(HOUR)
    const second = openJournaledStore(dir, { clock })
    expect([second.reports, second.journal.copiedAt()]).toEqual([[], at])
    second.store.revoke({ all: true }, 'test')
    expect(second.journal.copiedAt()).toBeUndefined()
    second.store.issue('c', 'password')
    second.journal.close()
    const third = openJournaledStore(dir, { clock })
    expect([third.reports, third.journal.copiedAt()]).toEqual([[], undefined])
  })

  test('C8 is over when its logins have expired', () => {
    const { backup, clock } = backedUp()
    const { journal } = openJournaledStore(backup, { clock })
    clock.advance(WEEK - 1)
    expect(journal.copiedAt()).toBeDefined()
    clock.advance(1)
    expect(journal.copiedAt()).toBeUndefined()
  })

  test('C8 is not reported without a live token', () => {
    const { backup, clock } = backedUp()
    clock.advance(WEEK)
    const { reports, journal } = openJournaledStore(backup, { clock })
    expect([reports, journal.copiedAt()]).toEqual([[], undefined])
  })

  test.each([
    ['a renamed folder', (dir: string) => renameSync(dir, `${dir}-2`)],
    [
      'a file that has no identity yet',
      (dir: string) => {
        cpSync(dir, `${dir}-2`, { recursive: true })
        const db = new DatabaseSync(join(`${dir}-2`, 'tokens.db'))
        db.exec("DELETE FROM meta WHERE key = 'file_identity'")
        db.close()
      },
    ],
    [
      'a file system that has lost the times of creation',
      (dir: string) => {
        renameSync(dir, `${dir}-2`)
        const db = new DatabaseSync(join(`${dir}-2`, 'tokens.db'))
        db.exec("UPDATE meta SET value = substr(value, 1, instr(value, ':')) WHERE key = 'file_identity'")
        db.close()
      },
    ],
  ])('is not reported for %s', (_what, move) => {
    const { dir, clock } = backedUp()
    move(dir)
    const { store, reports } = openJournaledStore(`${dir}-2`, { clock })
    expect(store.counts()).toEqual({ access: 1, refresh: 1 })
    expect(reports).toEqual([])
  })
})
