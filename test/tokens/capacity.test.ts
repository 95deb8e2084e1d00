import { describe, expect, test } from 'vitest'
import type { IssuedTokens } from '../../src/tokens/token-contract.ts'
import { createBench, createCounter, HOUR, present, SECOND, WEEK } from './support.ts'

const ALIVE = { kind: 'valid' }

function evictions(events: readonly unknown[]): unknown[] {
  return events.filter((event) => Array.isArray(event) && event[0] === 'evicted')
}

describe('a full store', () => {
  test('drops the least recently used grant with all its tokens and says so', () => {
    const { store, events } = createBench({ capacity: 4 })
    const [first, second] = [store.issue('a'), store.issue('b')]
    store.identify(first.accessToken)
    const third = store.issue('c')
    expect(evictions(events)).toEqual([
      ['evicted', 'access', 1],
      ['evicted', 'refresh', 1],
    ])
    expect(store.identify(second.accessToken)).toEqual({ kind: 'refused', cause: 'unknown' })
    expect(store.refresh(second.refreshToken)).toBeUndefined()
    for (const { accessToken } of [first, third]) expect(store.identify(accessToken)).toMatchObject(ALIVE)
  })

  test('is not full of what has expired', () => {
    const { store, clock, events } = createBench({ capacity: 4 })
    const first = store.issue('a')
    store.issue('b')
    clock.advance(HOUR)
    store.issue('c')
    expect(evictions(events)).toEqual([])
    expect(store.refresh(first.refreshToken)).toBeDefined()
  })

  test('lets refreshing count as use', () => {
    const { store } = createBench({ capacity: 6 })
    const first = store.issue('a')
    const second = store.issue('b')
    store.refresh(first.refreshToken)
    store.issue('c')
    expect(store.refresh(second.refreshToken)).toBeUndefined()
    expect(store.refresh(first.refreshToken)).toBeDefined()
  })

  test('evicts at once when a reload makes it smaller', () => {
    const { store } = createBench({ capacity: 20 })
    const pairs = Array.from({ length: 10 }, (_, i) => store.issue(`client ${i}`))
    store.identify(present(pairs[0]).accessToken)
    const policy = { accessLifetime: HOUR, refreshLifetime: WEEK, rotateRefresh: false, refreshGrace: 0 }
    store.applyPolicy({ ...policy, capacity: 4 })
    const alive = pairs.flatMap(({ accessToken }, i) =>
      store.identify(accessToken).kind === 'valid' ? [i] : [],
    )
    expect(alive).toEqual([0, 9])
    store.applyPolicy({ ...policy, capacity: 20 })
    for (let i = 0; i < 8; i++) store.issue('later')
    expect(store.counts()).toEqual({ access: 10, refresh: 10 })
  })
})

describe.each([false, true])('one grant that refreshes without end (rotation %s)', (rotateRefresh) => {
  test('keeps to a quarter of the room, loses its own oldest tokens and nobody else’s', () => {
    const { store, events } = createBench({ capacity: 100, rotateRefresh })
    const other = store.issue('b')
    const first = store.issue('a')
    let tokens: IssuedTokens = first
    for (let i = 0; i < 1000; i++) tokens = present(store.refresh(tokens.refreshToken))
    expect(store.identify(other.accessToken)).toMatchObject(ALIVE)
    expect(store.identify(first.accessToken)).toEqual({ kind: 'refused', cause: 'unknown' })
    expect(store.identify(tokens.accessToken)).toMatchObject(ALIVE)
    expect(store.refresh(tokens.refreshToken)).toBeDefined()
    const { access, refresh } = store.counts()
    expect(refresh).toBe(2)
    expect(access).toBeLessThanOrEqual(25)
    expect(evictions(events).every((event) => String(event) === 'evicted,access,1')).toBe(true)
  })
})

test('C6 at the limit of 30 refreshes a minute every access token lives its whole hour', () => {
  const { store, clock } = createBench()
  const first = store.issue('a')
  for (let i = 0; i < 1799; i++) {
    clock.advance(2 * SECOND)
    store.refresh(first.refreshToken)
  }
  expect(store.identify(first.accessToken)).toMatchObject(ALIVE)
})

// A fortieth of the room and a fortieth of the logins: a grant has the same 5000 s to be used again, in a fortieth
// of the test's time.
test('for a week, one client refreshing each hour outlives another that logs in every second', () => {
  const { store, clock, events } = createBench({ capacity: 250 }, undefined, undefined, createCounter())
  const steady = store.issue('steady')
  const used = store.issue('steady')
  let usedToken = used.accessToken
  const lost: number[] = []
  for (let second = 20; second < WEEK / SECOND; second += 20) {
    clock.advance(20 * SECOND)
    if (second % 40 === 0) store.issue('eager')
    events.length = 0
    if (second % 3600 === 0) {
      if (store.refresh(steady.refreshToken) === undefined) lost.push(second)
      usedToken = store.refresh(used.refreshToken)?.accessToken ?? ''
    } else if (second % 60 === 0 && store.identify(usedToken).kind !== 'valid') lost.push(second)
  }
  expect(lost).toEqual([])
  const { access, refresh } = store.counts()
  expect(access + refresh).toBe(250)
}, 120_000)
