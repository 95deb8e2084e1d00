import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { type IssuedGrant, unreplaced } from '../../src/tokens/handout.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { type JournaledStore, openJournaledStore } from './journaled-store.ts'
import { createTestStore, DAY, HOUR, SECOND, type TestStore } from './support.ts'

const VALID = { kind: 'valid' }
const refused = (cause: string) => ({ kind: 'refused', cause })

/** Hands out a token; fails unless the store issues it. */
function handOut(
  { store }: Pick<TestStore, 'store'>,
  { label = 'probe', lifetime = 90 * DAY, name = '' } = {},
) {
  const result = store.handOut({ name, label, lifetime })
  if (!('accessToken' in result)) throw new Error('the store refused')
  return result
}

describe('H292 an issued grant', () => {
  test('has one access token for as long as it was issued, and no refresh token', () => {
    const opened = createTestStore()
    const { store, clock } = opened
    const { accessToken, grant, expiresAt } = handOut(opened, { name: 'monitor' })
    expect(grant).toMatch(/^monitor\.[\da-f]{16}$/)
    expect(expiresAt - clock.wall()).toBe(90 * DAY)
    expect(store.grants()).toMatchObject([
      { id: grant, label: 'probe', client: 'operator', accessTokens: 1, refreshTokens: 0, expiresAt },
    ])
    expect(store.refresh(accessToken)).toBeUndefined()
    clock.advance(90 * DAY - 1)
    expect(store.identify(accessToken)).toEqual({ ...VALID, grant })
    clock.advance(1)
    expect(store.identify(accessToken)).toEqual(refused('expired'))
    expect([store.issued(), store.grants()]).toEqual([[], []])
  })

  test('is evicted by no login and no reload, and takes no login its room', () => {
    const opened = createTestStore({ capacity: 4 })
    const { store, events } = opened
    const tokens = Array.from({ length: 10 }, () => handOut(opened).accessToken)
    const [first, second] = [store.issue('a', 'password'), store.issue('b', 'password')]
    expect(events.filter((event) => String(event).startsWith('evicted'))).toEqual([])
    for (const { accessToken } of [first, second]) expect(store.identify(accessToken)).toMatchObject(VALID)
    for (let i = 0; i < 50; i++) store.issue('c', 'password')
    store.applyPolicy({
      issued: 0,
      capacity: 2,
      accessLifetime: 1,
      refreshLifetime: 1,
      rotateRefresh: true,
      refreshGrace: 0,
    })
    for (const token of tokens) expect(store.identify(token)).toMatchObject(VALID)
    expect(store.counts()).toEqual({ access: 1, refresh: 1 })
    expect(store.recentGrants(3)).toMatchObject({ total: 11, grants: [{ label: 'probe' }, {}, {}] })
  })

  test('is revoked alone, with all, and with its name, by its own token, and then its place is free', () => {
    const opened = createTestStore({ issued: 1 })
    const { store } = opened
    const one = handOut(opened, { name: 'monitor' })
    for (const which of [{ grant: one.grant }, { all: true }, { name: 'monitor' }] as const) {
      const { accessToken, grant } = store.issued().length === 0 ? handOut(opened, { name: 'monitor' }) : one
      expect(store.revoke('grant' in which ? { grant } : which, 'operator')).toBe(1)
      expect(store.identify(accessToken)).toEqual(refused('revoked'))
    }
    const { accessToken } = handOut(opened)
    expect(store.revoke({ token: accessToken }, 'client')).toBe(1)
    expect(store.identify(accessToken)).toEqual(refused('revoked'))
  })
})

