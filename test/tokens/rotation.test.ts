import { expect, test } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import type { LiveRequests } from '../../src/tokens/revocation.ts'
import { collectGarbage } from '../support/processes.ts'
import { createTestStore, HOUR, POLICY, present, SECOND, WEEK } from './support.ts'

test('C6 with rotation every refresh returns a new pair, and each refresh token is valid for its own week', () => {
  const { store, clock } = createTestStore({ rotateRefresh: true })
  let { refreshToken, accessToken } = store.issue('a', 'password')
  for (let day = 0; day < 30; day++) {
    clock.advance(WEEK - 1)
    expect(store.identify(accessToken)).toEqual({ kind: 'refused', cause: 'expired' })
    const next = present(store.refresh(refreshToken))
    expect(next.refreshToken).not.toBe(refreshToken)
    ;({ refreshToken, accessToken } = next)
  }
  clock.advance(WEEK)
  expect(store.refresh(refreshToken)).toBeUndefined()
})

test('H33 C6 two refreshes in the same millisecond get the same new pair', () => {
  const { store, events } = createTestStore({ rotateRefresh: true })
  const first = store.issue('a', 'password')
  const pairs = [store.refresh(first.refreshToken), store.refresh(first.refreshToken)]
  expect(present(pairs[0])).toEqual(present(pairs[1]))
  expect(store.counts()).toEqual({ access: 2, refresh: 1 })
  expect(events.filter((event) => String(event).includes('refresh_token'))).toHaveLength(1)
})

test('C6 a retry within the grace gets the same pair, and at its end none', () => {
  const { store, clock } = createTestStore({ rotateRefresh: true })
  const first = store.issue('a', 'password')
  const lost = present(store.refresh(first.refreshToken))
  clock.advance(10 * SECOND - 1)
  store.sweep()
  expect(store.refresh(first.refreshToken)).toEqual(lost)
  expect(store.identify(lost.accessToken)).toMatchObject({ kind: 'valid' })
  clock.advance(1)
  expect(store.refresh(first.refreshToken)).toBeUndefined()
})

test('C9 the pair that a retry gets is in memory until its grace is over or its grant is revoked, and no longer', async () => {
  const { store, clock } = createTestStore({ rotateRefresh: true })
  /** Logs in and refreshes. Only the store has the pair then. */
  function refreshed(client: string): WeakRef<object> {
    return new WeakRef(present(store.refresh(store.issue(client, 'password').refreshToken)))
  }
  const [kept, revoked] = [refreshed('a'), refreshed('b')]
  const inMemory = async (): Promise<readonly boolean[]> => {
    // A turn of the event loop: until then, what a WeakRef was asked for stays.
    await nextTurn()
    collectGarbage()
    return [kept, revoked].map((pair) => pair.deref() !== undefined)
  }
  await clock.advance(10 * SECOND - 1)
  store.sweep()
  expect(await inMemory()).toEqual([true, true])
  store.revoke({ client: 'b' }, 'operator')
  expect(await inMemory()).toEqual([true, false])
  await clock.advance(1)
  store.sweep()
  expect(await inMemory()).toEqual([false, false])
})

test('C6 a retry gets the same pair even if that pair was refreshed meanwhile', () => {
  const { store } = createTestStore({ rotateRefresh: true })
  const first = store.issue('a', 'password')
  const second = present(store.refresh(first.refreshToken))
  const third = present(store.refresh(second.refreshToken))
  expect(store.refresh(first.refreshToken)).toEqual(second)
  expect(store.refresh(second.refreshToken)).toEqual(third)
})

test('C6 reuse after the grace revokes the whole grant with its access tokens, and no other grant', () => {
  const { store, clock, events } = createTestStore({ rotateRefresh: true })
  const other = store.issue('b', 'password')
  const first = store.issue('a', 'password')
  const id = present(store.grants()[1]).id
  const second = present(store.refresh(first.refreshToken))
  clock.advance(10 * SECOND)
  expect(store.refresh(first.refreshToken)).toBeUndefined()
  expect(events.at(-1)).toEqual(['revoked', [id], 'refresh_token_reuse'])
  for (const token of [first.accessToken, second.accessToken]) {
    expect(store.identify(token)).toEqual({ kind: 'refused', cause: 'revoked' })
  }
  expect(store.refresh(second.refreshToken)).toBeUndefined()
  expect(store.identify(other.accessToken)).toMatchObject({ kind: 'valid' })
})

