import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { PASSWORD_CHANGED } from '../../src/tokens/revocation.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { openJournaledStore } from './journaled-store.ts'
import { HOUR, POLICY } from './support.ts'

const MANY = 1200
const REVOKED = { kind: 'refused', cause: 'revoked' }

test.each([
  ['all tokens', { all: true }],
  ['those of a name', { name: 'monitor' }],
] as const)(
  'C8 many grants of a changed password end at once, and are removed over several turns: %s',
  async (_what, which) => {
    const dir = join(temporaryDirectory(), 'state')
    const { store, journal } = openJournaledStore(dir, { capacity: 4 * MANY })
    const old = Array.from({ length: MANY }, () => store.issue('a', 'password', 'monitor'))
    expect(store.revoke(which, PASSWORD_CHANGED)).toBe(MANY)

    // In the same turn no token of it is accepted in any way.
    for (const { accessToken, refreshToken = '' } of old) {
      expect(store.identify(accessToken)).toEqual(REVOKED)
      expect(store.refresh(refreshToken)).toBeUndefined()
    }
    expect([store.grants(), store.owners(), store.recentGrants(5).grants]).toEqual([[], [], []])
    expect(store.revoke({ grant: old[0]?.grant ?? '' }, 'operator')).toBe(0)
    const next = store.issue('a', 'password', 'monitor')
    const left = [store.counts().access]
    while (left.at(-1) !== 1) {
      await nextTurn()
      left.push(store.counts().access)
    }
    // At most 500 of them in a turn.
    expect(left.every((count, i) => i === 0 || (left[i - 1] ?? 0) - count <= 500)).toBe(true)
    expect(store.identify(old[0]?.accessToken ?? '')).toEqual(REVOKED)

    await store.removed()
    journal.close()
    const again = openJournaledStore(dir, { capacity: 4 * MANY }).store
    expect(again.grants().map(({ id }) => id)).toEqual([next.grant])
  },
)

test('C8 revoked grants that make room for a new login leave the file, too', async () => {
  const dir = join(temporaryDirectory(), 'state')
  const { store, journal } = openJournaledStore(dir, { capacity: 2 * MANY })
  for (let i = 0; i < MANY; i += 1) store.issue('a', 'password', 'monitor')
  store.revoke({ name: 'monitor' }, PASSWORD_CHANGED)
  const next = store.issue('a', 'password', 'monitor')
  await store.removed()
  journal.close()
  const again = openJournaledStore(dir, { capacity: 2 * MANY }).store
  expect(again.grants().map(({ id }) => id)).toEqual([next.grant])
})

test('C8 a new login in a full store evicts no login of another name while many of a changed password are removed', () => {
  const capacity = 2 * (MANY + 1)
  const { store, events } = openJournaledStore(join(temporaryDirectory(), 'state'), { capacity })
  const other = store.issue('a', 'password', 'admin')
  const old = Array.from({ length: MANY }, () => store.issue('a', 'password', 'monitor'))
  store.revoke({ name: 'monitor' }, PASSWORD_CHANGED)
  const next = store.issue('a', 'password', 'monitor')
  for (const { accessToken } of [other, next])
    expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
  for (const { accessToken } of old) expect(store.identify(accessToken)).toEqual(REVOKED)
  expect(JSON.stringify(events)).not.toContain('evicted')
})

test('C8 a stop within the removal keeps the former fingerprint, which revokes the rest at the next start', async () => {
  const { store, journal } = openJournaledStore(join(temporaryDirectory(), 'state'), { capacity: 4 * MANY })
  for (let i = 0; i < MANY; i += 1) store.issue('a', 'password', 'monitor')
  store.revoke({ name: 'monitor' }, PASSWORD_CHANGED)
  store.close()
  journal.close()
  await store.removed()
  expect(store.counts().access).toBe(MANY)
})

test('C8 H102 a reload that bounds logins writes no token back that is revoked and not removed yet', async () => {
  const dir = join(temporaryDirectory(), 'state')
  const { store, journal } = openJournaledStore(dir, { capacity: 4 * MANY })
  for (let i = 0; i < MANY; i += 1) store.issue('a', 'password')
  expect(store.revoke({ all: true }, 'operator')).toBe(MANY)
  store.applyPolicy({ ...POLICY, capacity: 4 * MANY, grantLifetime: HOUR })
  await store.removed()
  journal.close()
  expect(openJournaledStore(dir, { capacity: 4 * MANY }).store.grants()).toEqual([])
})

test('C8 issued grants that are revoked and not removed yet are not listed, and make room for others', () => {
  const { store } = openJournaledStore(join(temporaryDirectory(), 'state'), { capacity: 4 * MANY, issued: 1 })
  const handout = { name: '', label: 'mine', lifetime: HOUR }
  store.handOut(handout)
  for (let i = 0; i < MANY; i += 1) store.issue('a', 'password')
  expect(store.revoke({ all: true }, 'operator')).toBe(MANY + 1)
  expect(store.issued()).toEqual([])
  expect(store.recentGrants(5)).toEqual({ total: 0, grants: [] })
  expect(store.handOut(handout)).toMatchObject({ accessToken: expect.any(String) })
  expect(store.issued()).toHaveLength(1)
})
