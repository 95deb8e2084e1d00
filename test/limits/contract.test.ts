import { beforeAll, describe, expect, it } from 'vitest'
import { createSharedWindows } from '../../src/fleet/windows.ts'
import type { LimitDecision } from '../../src/http/admission.ts'
import { createWindowTable, type WindowPolicy, type WindowTable } from '../../src/limits/window-table.ts'
import { open } from '../store/opened.ts'
import { stillClock } from '../support/clock.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { passOnServer } from './server-time.ts'

const POLICY = { requests: 3, window: 600_000 }

let redis: RedisServer
let stores = 0

/** Windows, and how time passes for them (ms). */
interface Opened {
  readonly table: WindowTable
  pass(ms: number): Promise<void>
}

async function openLocal(policy: WindowPolicy, maxKeys: number): Promise<Opened> {
  const clock = stillClock()
  return { table: createWindowTable(policy, { clock, maxKeys }), pass: clock.advance }
}

async function openShared(policy: WindowPolicy, maxKeys: number): Promise<Opened> {
  needs('redis-server')
  const clock = stillClock()
  const { store } = await open(`valkey://${redis.at}`, { prefix: `windows-${stores++}` }, clock)
  const table = createSharedWindows(policy, {
    store,
    endpoint: 'api',
    clock,
    maxKeys,
    onFallback: (_, error) => expect.unreachable(String(error)),
    onAnswer() {},
    onLost() {
      throw new Error('no window was lost')
    },
  })
  return {
    table,
    async pass(ms) {
      await passOnServer(redis, ms)
      await clock.advance(ms)
    },
  }
}

beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})

describe.each([
  ['of this process', openLocal],
  ['of a shared store', openShared],
])('windows %s', (_family, opened) => {
  async function at(policy: WindowPolicy = POLICY, maxKeys = 100) {
    const { table, pass } = await opened(policy, maxKeys)
    const count = (key: string, times: number): Promise<readonly LimitDecision[]> =>
      Promise.all(Array.from({ length: times }, () => table.count(key)))
    return { table, count, pass }
  }

  it('C14 admit exactly their requests, also those that come at once, and count each key for itself', async () => {
    const { count } = await at()
    const [one, other] = await Promise.all([count('a', 10), count('b', 2)])
    expect(one.map(({ admitted }) => admitted)).toEqual([true, true, true, ...Array(7).fill(false)])
    expect(one.map(({ remaining }) => remaining)).toEqual([2, 1, 0, ...Array(7).fill(0)])
    expect(other.map(({ remaining }) => remaining)).toEqual([2, 1])
    for (const { limit } of one) expect(limit).toBe(POLICY.requests)
  })

  it('C15 are not prolonged by a refused request', async () => {
    const { count, pass } = await at()
    const [first] = await count('a', 3)
    await pass(20)
    const [refused] = await count('a', 1)
    expect(refused).toMatchObject({ admitted: false, remaining: 0 })
    // The server rounds to whole milliseconds.
    expect(refused?.closesIn).toBeLessThanOrEqual((first?.closesIn ?? 0) - 20 + 1)
    expect(refused?.closesIn).toBeGreaterThan(0)
  })

  it('C14 open anew with the first request after their end', async () => {
    const { count, pass } = await at({ requests: 1, window: 60_000 })
    const [first] = await count('a', 1)
    await pass((first?.closesIn ?? 0) + 1)
    const [next] = await count('a', 1)
    expect(next).toMatchObject({ admitted: true, remaining: 0 })
    expect(next?.closesIn).toBeGreaterThan(0)
    expect(next?.closesIn).toBeLessThanOrEqual(60_000)
  })

  it('C17 share one window past the cap, and keep those that are open', async () => {
    const { table, count } = await at(POLICY, 2)
    await count('a', 1)
    await count('b', 1)
    const beyond = [...(await count('c', 2)), ...(await count('d', 2))]
    expect(beyond.map(({ admitted }) => admitted)).toEqual([true, true, true, false])
    for (const decision of beyond) expect(decision).toMatchObject({ overflow: true })
    expect(await count('a', 1)).toMatchObject([{ admitted: true, remaining: 1 }])
    expect(table.size).toBe(2)
  })

  it('C17 tell which ones are used up, with the requests that they refused', async () => {
    const { table, count } = await at(POLICY, 1)
    await count('a', 5)
    await count('b', 4)
    expect(table.usedUp()).toMatchObject([
      { key: 'overflow', refused: 1 },
      { key: 'a', refused: 2 },
    ])
  })

  it('C14 begin empty when the policy changes, and go on when it does not', async () => {
    const { table, count } = await at()
    await count('a', 2)
    table.applyPolicy({ ...POLICY })
    expect(await count('a', 1)).toMatchObject([{ remaining: 0 }])
    table.applyPolicy({ ...POLICY, requests: 5 })
    expect(await count('a', 1)).toMatchObject([{ limit: 5, remaining: 4 }])
    expect(table.usedUp()).toEqual([])
  })
})