test('C6 reuse is detected for the whole lifetime of the spent token', () => {
  const { store, clock, events } = createTestStore({ rotateRefresh: true })
  const first = store.issue('a', 'password')
  let { refreshToken } = present(store.refresh(first.refreshToken))
  for (let hour = 1; hour < 168; hour++) {
    clock.advance(HOUR)
    ;({ refreshToken } = present(store.refresh(refreshToken)))
  }
  expect(store.refresh(first.refreshToken)).toBeUndefined()
  expect(events.at(-1)).toEqual(['revoked', expect.anything(), 'refresh_token_reuse'])
  expect(store.refresh(refreshToken)).toBeUndefined()
})

test('C6 without a grace the first retry is reuse', () => {
  const { store } = createTestStore({ rotateRefresh: true, refreshGrace: 0 })
  const { refreshToken } = store.issue('a', 'password')
  const next = present(store.refresh(refreshToken))
  expect(store.refresh(refreshToken)).toBeUndefined()
  expect(store.refresh(next.refreshToken)).toBeUndefined()
})

test.each([
  ['raised, leaves the end of the one that has begun', HOUR, 10 * SECOND, false],
  ['lowered, ends sooner', SECOND, 9 * SECOND, false],
  ['lowered, but not over', 5 * SECOND, 4 * SECOND, true],
])('C6 a grace that is changed by a reload: %s', (_, changed, waits, replayed) => {
  const { store, clock, events } = createTestStore({ rotateRefresh: true })
  const first = store.issue('a', 'password')
  const second = present(store.refresh(first.refreshToken))
  clock.advance(waits)
  store.applyPolicy({ ...POLICY, rotateRefresh: true, refreshGrace: changed })
  const again = store.refresh(first.refreshToken)
  if (replayed) expect(again).toEqual(second)
  else {
    expect(again).toBeUndefined()
    expect(events.at(-1)).toEqual(['revoked', expect.anything(), 'refresh_token_reuse'])
    expect(store.identify(second.accessToken)).toEqual({ kind: 'refused', cause: 'revoked' })
  }
})

test('C6 a grace that is raised by a reload gives no pair of another holder of the token, even before a sweep', () => {
  const { store } = createTestStore({ rotateRefresh: true, refreshGrace: 0 })
  const stolen = store.issue('a', 'password').refreshToken
  present(store.refresh(stolen))
  store.applyPolicy({ ...POLICY, rotateRefresh: true, refreshGrace: HOUR })
  expect(store.refresh(stolen)).toBeUndefined()
})

test('C6 C8 the streams of a grant end when it has no token but spent ones', () => {
  let isOver = (_id: string): boolean => false
  const live: Partial<LiveRequests> = {
    endStreams(_now, over) {
      isOver = over
    },
  }
  const policy = { rotateRefresh: true, refreshLifetime: 2 * HOUR }
  const { store, clock } = createTestStore(policy, undefined, undefined, undefined, live)
  const first = store.issue('a', 'password')
  const grant = present(first.grant)
  clock.advance(HOUR / 2)
  const second = present(store.refresh(first.refreshToken))
  store.applyPolicy({ ...POLICY, rotateRefresh: true, refreshLifetime: HOUR / 2 })
  store.refresh(second.refreshToken)
  const overAfter = (time: number): boolean => {
    clock.advance(time)
    store.sweep()
    return isOver(grant)
  }
  expect(overAfter(HOUR / 2)).toBe(false)
  expect(overAfter(HOUR / 2 - 1)).toBe(false)
  // The first refresh token is kept, to detect its reuse.
  expect(overAfter(1)).toBe(true)
  expect(store.grants().map(({ id }) => id)).toEqual([grant])
})
