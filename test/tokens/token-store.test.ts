import { describe, expect, test } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { createTestStore, DAY, HOUR, present, SECOND, WEEK } from './support.ts'

const UNKNOWN = { kind: 'refused', cause: 'unknown' }
const EXPIRED = { kind: 'refused', cause: 'expired' }
const REVOKED = { kind: 'refused', cause: 'revoked' }

describe('lifetimes', () => {
  test('C4 tokens are 256 bits in base64url, and expires_in is in whole seconds', () => {
    const { store } = createTestStore({ accessLifetime: 3600_999 })
    const tokens = store.issue('a', 'password')
    expect(tokens.accessToken).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(tokens.refreshToken).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(tokens.accessToken).not.toBe(tokens.refreshToken)
    expect(tokens.expiresIn).toBe(3600)
  })

  test('C7 an access token is valid until the millisecond before its expiry', () => {
    const { store, clock } = createTestStore()
    const { accessToken } = store.issue('a', 'password')
    clock.advance(HOUR - 1)
    expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
    clock.advance(1)
    expect(store.identify(accessToken)).toEqual(EXPIRED)
    store.sweep()
    expect(store.identify(accessToken)).toEqual(EXPIRED)
  })

  test('C7 a refresh token is valid until the millisecond before the end of a week', () => {
    const { store, clock } = createTestStore()
    const { refreshToken } = store.issue('a', 'password')
    clock.advance(WEEK - 1)
    const { accessToken } = present(store.refresh(refreshToken))
    clock.advance(1)
    expect(store.refresh(refreshToken)).toBeUndefined()
    // The access token is valid for its own hour, although the password grant is more than a week ago.
    expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
    clock.advance(HOUR)
    store.sweep()
    expect(store.grants()).toEqual([])
  })

  test('C7 a jump of the wall clock changes no lifetime', () => {
    const { store, clock } = createTestStore()
    const { accessToken } = store.issue('a', 'password')
    clock.jumpWall(30 * DAY)
    expect(store.identify(accessToken)).toMatchObject({ kind: 'valid' })
    clock.jumpWall(-60 * DAY)
    clock.advance(HOUR)
    expect(store.identify(accessToken)).toEqual(EXPIRED)
  })

  test('counts and grants list live tokens only', () => {
    const { store, clock } = createTestStore()
    const wall = clock.wall()
    const { refreshToken } = store.issue('192.0.2.1', 'password')
    store.refresh(refreshToken)
    expect(store.counts()).toEqual({ access: 2, refresh: 1 })
    expect(store.grants()).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f]{16}$/),
        client: '192.0.2.1',
        issuedAt: wall,
        expiresAt: wall + WEEK,
        usedAt: wall,
        accessTokens: 2,
        refreshTokens: 1,
      },
    ])
    clock.advance(HOUR)
    expect(store.counts()).toEqual({ access: 0, refresh: 1 })
  })

  test('a grant whose tokens have expired is in no list, and no revocation counts it, even before a sweep', () => {
    const { store, clock } = createTestStore()
    const { grant } = store.issue('a', 'password')
    expect(store.describe(['nobody', present(grant)])).toEqual(store.grants())
    expect(store.owners()).toMatchObject([{ id: grant, client: 'a' }])
    clock.advance(WEEK)
    expect([...store.owners(), ...store.grants()]).toEqual([])
    store.issue('a', 'password')
    clock.advance(WEEK)
    expect(store.grants()).toEqual([])
    store.issue('a', 'password')
    clock.advance(WEEK)
    expect(store.revoke({ client: 'a' }, 'operator')).toBe(0)
  })
})

describe('H34 access and refresh tokens never stand in for each other', () => {
  test('C10 a refresh token is unknown as a bearer token, and C5 an access token as a refresh token', () => {
    const { store } = createTestStore()
    const { accessToken, refreshToken } = store.issue('a', 'password')
    expect(store.identify(refreshToken)).toEqual(UNKNOWN)
    expect(store.refresh(accessToken)).toBeUndefined()
    expect(store.counts()).toEqual({ access: 1, refresh: 1 })
  })

  test.each([
    '',
    'x',
    'a'.repeat(43),
    `${'a'.repeat(42)}=`,
    'a'.repeat(44),
    `${'a'.repeat(43)}\n`,
    '__proto__',
  ])('C5 C10 %j is unknown', (token) => {
    const { store } = createTestStore()
    store.issue('a', 'password')
    expect(store.identify(token)).toEqual(UNKNOWN)
    expect(store.refresh(token)).toBeUndefined()
  })
})

test('each grant type names itself to `issue`, and is counted under that name', () => {
  const { store, events } = createTestStore()
  store.issue('a', 'pairing')
  expect(events).toEqual([['issued', 'pairing']])
  // @ts-expect-error there is no default: a grant type that names none would be counted as another one
  void (() => store.issue('a'))
})

test('C6 without rotation a refresh returns the same refresh token with its expiry, and earlier access tokens stay valid', () => {
  const { store, clock, events } = createTestStore()
  const first = store.issue('a', 'password')
  clock.advance(WEEK - HOUR / 2)
  const second = present(store.refresh(first.refreshToken))
  const third = present(store.refresh(first.refreshToken))
  expect(second.refreshToken).toBe(first.refreshToken)
  expect(new Set([first.accessToken, second.accessToken, third.accessToken]).size).toBe(3)
  expect(store.identify(second.accessToken)).toEqual(store.identify(third.accessToken))
  clock.advance(HOUR / 2)
  expect(store.refresh(first.refreshToken)).toBeUndefined()
  expect(events).toEqual([
    ['issued', 'password'],
    ['issued', 'refresh_token'],
    ['issued', 'refresh_token'],
  ])
})

