import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { beforeEach, expect, it } from 'vitest'
import { createSharedWindows } from '../../src/fleet/windows.ts'
import type { LimitDecision } from '../../src/http/admission.ts'
import type { WindowPolicy, WindowTable } from '../../src/limits/window-table.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { type Opened, open } from '../store/opened.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import type { Flooded, Order } from './flooding-worker.ts'
import { passOnServer } from './server-time.ts'

interface Sidecar extends Opened {
  readonly windows: WindowTable
  readonly clock: MovableClock
  readonly fallbacks: unknown[]
}

async function startSidecar(
  { at }: RedisServer,
  policy: WindowPolicy,
  { timeout = 60_000, maxKeys = 1000 } = {},
): Promise<Sidecar> {
  const clock = stillClock()
  const opened = await open(`valkey://${at}`, { timeout }, clock)
  const fallbacks: unknown[] = []
  const windows = createSharedWindows(policy, {
    store: opened.store,
    endpoint: 'api',
    clock,
    maxKeys,
    onFallback: (_, error) => fallbacks.push(error),
    onAnswer: () => {},
    onLost: () => {
      throw new Error('no window was lost')
    },
  })
  return { ...opened, windows, clock, fallbacks }
}

const countAll = ({ windows }: Sidecar, key: string, times: number): Promise<LimitDecision[]> =>
  Promise.all(Array.from({ length: times }, () => windows.count(key)))

const admitted = (decisions: readonly LimitDecision[]): number =>
  decisions.filter((decision) => decision.admitted).length

