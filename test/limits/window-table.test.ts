import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createWindowTable, Window, WindowList } from '../../src/limits/window-table.ts'
import { stillClock } from '../support/clock.ts'

/** A naive fixed-window limiter as reference: it keeps every window and searches all of them. */
function naiveTable(requests: number, length: number, maxKeys: number) {
  const opened: { key: string | undefined; at: number; passed: number }[] = []
  return {
    /** `undefined` is the key of the overflow window that new clients share when the table is full. */
    count(key: string, now: number) {
      const live = opened.filter((window) => now < window.at + length)
      let window = live.find((candidate) => candidate.key === key)
      if (window === undefined) {
        const full = live.filter((candidate) => candidate.key !== undefined).length >= maxKeys
        const name = full ? undefined : key
        window = full ? live.find((candidate) => candidate.key === undefined) : undefined
        if (window === undefined) {
          window = { key: name, at: now, passed: 0 }
          opened.push(window)
        }
      }
      const admitted = window.passed < requests
      if (admitted) window.passed += 1
      return {
        admitted,
        limit: requests,
        remaining: requests - window.passed,
        closesIn: window.at + length - now,
        ...(window.key === undefined ? { overflow: true } : {}),
      }
    },
  }
}

type Step = { readonly kind: 'count'; readonly key: string } | { readonly kind: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('count' as const), key: fc.constantFrom(...'abcdef') }),
  },
  {
    weight: 2,
    // Mostly just before, at and just after the close of a window.
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(0, 1, 37, 99, 100, 101, 250),
    }),
  },
)

it('C14 C17 the table agrees with the naive one for any sequence of requests and waits', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 200 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 7 }),
      (steps, requests, maxKeys) => {
        const clock = stillClock()
        const table = createWindowTable({ requests, window: 100 }, { clock, maxKeys })
        const naive = naiveTable(requests, 100, maxKeys)
        for (const taken of steps) {
          if (taken.kind === 'wait') clock.advance(taken.ms)
          else expect(table.count(taken.key)).toEqual(naive.count(taken.key, clock.monotonic()))
          expect(table.size).toBeLessThanOrEqual(maxKeys)
        }
      },
    ),
    { numRuns: 500 },
  )
})

it('C14 a key passes at most `requests` times in each of its windows, and windows do not overlap', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 200 }), (gaps) => {
      const clock = stillClock()
      const table = createWindowTable({ requests: 3, window: 100 }, { clock, maxKeys: 10 })
      const passedBy = new Map<number, number>()
      for (const gap of gaps) {
        clock.advance(gap)
        const decision = table.count('key')
        expect(decision.closesIn).toBeGreaterThan(0)
        expect(decision.closesIn).toBeLessThanOrEqual(100)
        const closesAt = clock.monotonic() + decision.closesIn
        const passed = (passedBy.get(closesAt) ?? 0) + Number(decision.admitted)
        passedBy.set(closesAt, passed)
        expect(passed).toBeLessThanOrEqual(3)
        expect(decision.remaining).toBe(3 - passed)
      }
      const ends = [...passedBy.keys()]
      for (let i = 1; i < ends.length; i += 1)
        expect((ends[i] ?? 0) - (ends[i - 1] ?? 0)).toBeGreaterThanOrEqual(100)
    }),
  )
})

it('C17 a table drops its expired windows when new clients come', () => {
  const clock = stillClock()
  const table = createWindowTable({ requests: 1, window: 1000 }, { clock, maxKeys: 10_000 })
  for (let i = 0; i < 10_000; i += 1) table.count(`old ${i}`)
  expect(table.size).toBe(10_000)
  clock.advance(1000)
  for (let i = 0; i < 5000; i += 1) table.count(`new ${i}`)
  expect(table.size).toBeLessThanOrEqual(5001)
})

it('C17 a count takes as long with a hundred thousand windows as with ten', () => {
  const timeOf = (keys: number): number => {
    const clock = stillClock()
    const table = createWindowTable({ requests: 5, window: 1000 }, { clock, maxKeys: keys })
    for (let i = 0; i < keys; i += 1) table.count(String(i))
    const before = process.threadCpuUsage()
    for (let i = 0; i < 20_000; i += 1) table.count(`sprayed ${i}`)
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1000
  }
  timeOf(10)
  // A linear search would be ten thousand times slower.
  expect(timeOf(100_000)).toBeLessThan(100 * Math.max(1, timeOf(10)))
})

/** The processor time (µs) of so many requests of new clients, while as many windows as the table holds close one after the other. */
function turnover(size: number, requests: number): number {
  // Moving a still clock so often would take longer than all else.
  let now = 1
  const clock = { ...stillClock(), monotonic: () => now }
  const table = createWindowTable({ requests: 60, window: size }, { clock, maxKeys: 2 * size })
  const countNew = (from: number, to: number): void => {
    for (let i = from; i < to; i += 1) {
      now += 1
      table.count(String(i))
    }
  }
  countNew(0, 2 * size)
  const before = process.threadCpuUsage()
  countNew(2 * size, 2 * size + requests)
  const { user, system } = process.threadCpuUsage(before)
  expect(table.size).toBe(size)
  return user + system
}