describe('the grants that were used last', () => {
  test('H150 are at most as many as asked for, the most recently used first, with the number of all', () => {
    const { store, clock } = createTestStore()
    const [a, b] = ['a', 'b', 'c', 'd'].map((client) => store.issue(client, 'password'))
    store.identify(present(a).accessToken)
    clock.advance(1)
    store.refresh(present(b).refreshToken)
    const { total, grants } = store.recentGrants(3)
    expect(total).toBe(4)
    expect(grants.map(({ client }) => client)).toEqual(['b', 'a', 'd'])
    expect(store.recentGrants(10).grants).toHaveLength(4)
    clock.advance(WEEK + HOUR)
    expect(store.recentGrants(3)).toEqual({ total: 0, grants: [] })
  })

  test('H150 have the same times in each call, though the wall clock has whole milliseconds', () => {
    const still = stillClock()
    const clock = { ...still, wall: () => Math.floor(still.wall()) + 1 }
    const { store } = createTestStore({}, undefined, clock)
    store.issue('a', 'password')
    const times = new Set<number | undefined>()
    for (let i = 0; i < 20; i += 1) {
      still.advance(0.3)
      times.add(store.recentGrants(1).grants[0]?.issuedAt)
    }
    expect(times.size).toBe(1)
    still.jumpWall(60_000)
    times.add(store.recentGrants(1).grants[0]?.issuedAt)
    expect(times.size).toBe(2)
  })
})

describe('revocation', () => {
  test('C8 of all grants ends every token, and reports the grants before it returns', () => {
    const { store, events } = createTestStore()
    const pairs = ['a', 'b'].map((client) => store.issue(client, 'password'))
    const ids = store.grants().map((grant) => grant.id)
    expect(store.revoke({ all: true }, 'password_changed')).toBe(2)
    expect(events.at(-1)).toEqual(['revoked', ids, 'password_changed'])
    for (const { accessToken, refreshToken } of pairs) {
      expect(store.identify(accessToken)).toEqual(REVOKED)
      expect(store.identify(refreshToken)).toEqual(UNKNOWN)
      expect(store.refresh(refreshToken)).toBeUndefined()
    }
    expect(store.counts()).toEqual({ access: 0, refresh: 0 })
    events.length = 0
    expect(store.revoke({ all: true }, 'again')).toBe(0)
    expect(events).toEqual([])
  })

  test('by grant, by client or by a token of either kind ends only the grants that match', () => {
    const { store } = createTestStore()
    const [one, two, three, four] = ['a', 'b', 'c', 'c'].map((client) => store.issue(client, 'password'))
    const id = present(store.grants()[0]).id
    expect(store.revoke({ grant: id }, 'operator')).toBe(1)
    expect(store.identify(present(one).accessToken)).toEqual(REVOKED)
    expect(store.revoke({ token: present(two).accessToken }, 'client')).toBe(1)
    expect(store.refresh(present(two).refreshToken)).toBeUndefined()
    expect(store.identify(present(three).accessToken)).toMatchObject({ kind: 'valid' })
    expect(store.revoke({ client: 'c' }, 'operator')).toBe(2)
    expect(store.identify(present(four).accessToken)).toEqual(REVOKED)
    expect(store.revoke({ grant: 'nobody' }, 'operator')).toBe(0)
    expect(store.revoke({ token: 'nothing' }, 'client')).toBe(0)
  })
})

describe('C8 a grant that is over, while a request of it is in flight,', () => {
  const OVER = '0123456789abcdef'
  const flight = { grant: OVER, client: { address: '192.0.2.9' } }

  test.each([
    { all: true },
    { grant: OVER },
    { grants: [OVER] },
    { client: '192.0.2.9' },
    { name: '' },
  ] as const)('is revoked by %j', (which) => {
    const { store, events } = createTestStore({}, undefined, undefined, undefined, {
      granted: () => [flight, flight],
    })
    expect(store.revoke(which, 'operator')).toBe(1)
    expect(events).toEqual([['revoked', [OVER], 'operator']])
  })

  test.each([{ grant: 'f00' }, { grants: ['f00'] }, { client: '192.0.2.1' }, { name: 'a' }, { token: OVER }])(
    'is not revoked by %j',
    (which) => {
      const { store } = createTestStore({}, undefined, undefined, undefined, { granted: () => [flight] })
      expect(store.revoke(which, 'operator')).toBe(0)
    },
  )

  test('counts once if the store has it still', () => {
    const flights: (typeof flight)[] = []
    const { store } = createTestStore({}, undefined, undefined, undefined, { granted: () => flights })
    const { grant } = store.issue('192.0.2.9', 'password')
    flights.push({ ...flight, grant: present(grant) })
    expect(store.revoke({ grants: [present(grant), 'f00'] }, 'operator')).toBe(1)
  })
})

test('a reload changes the lifetime of later tokens, not of those that were issued before', () => {
  const { store, clock } = createTestStore()
  const before = store.issue('a', 'password')
  store.applyPolicy({
    capacity: 100,
    issued: 100,
    accessLifetime: 60 * SECOND,
    refreshLifetime: HOUR,
    rotateRefresh: true,
    refreshGrace: 0,
  })
  const after = store.issue('a', 'password')
  expect(after.expiresIn).toBe(60)
  clock.advance(60 * SECOND)
  expect(store.identify(before.accessToken)).toMatchObject({ kind: 'valid' })
  expect(store.identify(after.accessToken)).toEqual(EXPIRED)
  expect(present(store.refresh(after.refreshToken)).refreshToken).not.toBe(after.refreshToken)
})
