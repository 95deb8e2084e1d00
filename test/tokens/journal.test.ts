import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { openBench } from './journal-bench.ts'
import { DAY, HOUR, present, SECOND, WEEK } from './support.ts'

const state = (): string => join(temporaryDirectory(), 'state')

const SCHEDULE = '/proc/thread-self/schedstat'

/** Of this thread (ms): all time but that in which it could have run and another had the processor, where the system tells. */
function ownTime(): number {
  const [, waited = '0'] = existsSync(SCHEDULE) ? readFileSync(SCHEDULE, 'latin1').split(' ') : []
  return performance.now() - Number(waited) / 1e6
}

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
    const before = openBench(dir, { clock })
    const pairs = [before.store.issue('a'), before.store.issue('b')]
    clock.advance(HOUR - 1)
    const grants = before.store.grants()
    before.journal.close()

    const { store, reports } = openBench(dir, { clock })
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

  test('C7 drops what expired while the sidecar was down', () => {
    const dir = state()
    const clock = stillClock()
    const before = openBench(dir, { clock })
    const { accessToken, refreshToken } = before.store.issue('a')
    before.journal.close()
    clock.advance(HOUR)
    const { store } = openBench(dir, { clock })
    expect(store.counts()).toEqual({ access: 0, refresh: 1 })
    expect(store.identify(accessToken)).toMatchObject({ kind: 'refused' })
    expect(store.refresh(refreshToken)).toBeDefined()
  })

  test('C7 gives no token more than its lifetime when the wall clock was set back', () => {
    const dir = state()
    const clock = stillClock()
    const before = openBench(dir, { clock })
    const { accessToken, refreshToken } = before.store.issue('a')
    before.journal.close()
    clock.jumpWall(-30 * DAY)
    const { store } = openBench(dir, { clock })
    expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
    clock.advance(HOUR)
    expect(store.identify(accessToken)).toMatchObject({ kind: 'refused' })
    clock.advance(WEEK - HOUR)
    expect(store.refresh(refreshToken)).toBeUndefined()
  })

  test('C7 gives no token more than the lifetime configured now', () => {
    const dir = state()
    const before = openBench(dir)
    const { accessToken } = before.store.issue('a')
    before.journal.close()
    const { store, clock } = openBench(dir, { accessLifetime: 60 * SECOND })
    clock.advance(60 * SECOND)
    expect(store.identify(accessToken)).toMatchObject({ kind: 'refused' })
  })

  test('C8 brings back nothing that was revoked, whichever way', () => {
    const dir = state()
    const before = openBench(dir)
    const pairs = ['a', 'b', 'c', 'd'].map((client) => before.store.issue(client))
    before.store.revoke({ client: 'a' }, 'test')
    before.store.revoke({ token: present(pairs[1]).refreshToken }, 'test')
    before.journal.close()
    const between = openBench(dir)
    const kinds = pairs.map(({ accessToken }) => between.store.identify(accessToken).kind)
    expect(kinds).toEqual(['refused', 'refused', 'valid', 'valid'])
    between.store.revoke({ all: true }, 'test')
    between.journal.close()
    expect(openBench(dir).store.counts()).toEqual({ access: 0, refresh: 0 })
  })

  test('C6 remembers which refresh tokens were spent, so that reuse still revokes the grant', () => {
    const dir = state()
    const clock = stillClock()
    const before = openBench(dir, { clock, rotateRefresh: true })
    const first = before.store.issue('a')
    const second = present(before.store.refresh(first.refreshToken))
    before.journal.close()
    clock.advance(10 * SECOND)
    const { store } = openBench(dir, { clock, rotateRefresh: true })
    expect(store.counts()).toEqual({ access: 2, refresh: 1 })
    expect(store.refresh(first.refreshToken)).toBeUndefined()
    expect(store.refresh(second.refreshToken)).toBeUndefined()
    expect(store.identify(second.accessToken)).toEqual({ kind: 'refused', cause: 'revoked' })
  })

  test('evicts the grants that got a token longest ago when there is less room than before', () => {
    const dir = state()
    const clock = stillClock()
    const before = openBench(dir, { clock })
    const pairs = ['a', 'b', 'c', 'd'].map((client) => {
      clock.advance(1)
      return before.store.issue(client)
    })
    clock.advance(1)
    before.store.refresh(present(pairs[0]).refreshToken)
    before.journal.close()
    const { store, journal } = openBench(dir, { clock, capacity: 5 })
    expect(store.grants().map((grant) => grant.client)).toEqual(['d', 'a'])
    journal.close()
    expect(rows(dir)).toBe(5)
  })

  test('keeps small facts, such as which password the tokens belong to', () => {
    const dir = state()
    const before = openBench(dir)
    expect(before.journal.getMeta('password')).toBeUndefined()
    before.journal.setMeta('password', 'old')
    before.journal.setMeta('password', 'new')
    before.store.revoke({ all: true }, 'test')
    before.journal.close()
    expect(openBench(dir).journal.getMeta('password')).toBe('new')
  })
})

test('H74 the files are the owner’s alone, the folder too, and nothing else is left behind', () => {
  const dir = state()
  const { store } = openBench(dir)
  store.issue('a')
  const mode = (name: string): number => statSync(join(dir, name)).mode & 0o777
  expect(mode('.')).toBe(0o700)
  expect(readdirSync(dir).sort()).toEqual(['tokens.db', 'tokens.db-wal', 'tokens.lock'])
  for (const name of readdirSync(dir)) expect(mode(name)).toBe(0o600)
})

test('a folder that was there before keeps its mode', () => {
  const dir = state()
  mkdirSync(dir, { mode: 0o750 })
  openBench(dir)
  expect(statSync(dir).mode & 0o777).toBe(0o750)
})

test('C9 neither a token nor anything it could be read from is ever on the disk', () => {
  const dir = state()
  const { store, journal } = openBench(dir, { rotateRefresh: true })
  const first = store.issue('a')
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

test('what expires leaves the disk in batches, not with a write each', () => {
  const dir = state()
  const { store, clock, journal } = openBench(dir)
  for (let i = 0; i < 20; i++) store.issue('a')
  const size = (): number => statSync(join(dir, 'tokens.db-wal')).size
  clock.advance(HOUR)
  const before = size()
  store.sweep()
  expect(size()).toBeGreaterThan(before)
  clock.advance(WEEK - HOUR)
  store.issue('a')
  journal.close()
  expect(rows(dir)).toBe(2)
})

test('flash wear: a login writes less than 16 KiB to the log', () => {
  const dir = state()
  const { store } = openBench(dir)
  const log = join(dir, 'tokens.db-wal')
  const before = existsSync(log) ? statSync(log).size : 0
  for (let i = 0; i < 100; i++) store.issue('192.0.2.1')
  expect((statSync(log).size - before) / 100).toBeLessThan(16_384)
})

test('200 logins hold the event loop for less than 5 ms at the 99th percentile', async () => {
  const { store } = openBench(state())
  let quiet = Number.POSITIVE_INFINITY
  // A busy machine adds its own delays, never takes any away: the best of some tries is the code's.
  for (let attempt = 0; attempt < 10 && quiet >= 5; attempt++) {
    const turns: number[] = []
    for (let i = 0, last = ownTime(); i < 200; i++) {
      store.issue('a')
      if (i % 50 === 0) store.sweep()
      await setImmediate()
      const now = ownTime()
      turns.push(now - last)
      last = now
    }
    quiet = Math.min(quiet, turns.sort((a, b) => a - b)[197] ?? quiet)
  }
  expect(quiet).toBeLessThan(5)
}, 60_000)
