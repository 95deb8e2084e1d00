import { describe, expect, test } from 'vitest'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { createTestStore, HOUR, present, SECOND, WEEK } from './support.ts'

const ALIVE = { kind: 'valid' }

function evictions(events: readonly unknown[]): unknown[] {
  return events.filter((event) => Array.isArray(event) && event[0] === 'evicted')
}

describe('a full store', () => {
  test('evicts the least recently used grant with all its tokens and reports it', () => {
    const { store, events } = createTestStore({ capacity: 4 })
    const [first, second] = [store.issue('a', 'password'), store.issue('b', 'password')]
    store.identify(first.accessToken)
    const third = store.issue('c', 'password')
    expect(evictions(events)).toEqual([
      ['evicted', 'access', 1],
      ['evicted', 'refresh', 1],
    ])
    expect(store.identify(second.accessToken)).toEqual({ kind: 'refused', cause: 'unknown' })
    expect(store.refresh(second.refreshToken)).toBeUndefined()
    for (const { accessToken } of [first, third]) expect(store.identify(accessToken)).toMatchObject(ALIVE)
  })

  test('does not count expired tokens', () => {
    const { store, clock, events } = createTestStore({ capacity: 4 })
    const first = store.issue('a', 'password')
    store.issue('b', 'password')
    clock.advance(HOUR)
    store.issue('c', 'password')
    expect(evictions(events)).toEqual([])
    expect(store.refresh(first.refreshToken)).toBeDefined()
  })

  test('remembers why its last tokens were removed: of as many as it may hold, also after a reload', () => {
    const { store, clock } = createTestStore({ capacity: 4 })
    const issued = Array.from({ length: 6 }, () => {
      const { accessToken } = store.issue('a', 'password')
      clock.advance(HOUR)
      store.counts()
      return accessToken
    })
    const causes = (): unknown[] => issued.map((token) => store.identify(token))
    const [unknown, expired] = ['unknown', 'expired'].map((cause) => ({ kind: 'refused', cause }))
    expect(causes()).toEqual([unknown, unknown, expired, expired, expired, expired])
    const policy = {
      issued: 100,
      accessLifetime: HOUR,
      refreshLifetime: WEEK,
      rotateRefresh: false,
      refreshGrace: 0,
    }
    store.applyPolicy({ ...policy, capacity: 3 })
    expect(causes()).toEqual([unknown, unknown, unknown, expired, expired, expired])
  })

  test('counts a refresh as use of a grant', () => {
    const { store } = createTestStore({ capacity: 6 })
    const first = store.issue('a', 'password')
    const second = store.issue('b', 'password')
    store.refresh(first.refreshToken)
    store.issue('c', 'password')
    expect(store.refresh(second.refreshToken)).toBeUndefined()
    expect(store.refresh(first.refreshToken)).toBeDefined()
  })

  test('evicts at once when a reload lowers the capacity', () => {
    const { store } = createTestStore({ capacity: 20 })
    const pairs = Array.from({ length: 10 }, (_, i) => store.issue(`client ${i}`, 'password'))
    store.identify(present(pairs[0]).accessToken)
    const policy = {
      issued: 100,
      accessLifetime: HOUR,
      refreshLifetime: WEEK,
      rotateRefresh: false,
      refreshGrace: 0,
    }
    store.applyPolicy({ ...policy, capacity: 4 })
    const alive = pairs.flatMap(({ accessToken }, i) =>
      store.identify(accessToken).kind === 'valid' ? [i] : [],
    )
    expect(alive).toEqual([0, 9])
    store.applyPolicy({ ...policy, capacity: 20 })
    for (let i = 0; i < 8; i++) store.issue('later', 'password')
    expect(store.counts()).toEqual({ access: 10, refresh: 10 })
  })
})

/** A full store of three grants; the oldest one has a request in flight. */
function fullWithRequest() {
  const inFlight: { readonly grant: string; readonly client: { readonly address: string } }[] = []
  const live = { granted: () => inFlight }
  const created = createTestStore({ capacity: 6 }, undefined, undefined, undefined, live)
  const [first, second, third] = ['a', 'b', 'c'].map((client) => created.store.issue(client, 'password'))
  inFlight.push({ grant: present(present(first).grant), client: { address: 'a' } })
  return { ...created, first: present(first), second: present(second), third: present(third) }
}

