import { describe, expect, it } from 'vitest'
import { verdictOf } from '../../bench/figure.ts'
import {
  deviceLoad,
  devicesBy,
  endsFirst,
  type Mix,
  type OperationCosts,
  PACKET,
  type StoreCosts,
  serversFor,
} from '../../bench/fleet/capacity.ts'
import {
  capacityTables,
  comparisonCheck,
  costFaults,
  operationChecks,
} from '../../bench/fleet/capacity-tables.ts'
import { questionFaults, type RunUsage } from '../../bench/fleet/f1-request-cost.ts'
import { sidecarCores } from '../../bench/fleet/f2-several-sidecars.ts'
import type { Usage } from '../../bench/fleet/usage.ts'

const usage = (processor: number, commands: number, received: number, sent: number): Usage => ({
  processor,
  commands,
  received,
  sent,
})

const OPERATIONS: OperationCosts = {
  login: usage(3_600, 1, 7_200, 0),
  refresh: usage(1_800, 1, 0, 3_600),
  lookup: usage(36, 1, 0, 0),
  revocation: usage(86_400, 3, 0, 0),
  count: usage(20, 1, 100, 50),
  idle: usage(10, 1, 40, 60),
}

const COSTS: StoreCosts = {
  alone: OPERATIONS,
  together: OPERATIONS,
  memory: { device: 1_000, smallDevice: 500, grant: 200, window: 100, connection: 5_000 },
  connections: 2,
}

const MIX: Mix = {
  name: 'two sidecars',
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

it('a server carries what the first of its resources carries, and a fleet needs whole servers', () => {
  const load = { usage: usage(100, 2, 300, 500), memory: 10_000, connections: 4 }
  const size = { processor: 700_000, memory: 1_000_000_000, network: 1_000_000, connections: 10_000 }
  const devices = devicesBy(load, size)
  expect(devices).toEqual({
    processor: 7_000,
    memory: 100_000,
    network: Math.floor(1_000_000 / (500 + 2 * PACKET)),
    connections: 2_500,
  })
  expect(endsFirst(devices)).toBe('network')
  expect(endsFirst(devices, ['processor', 'memory'])).toBe('processor')
  expect([serversFor(1_000_000, 2_500), serversFor(1_000_001, 2_500)]).toEqual([400, 401])
})

it('the tables of the figure tell of every mix and every operation, and give whole numbers', () => {
  const comparison = { id: 'memory', what: 'memory', unit: 'MiB', predicted: 100, measured: 120 }
  const tables = capacityTables(COSTS, [comparison])
  expect(tables).toHaveLength(7)
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
  [120, 'pass'],
  [130, 'short'],
])('a measurement of %i where 100 was predicted is a check that says %s', (measured, verdict) => {
  const comparison = { id: 'memory', what: 'memory', unit: 'MiB', predicted: 100, measured }
  expect(verdictOf(comparisonCheck(comparison))).toBe(verdict)
})

it('an operation that sent no command, a memory of nothing, and half a connection are faults', () => {
  expect(costFaults(COSTS)).toEqual([])
  const together = { ...OPERATIONS, count: usage(0, 0, 0, 0) }
  const memory = { ...COSTS.memory, window: 0 }
  expect(costFaults({ ...COSTS, together, memory, connections: 2.5 })).toEqual([
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
