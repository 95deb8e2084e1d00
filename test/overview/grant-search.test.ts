import { expect, it } from 'vitest'
import { createGrantSearch } from '../../src/overview/grant-search.ts'
import type { GrantSummary } from '../../src/tokens/grant-table.ts'
import { passUntil, stillClock } from '../support/clock.ts'

function grant(id: string, client: string): GrantSummary {
  return { id, client, issuedAt: 1, expiresAt: 9, usedAt: null, accessTokens: 1, refreshTokens: 1 }
}

/** `count` grants of other clients, the one of 198.51.100.7 among them; it was used longest ago. */
function grants(count: number): GrantSummary[] {
  const others = Array.from({ length: count - 1 }, (_, i) => grant(`monitor.${i}`, `192.0.2.${i % 250}`))
  return [grant('Admin.abc', '198.51.100.7'), ...others]
}

/** A store in this process, which counts how often it is asked. */
function storeOf(all: readonly GrantSummary[]) {
  const asked = { owners: 0, describe: 0, longest: 0 }
  return {
    asked,
    owners() {
      asked.owners += 1
      return all
    },
    describe(ids: readonly string[]) {
      asked.describe += 1
      asked.longest = Math.max(asked.longest, ids.length)
      return all.filter(({ id }) => ids.includes(id))
    },
  }
}

it('H231 a search finds the login of one client among 10,001, by address or id, in any letter case', async () => {
  const clock = stillClock()
  const find = createGrantSearch(storeOf(grants(10_001)), clock)
  const found = Promise.all([find('198.51.100'), find(' ADMIN.a ')])
  const [byClient, byId] = await passUntil(clock, found)
  expect(byClient).toMatchObject({ matches: 1, rows: [{ id: 'Admin.abc', client: '198.51.100.7' }] })
  expect(byId).toEqual(byClient)
  expect(await passUntil(clock, find('nowhere'))).toEqual({ matches: 0, rows: [] })
})

it('H231 all matches are counted, and the 100 that were used last are listed', async () => {
  const store = storeOf(grants(2_000))
  const found = await createGrantSearch(store, stillClock())('monitor')
  if (typeof found === 'string') throw new Error(found)
  expect(found.matches).toBe(1_999)
  expect(found.rows.map(({ id }) => id).slice(0, 2)).toEqual(['monitor.1998', 'monitor.1997'])
  expect(found.rows).toHaveLength(100)
  expect(store.asked.longest).toBe(100)
})

it('H231 many searches at once are one pass, and more than eight texts wait for the next', async () => {
  const store = storeOf(grants(1_000))
  const clock = stillClock()
  const find = createGrantSearch(store, clock)
  const first = find('first')
  // The pass for the first has begun; these wait for the second.
  const texts = Array.from({ length: 40 }, (_, i) => `192.0.2.${i}`)
  const answers = await passUntil(clock, Promise.all([...texts, ...texts].map((text) => find(text))))
  await first
  expect(answers.filter((answer) => answer === 'busy')).toHaveLength(64)
  expect(store.asked.owners).toBe(2)
  expect(store.asked.describe).toBe(2)
})

it('H231 a long pass leaves the event loop to requests: a timer of 1 ms fires more often than the pass pauses', async () => {
  const clock = stillClock()
  const find = createGrantSearch(storeOf(grants(20_000)), clock)
  let isOver = false
  let turns = 0
  const searching = find('nowhere').then(() => {
    isOver = true
  })
  while (!isOver) {
    await clock.advance(1)
    turns += 1
  }
  await searching
  // 20,000 grants are ten steps, so nine pauses.
  expect(turns).toBeGreaterThan(9)
})

it.each([
  [0, 9_999, 1],
  [0, 10_000, 2],
  [2_000, 39_999, 1],
  [2_000, 40_000, 2],
])(
  'H231 a shared store lists its grants at most every ten seconds, and at most a twentieth of the time: a list that takes %i ms, and %i ms',
  async (takes, time, expected) => {
    const clock = stillClock()
    const all = grants(3)
    let lists = 0
    const find = createGrantSearch(
      {
        async owners() {
          lists += 1
          await clock.advance(takes)
          return all
        },
        describe: async (ids) => all.filter(({ id }) => ids.includes(id)),
      },
      clock,
    )
    await find('198')
    await clock.advance(time)
    expect(await find('198')).toMatchObject({ matches: 1 })
    expect(lists).toBe(expected)
  },
)

it('H231 a shared store that does not answer is told as such, also when it fails in the middle', async () => {
  const silent = { owners: async () => 'unavailable' as const, describe: async () => [] }
  expect(await createGrantSearch(silent, stillClock())('a')).toBe('unavailable')
  const half = { owners: async () => grants(2), describe: async () => 'unavailable' as const }
  expect(await createGrantSearch(half, stillClock())('198')).toBe('unavailable')
})