describe('C8 a grant with a request in flight is in use, and not the first to go', () => {
  const policy = {
    issued: 100,
    accessLifetime: HOUR,
    refreshLifetime: WEEK,
    rotateRefresh: false,
    refreshGrace: 0,
  }

  test.each<[string, (full: ReturnType<typeof fullWithRequest>) => void]>([
    ['at a login', ({ store }) => store.issue('d', 'password')],
    ['at a refresh', ({ store, third }) => store.refresh(third.refreshToken)],
    ['when a reload lowers the capacity', ({ store }) => store.applyPolicy({ ...policy, capacity: 4 })],
  ])('%s', (_, grow) => {
    const full = fullWithRequest()
    grow(full)
    expect(full.store.identify(full.second.accessToken)).toEqual({ kind: 'refused', cause: 'unknown' })
    expect(full.store.identify(full.first.accessToken)).toMatchObject(ALIVE)
  })

  test('nor while there was room, if the store has looked since then', () => {
    const { store, first, second } = fullWithRequest()
    store.applyPolicy({ ...policy, capacity: 20 })
    store.identify(second.accessToken)
    store.sweep()
    expect(store.recentGrants(1).grants.map(({ id }) => id)).toEqual([first.grant])
  })
})

describe.each([false, true])('one grant that refreshes endlessly (rotation %s)', (rotateRefresh) => {
  test('gets a quarter of the capacity at most, and evicts only its own oldest tokens', () => {
    const { store, events } = createTestStore({ capacity: 100, rotateRefresh })
    const other = store.issue('b', 'password')
    const first = store.issue('a', 'password')
    let tokens: IssuedTokens = first
    for (let i = 0; i < 1000; i++) tokens = present(store.refresh(tokens.refreshToken))
    expect(store.identify(other.accessToken)).toMatchObject(ALIVE)
    expect(store.identify(first.accessToken)).toEqual({ kind: 'refused', cause: 'unknown' })
    expect(store.identify(tokens.accessToken)).toMatchObject(ALIVE)
    expect(store.refresh(tokens.refreshToken)).toBeDefined()
    const { access, refresh } = store.counts()
    expect(refresh).toBe(2)
    expect(access).toBeLessThanOrEqual(25)
    expect(new Set(evictions(events).map(String))).toEqual(new Set(['evicted,access,1']))
  })
})

test('C6 at the limit of 30 refreshes per minute, every access token is valid for its whole hour', () => {
  const { store, clock } = createTestStore()
  const first = store.issue('a', 'password')
  for (let i = 0; i < 1799; i++) {
    clock.advance(2 * SECOND)
    store.refresh(first.refreshToken)
  }
  expect(store.identify(first.accessToken)).toMatchObject(ALIVE)
})

// A fortieth of the default capacity and of the logins: a grant that is not used is evicted after the same 5000 s, and
// the test takes a fortieth of the time.
test('a client that refreshes each hour keeps its grants for a week, although another client logs in every second', () => {
  const { store, clock, events } = createTestStore({ capacity: 250 })
  const steady = store.issue('steady', 'password')
  const used = store.issue('steady', 'password')
  let usedToken = used.accessToken
  const lost: number[] = []
  for (let second = 20; second < WEEK / SECOND; second += 20) {
    clock.advance(20 * SECOND)
    if (second % 40 === 0) store.issue('eager', 'password')
    events.length = 0
    if (second % 3600 === 0) {
      if (store.refresh(steady.refreshToken) === undefined) lost.push(second)
      usedToken = store.refresh(used.refreshToken)?.accessToken ?? ''
    } else if (second % 60 === 0 && store.identify(usedToken).kind !== 'valid') lost.push(second)
  }
  expect(lost).toEqual([])
  const { access, refresh } = store.counts()
  expect(access + refresh).toBe(250)
})