it('H211 a request of a new client takes as long while 100,000 windows close as while 1,000 do', () => {
  const quickest = (size: number): number =>
    Math.min(...Array.from({ length: 3 }, () => turnover(size, 20_000)))
  quickest(1_000)
  expect(quickest(100_000) / quickest(1_000)).toBeLessThan(30)
})

it('C13 another policy restarts every window; the same policy keeps them', () => {
  const clock = stillClock()
  const table = createWindowTable({ requests: 2, window: 1000 }, { clock, maxKeys: 10 })
  table.count('a')
  table.applyPolicy({ requests: 2, window: 1000 })
  expect(table.count('a')).toMatchObject({ remaining: 0, limit: 2 })
  table.applyPolicy({ requests: 5, window: 500 })
  expect(table.count('a')).toEqual({
    admitted: true,
    limit: 5,
    remaining: 4,
    closesIn: 500,
  })
})

it('C13 C17 another policy restarts also the window that further clients share', () => {
  const table = createWindowTable({ requests: 2, window: 1000 }, { clock: stillClock(), maxKeys: 1 })
  for (const key of ['a', 'b', 'c']) table.count(key)
  expect(table.count('d')).toMatchObject({ admitted: false, overflow: true })
  table.applyPolicy({ requests: 5, window: 500 })
  table.count('a')
  expect(table.count('b')).toEqual({ admitted: true, limit: 5, remaining: 4, closesIn: 500, overflow: true })
})

it('H150 at most 1000 used-up windows are told, those that were used up last', () => {
  const table = createWindowTable({ requests: 1, window: 100 }, { clock: stillClock(), maxKeys: 2_000 })
  for (let i = 0; i < 1_001; i += 1) table.count(`${i}`)
  const told = table.usedUp()
  expect(told).toHaveLength(1_000)
  expect([told[0]?.key, told.at(-1)?.key]).toEqual(['1000', '1'])
})

it('H150 the used-up windows are those that a search of all windows would find, the latest first', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), fc.integer({ min: 1, max: 4 }), (steps, requests) => {
      const clock = stillClock()
      const table = createWindowTable({ requests, window: 100 }, { clock, maxKeys: 1000 })
      const counted = new Map<
        string,
        { closesAt: number; admitted: number; refused: number; usedUpAt: number }
      >()
      for (const [i, taken] of steps.entries()) {
        if (taken.kind === 'wait') {
          clock.advance(taken.ms)
          continue
        }
        const now = clock.monotonic()
        const known = counted.get(taken.key)
        const fresh = { closesAt: now + 100, admitted: 0, refused: 0, usedUpAt: 0 }
        const window = known !== undefined && now < known.closesAt ? known : fresh
        counted.set(taken.key, window)
        if (!table.count(taken.key).admitted) window.refused += 1
        else if (++window.admitted === requests) window.usedUpAt = i
      }
      const expected = [...counted]
        .filter(([, { closesAt, admitted }]) => admitted === requests && clock.monotonic() < closesAt)
        .sort(([, a], [, b]) => b.usedUpAt - a.usedUpAt)
      expect(table.usedUp()).toEqual(
        expected.map(([key, { closesAt, refused }]) => ({ key, closesAt, refused })),
      )
    }),
  )
})

it('H150 clients beyond the most windows appear together, and a new policy begins without used-up windows', () => {
  const table = createWindowTable({ requests: 1, window: 100 }, { clock: stillClock(), maxKeys: 1 })
  for (const key of ['a', 'b', 'c']) table.count(key)
  expect(table.usedUp()).toMatchObject([
    { key: 'overflow', refused: 1 },
    { key: 'a', refused: 0 },
  ])
  table.applyPolicy({ requests: 2, window: 100 })
  expect(table.usedUp()).toEqual([])
})

it('C17 a smaller bound evicts no open window: new keys share the overflow window, and a larger one gives them their own', () => {
  const policy = { requests: 2, window: 1000 }
  const table = createWindowTable(policy, { clock: stillClock(), maxKeys: 3 })
  for (const key of ['a', 'b', 'c']) table.count(key)
  table.applyPolicy(policy, 1)
  expect(table.count('a')).toMatchObject({ remaining: 0 })
  expect(table.count('d')).toMatchObject({ overflow: true })
  table.applyPolicy(policy, 4)
  expect(table.count('d')).not.toHaveProperty('overflow')
  expect(table.size).toBe(4)
})

it('C17 only a window in the list takes a place when it is renewed, not the one that further keys share, nor one that has closed', () => {
  const list = new WindowList((now) => new Window(now + 100))
  const own = list.open('a', 0)
  const shared = list.find('b', 0, 1) ?? expect.fail()
  expect([shared, list.find('c', 0, 1)]).toEqual([list.overflow, list.overflow])
  list.renew(shared, 1_000)
  list.renew(own, 200)
  expect([list.find('a', 199, 1), list.find('b', 199, 1), list.size]).toEqual([own, shared, 1])
  expect(list.find('b', 200, 1)).toBeUndefined()
  list.renew(own, 1_000)
  expect([list.find('a', 201, 1), list.size]).toEqual([undefined, 0])
  list.open('a', 201)
  // The shared window closes by its own time, and the next one begins without its count.
  expect(list.find('b', 250, 1)).toBe(shared)
  list.renew(shared, 260)
  expect(list.find('b', 260, 1)).not.toBe(shared)
})
