import { describe, expect, it } from 'vitest'
import { verdictOf } from '../../bench/figure.ts'
import {
  capacityTables,
  costFaults,
  deviceLoad,
  devicesBy,
  type Mix,
  operationChecks,
  PACKET,
  type StoreCosts,
} from '../../bench/fleet/capacity.ts'
import { questionFaults, type RunUsage } from '../../bench/fleet/f1-request-cost.ts'
import { sidecarCores } from '../../bench/fleet/f2-several-sidecars.ts'
import { predictionCheck } from '../../bench/fleet/f3-store-capacity.ts'
import type { Usage } from '../../bench/fleet/usage.ts'

const usage = (processor: number, commands: number, received: number, sent: number): Usage => ({
  processor,
  commands,
  received,
  sent,
})

const OPERATIONS: StoreCosts['operations'] = {
  login: usage(3_600, 1, 7_200, 0),
  refresh: usage(1_800, 1, 0, 3_600),
  lookup: usage(36, 1, 0, 0),
  revocation: usage(86_400, 3, 0, 0),
  count: usage(20, 1, 100, 50),
  idle: usage(10, 1, 40, 60),
}

const COSTS: StoreCosts = {
  operations: OPERATIONS,
  memory: { device: 1_000, smallDevice: 500, grant: 200, window: 100, connection: 5_000 },
  connections: 2,
}

const MIX: Mix = {
  sidecars: 2,
  grants: 3,
  loginsPerHour: 1,
  refreshesPerHour: 2,
  revocationsPerDay: 1,
  countedPerSecond: 5,
}

describe('The load of a device', () => {
  it('is the sum of its operations each second, with a lookup by every sidecar that did not issue the token', () => {
    const { usage: load } = deviceLoad(COSTS, MIX)
    // login 1, refreshes 1, lookups 3 × 36 / 3600, revocation 1, counts 100, two idle sidecars 20
    expect(load.processor).toBeCloseTo(1 + 1 + 0.03 + 1 + 100 + 20)
    expect(load.received).toBeCloseTo(2 + 500 + 80)
    expect(load.sent).toBeCloseTo(2 + 250 + 120)
    const alone = deviceLoad(COSTS, { ...MIX, sidecars: 1 })
    expect(alone.usage.processor).toBeCloseTo(load.processor - 0.03 - 10)
  })

  it('is the memory of its keys and connections, and with shared windows one window per client', () => {
    const { memory, connections } = deviceLoad(COSTS, MIX)
    expect(connections).toBe(4)
    expect(memory).toBe(1_000 + 3 * 200 + 3 * 100 + 4 * 5_000)
    expect(deviceLoad(COSTS, { ...MIX, countedPerSecond: 0 }).memory).toBe(memory - 300)
  })
})

it('a server carries as many devices as each of its resources does', () => {
  expect(devicesBy({ usage: usage(100, 2, 300, 500), memory: 2 ** 20, connections: 4 })).toEqual({
    processor: 7_000,
    memory: 24 * 1_024,
    network: Math.floor(87.5e6 / (500 + 2 * PACKET)),
    connections: 2_500,
  })
})

it('the tables of the figure tell of every mix and every operation, and give whole numbers', () => {
  const tables = capacityTables(COSTS)
  expect(tables).toHaveLength(3)
  for (const { head, rows } of tables) {
    expect(rows.length).toBeGreaterThan(0)
    for (const row of rows) expect(row).toHaveLength(head.length)
  }
  expect(tables.flatMap(({ rows }) => rows.flat()).filter((cell) => /NaN|Infinity|^-$/.test(cell))).toEqual(
    [],
  )
})

it('each operation is a check that later runs on the same machine compare', () => {
  expect(operationChecks(COSTS).map(({ id, value, comparable }) => [id, value, comparable])).toEqual(
    Object.entries(OPERATIONS).map(([name, { processor }]) => [`F3 ${name}`, processor, 'same machine']),
  )
})

it.each([
  [1.2, 'pass'],
  [1.3, 'short'],
])('a measurement of %f times the prediction is a check that says %s', (ratio, verdict) => {
  expect(verdictOf(predictionCheck('memory', 'memory', ratio))).toBe(verdict)
})

it('an operation that sent no command, a memory of nothing, and half a connection are faults', () => {
  expect(costFaults(COSTS)).toEqual([])
  const operations = { ...OPERATIONS, count: usage(0, 0, 0, 0) }
  const memory = { ...COSTS.memory, window: 0 }
  expect(costFaults({ ...COSTS, operations, memory, connections: 2.5 })).toEqual([
    'count: nothing was measured',
    'window: no memory was measured',
    'a sidecar has 2.5 connections',
  ])
})

it('a request that asks for its token, and one that is not counted at the server, are faults', () => {
  const usages = (local: number, shared: number, requests = 10_000): Map<string, RunUsage[]> =>
    new Map([
      ['shared tokens', [{ ...usage(1, local, 0, 0), requests, seconds: 2 }]],
      ['shared tokens and windows', [{ ...usage(1, shared, 0, 0), requests, seconds: 2 }]],
    ])
  expect(questionFaults(usages(0.0002, 0.03))).toEqual([])
  expect(questionFaults(usages(1, 1))).toEqual(['shared tokens: admitted requests asked the shared store'])
  // A busy machine: the sidecars ask three times on their own beside 15 requests.
  expect(questionFaults(usages(3 / 15, 0.5, 15))).toEqual([])
  expect(questionFaults(usages(0, 0.0001))).toEqual([
    'shared tokens and windows: requests were not counted in the shared store',
  ])
})

it('sidecars get every core but that of the load', () => {
  expect(sidecarCores({ proxyCore: 0, otherCore: 1 }, 2)).toEqual([0])
  expect(sidecarCores({ proxyCore: 0, otherCore: 1 }, 4)).toEqual([0, 2, 3])
  expect(sidecarCores({ proxyCore: undefined, otherCore: undefined }, 4)).toEqual([undefined])
})