test('H293 past the bound none is issued, and the one that was used longest ago is named', () => {
  const opened = createTestStore({ issued: 3 })
  const { store, clock } = opened
  const [first, second, third] = [1, 2, 3].map(() => {
    clock.advance(SECOND)
    return handOut(opened)
  })
  const full = () => store.handOut({ name: '', label: 'probe', lifetime: HOUR })
  // None was used yet: then the oldest.
  expect(full()).toMatchObject({ longestUnused: { id: first?.grant, usedAt: null } })
  for (const used of [third, first, second]) {
    clock.advance(SECOND)
    store.identify(used?.accessToken ?? '')
  }
  expect(full()).toMatchObject({ longestUnused: { id: third?.grant } })
  expect(store.issued()).toHaveLength(3)
  clock.advance(90 * DAY)
  expect(full()).toHaveProperty('accessToken')
  store.applyPolicy({
    issued: 0,
    capacity: 9,
    accessLifetime: 1,
    refreshLifetime: 1,
    rotateRefresh: true,
    refreshGrace: 0,
  })
  expect(full()).toMatchObject({ longestUnused: { label: 'probe' } })
})

describe('H294 over a restart', () => {
  function restarted(before: JournaledStore, dir: string, options: object = {}): JournaledStore {
    before.journal.close()
    return openJournaledStore(dir, { clock: before.clock, ...options })
  }

  test('an issued token keeps its label and its end, whatever the lifetimes and the capacity of logins are now', () => {
    const dir = temporaryDirectory()
    const before = openJournaledStore(dir)
    const handedOut = handOut(before, { label: 'Prüfstand, "2" – 左' })
    const login = before.store.issue('a', 'password')
    before.clock.advance(DAY)
    const after = restarted(before, dir, { capacity: 2, accessLifetime: SECOND, refreshLifetime: SECOND })
    expect(after.store.identify(login.accessToken).kind).toBe('refused')
    expect(after.store.identify(handedOut.accessToken)).toMatchObject(VALID)
    expect(after.store.issued()).toMatchObject([
      { id: handedOut.grant, label: 'Prüfstand, "2" – 左', expiresAt: handedOut.expiresAt },
    ])
    after.clock.advance(89 * DAY)
    expect(after.store.identify(handedOut.accessToken)).toEqual(refused('expired'))
  })

  test('a clock that was set back gives an issued token no more than its own lifetime', () => {
    const dir = temporaryDirectory()
    const clock = stillClock()
    const before = openJournaledStore(dir, { clock })
    const { accessToken } = handOut(before, { lifetime: 30 * DAY })
    before.journal.close()
    clock.jumpWall(-1_000 * DAY)
    const after = openJournaledStore(dir, { clock })
    expect(after.store.identify(accessToken)).toMatchObject(VALID)
    // The clock is set right while it runs, and back again.
    clock.jumpWall(1_000 * DAY)
    after.store.sweep()
    clock.jumpWall(-500 * DAY)
    after.store.sweep()
    clock.advance(30 * DAY)
    expect(after.store.identify(accessToken)).toEqual(refused('expired'))
  })

  test('a label that was changed on the disk is damage', () => {
    const dir = temporaryDirectory()
    const before = openJournaledStore(dir)
    handOut(before)
    before.journal.close()
    const db = new DatabaseSync(`${dir}/tokens.db`)
    db.exec("UPDATE tokens SET label = 'another'")
    db.close()
    expect(openJournaledStore(dir, { clock: before.clock }).reports).toEqual(['set aside: damaged'])
  })
})

describe('H295 what has to be replaced', () => {
  const grant = (id: string, label: string, days: number): IssuedGrant => {
    const at = { issuedAt: 0, expiresAt: days * DAY, usedAt: null }
    return { id, label, client: 'operator', accessTokens: 1, refreshTokens: 0, ...at }
  }
  const idsOf = (...grants: readonly IssuedGrant[]) => unreplaced(grants).map(({ id }) => id)

  test('was issued for more than two weeks, and the first to end is the first', () => {
    expect(idsOf(grant('b', 'b', 90), grant('a', 'a', 15), grant('short', 'c', 14))).toEqual(['a', 'b'])
  })

  test('has no successor with its label that lives longer; without a label it has none', () => {
    expect(idsOf(grant('old', 'probe', 20), grant('new', 'probe', 90))).toEqual(['new'])
    expect(idsOf(grant('old', 'probe', 20), grant('brief', 'probe', 1))).toEqual(['old'])
    expect(idsOf(grant('old', '', 20), grant('other', '', 90))).toEqual(['old', 'other'])
  })
})