/** How often the server ran a command. */
async function callsOf(redis: RedisServer, command: string): Promise<number> {
  const stats = await redis.command('INFO', 'commandstats')
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

/** How many windows were opened. A sidecar also writes a key at its start, and deletes it. */
async function windowsOf(redis: RedisServer): Promise<number> {
  return (await callsOf(redis, 'set')) - (await callsOf(redis, 'del'))
}

const HOUR = 3_600_000

beforeEach(() => needs('redis-server'))

it('C14 H138 exactly the limit passes per window through three event loops, several windows in a row', async () => {
  const policy = { requests: 300, window: HOUR }
  const redis = await startRedis()
  const workers = [0, 1, 2].map(
    () =>
      new Worker(new URL('flooding-worker.ts', import.meta.url), {
        workerData: { port: redis.port, policy },
      }),
  )
  for (const worker of workers) closeLater(async () => void (await worker.terminate()))
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const order = (given: Order): Promise<Flooded[]> =>
    Promise.all(
      workers.map(async (worker): Promise<Flooded> => {
        const result = once(worker, 'message')
        worker.postMessage(given)
        return (await result)[0]
      }),
    )
  for (let window = 1; window <= 3; window += 1) {
    // Each begins while the window is open, and ends when it is used up.
    const begun = await order({ after: window === 1 ? 0 : HOUR, until: 'one turn' })
    const ended = await order({ after: 0, until: 'used up' })
    for (const { admitted: passed } of begun) expect(passed).toBeGreaterThan(0)
    for (const { refused, fallbacks } of ended) {
      expect(refused).toBeGreaterThan(0)
      expect(fallbacks).toBe(0)
    }
    expect([...begun, ...ended].reduce((total, { admitted: passed }) => total + passed, 0)).toBe(300)
    expect(await redis.command('GET', `{postern}:w:api:300:${HOUR}:client`)).toBe('300')
    await passOnServer(redis, HOUR)
  }
})

it('C14 H138 thousands of concurrent requests of three sidecars count exactly, each with its own remaining', async () => {
  const redis = await startRedis()
  const policy = { requests: 1000, window: HOUR }
  const sidecars = await Promise.all([0, 1, 2].map(() => startSidecar(redis, policy)))
  const decisions = (
    await Promise.all(
      sidecars.map(async (sidecar) => {
        const turns: LimitDecision[][] = []
        for (let turn = 0; turn < 40; turn += 1) turns.push(await countAll(sidecar, '192.0.2.1', 50))
        return turns.flat()
      }),
    )
  ).flat()
  expect(decisions).toHaveLength(6000)
  const passed = decisions.filter((decision) => decision.admitted)
  expect(passed.map(({ remaining }) => remaining).sort((a, b) => b - a)).toEqual(
    Array.from({ length: 1000 }, (_, i) => 999 - i),
  )
  for (const { closesIn } of decisions) {
    expect(closesIn).toBeGreaterThan(HOUR - 60_000)
    expect(closesIn).toBeLessThanOrEqual(HOUR)
  }
  expect(await redis.command('KEYS', '*')).toBe(`{postern}:w:api:1000:${HOUR}:192.0.2.1`)
  expect(await redis.command('GET', `{postern}:w:api:1000:${HOUR}:192.0.2.1`)).toBe('1000')
})

it('C15 H138 a refused request neither raises the count nor prolongs the window on the server', async () => {
  const redis = await startRedis()
  const policy = { requests: 2, window: HOUR }
  const name = `{postern}:w:api:2:${HOUR}:a`
  const first = await startSidecar(redis, policy)
  await countAll(first, 'a', 1)
  const opened = Number(await redis.command('PEXPIRETIME', name))
  expect(admitted(await countAll(first, 'a', 9))).toBe(1)
  const second = await startSidecar(redis, policy)
  expect(await second.windows.count('a')).toMatchObject({ admitted: false, remaining: 0 })
  expect(await redis.command('GET', name)).toBe('2')
  expect(await callsOf(redis, 'incrby'), 'a refusal writes nothing').toBe(1)
  expect(Number(await redis.command('PEXPIRETIME', name))).toBe(opened)
  const evaluated = await callsOf(redis, 'evalsha')
  for (let i = 0; i < 1000; i += 1) expect(second.windows.count('a')).toMatchObject({ admitted: false })
  expect(await callsOf(redis, 'evalsha')).toBe(evaluated)
})

it('C14 H138 the clock of the server decides when a window closes', async () => {
  const redis = await startRedis()
  const sidecar = await startSidecar(redis, { requests: 2, window: HOUR })
  const name = `{postern}:w:api:2:${HOUR}:a`
  await countAll(sidecar, 'a', 1)
  // As if the server's clock were set back: a window never has more time than its length.
  await redis.command('PEXPIRE', name, String(5 * HOUR))
  expect(await sidecar.windows.count('a')).toMatchObject({
    admitted: true,
    limit: 2,
    remaining: 0,
    closesIn: HOUR,
  })
  expect(Number(await redis.command('PTTL', name))).toBeLessThanOrEqual(HOUR)
  // And forward: the window has closed.
  const other = await startSidecar(redis, { requests: 2, window: HOUR })
  await redis.command('PEXPIRE', name, '0')
  expect(await other.windows.count('a')).toMatchObject({
    admitted: true,
    limit: 2,
    remaining: 1,
    closesIn: HOUR,
  })
  // A name without an end gets one.
  await redis.command('PERSIST', name)
  await other.windows.count('a')
  expect(Number(await redis.command('PTTL', name))).toBeGreaterThan(0)
})

it('C17 a full sidecar opens one more window, and uses those that others opened', async () => {
  const redis = await startRedis()
  const policy = { requests: 3, window: HOUR }
  const [full, other] = [await startSidecar(redis, policy, { maxKeys: 1 }), await startSidecar(redis, policy)]
  await countAll(other, 'client', 2)
  await countAll(full, 'a', 1)
  const [ofClient, ofOthers] = await Promise.all([countAll(full, 'client', 4), countAll(full, 'new', 2)])
  expect(admitted(ofClient)).toBe(1)
  expect(ofOthers.map(({ remaining }) => remaining)).toEqual([2, 1])
  const names = (await redis.command('KEYS', '*')).split('\n')
  expect(names.map((name) => name.split(':').at(-1)).sort()).toEqual(['a', 'client', 'overflow'])
})

it('C13 H138 a reload opens new windows in all sidecars that have the new limit', async () => {
  const redis = await startRedis()
  const sidecars = [0, 1].map(() => startSidecar(redis, { requests: 2, window: HOUR }))
  const [one, two] = (await Promise.all(sidecars)) as [Sidecar, Sidecar]
  expect(admitted(await countAll(one, 'a', 5))).toBe(2)
  one.windows.applyPolicy({ requests: 7, window: HOUR })
  expect(admitted(await countAll(one, 'a', 4))).toBe(4)
  expect(admitted(await countAll(two, 'a', 4))).toBe(0)
  two.windows.applyPolicy({ requests: 7, window: HOUR })
  expect(admitted(await countAll(two, 'a', 4))).toBe(3)
})

it('H139 a silent server: counted alone after the timeout, at once from then on, and shared again when it answers', async () => {
  const redis = await startRedis()
  const sidecar = await startSidecar(redis, { requests: 10, window: HOUR }, { timeout: 3_000 })
  await countAll(sidecar, 'a', 4)
  await countAll(sidecar, 'used up', 10)
  redis.freeze()
  const unanswered = countAll(sidecar, 'a', 30)
  // The question leaves in this turn.
  await nextTurn()
  await sidecar.clock.advance(2_999)
  expect(sidecar.store.up).toBe(true)
  await sidecar.clock.advance(1)
  expect(sidecar.store.up).toBe(false)
  expect(admitted(await unanswered)).toBe(10)
  expect(sidecar.fallbacks).toHaveLength(30)
  expect(sidecar.windows.count('b')).toMatchObject({ admitted: true, remaining: 9 })
  expect(sidecar.windows.count('used up')).toMatchObject({ admitted: false })
  expect(sidecar.fallbacks).toHaveLength(31)
  redis.thaw()
  await sidecar.connectAgain()
  // The server may have run what nobody waited for: then the window is used up. It is never more open than before.
  const later = await countAll(sidecar, 'a', 30)
  expect([0, 6]).toContain(admitted(later))
  expect(sidecar.fallbacks).toHaveLength(31)
})

it('H139 a server killed under load and started anew: every request is decided, within the limit of each table', async () => {
  const redis = await startRedis()
  const policy = { requests: 50, window: HOUR }
  const sidecars = await Promise.all([0, 1, 2].map(() => startSidecar(redis, policy, { timeout: 2_000 })))
  let killed = false
  const floods = sidecars.map(async (sidecar) => {
    let passed = 0
    for (let turn = 0; turn < 60 || !killed || !sidecar.store.up; turn += 1) {
      passed += admitted(await countAll(sidecar, `client ${turn % 3}`, 5))
      if (sidecar.store.up) await nextTurn()
      else await sidecar.connectAgain()
    }
    return passed
  })
  // The server has opened the windows of the three clients.
  await expect.poll(() => windowsOf(redis)).toBeGreaterThanOrEqual(3)
  await redis.restart()
  killed = true
  const passed = (await Promise.all(floods)).reduce((sum, one) => sum + one, 0)
  // Three clients: a window on each of the two servers, and one in each of the three sidecars.
  expect(passed).toBeGreaterThanOrEqual(3 * 50)
  expect(passed).toBeLessThanOrEqual(3 * 50 * (2 + 3))
  for (const sidecar of sidecars) expect(sidecar.store.up).toBe(true)
  const [one, two] = sidecars as [Sidecar, Sidecar, Sidecar]
  const after = [...(await countAll(one, 'fresh', 40)), ...(await countAll(two, 'fresh', 40))]
  expect(admitted(after)).toBe(50)
})
