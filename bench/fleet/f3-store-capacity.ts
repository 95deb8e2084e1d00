import { setTimeout as pause } from 'node:timers/promises'
import type { Figure } from '../figure.ts'
import { notInstalled } from '../growth/point.ts'
import type { Lab } from '../lab.ts'
import { MEBIBYTE } from '../process-usage.ts'
import { say } from '../run-program.ts'
import type { StoreCosts } from './capacity.ts'
import { type Comparison, capacityTables, comparisonCheck, costFaults } from './capacity-tables.ts'
import { addDevices, logIn, openStore, startFollowers } from './crowd.ts'
import { createMeter } from './meter.ts'
import { measureOperations, type SidecarCosts } from './operations.ts'
import { type Server, serverVersion, startServer } from './server.ts'
import { readCounters } from './usage.ts'

/** Devices of each half of the sample, devices of the crowd, and how many of those have a sidecar. */
const SAMPLE = 1_000
const CROWD = 20_000
const SIDECARS = 500

/** Logins that are alive on each device of the crowd. */
const GRANTS = 3

/** The load on the crowd, for the comparison with the arithmetic. */
const LOGINS_PER_SECOND = 100
const SECONDS = 4.5

export const storeCapacity: Figure = {
  id: 'F3',
  title: 'How large a fleet one server carries',
  about: `What each operation of real sidecars costs a redis-server: processor time, commands and bytes from INFO, memory from the keys of ${2 * SAMPLE} devices. From that follows how many devices one server carries, and which of its resources ends first. A crowd of ${CROWD} devices with ${GRANTS} logins each and ${SIDECARS} connected sidecars checks the arithmetic.`,
  async measure(lab) {
    const version = await serverVersion()
    if (version === undefined) return notInstalled('redis-server')
    const sidecar = await onServer(lab, (server) => measureOperations(lab, server))
    say(`  an idle sidecar costs the server ${sidecar.operations.idle.processor.toFixed(0)} µs per second`)
    const { costs, comparisons } = await onServer(lab, (server) => measureCrowd(lab, server, sidecar))
    return {
      checks: comparisons.map(comparisonCheck),
      charts: [],
      tables: capacityTables(costs, comparisons),
      notes: [`redis-server ${version}`],
      faults: costFaults(costs),
    }
  },
}

async function onServer<T>(lab: Lab, run: (server: Server) => Promise<T>): Promise<T> {
  const server = await startServer(lab.proxyCore)
  try {
    return await run(server)
  } finally {
    await server.stop()
  }
}

/** Measures memory on a sample, then adds the crowd, connects sidecars, and compares what that costs with the arithmetic. */
async function measureCrowd(
  { part }: Lab,
  server: Server,
  { operations, connections, window }: SidecarCosts,
): Promise<{ readonly costs: StoreCosts; readonly comparisons: readonly Comparison[] }> {
  const { client } = server
  const [sample, crowd, sidecars] = [SAMPLE, CROWD, SIDECARS].map((count) => Math.ceil(count * part)) as [
    number,
    number,
    number,
  ] // of a list with three numbers
  const meter = await createMeter(client, Math.max(1, SECONDS * part))
  const store = await openStore(server, 'crowd')
  const memory = async (): Promise<number> => (await readCounters(client)).memory
  const grown = async (from: number, count: number, grants: number): Promise<number> => {
    const before = await memory()
    await addDevices(store, { from, to: from + count, grants })
    return ((await memory()) - before) / count
  }
  const few = await grown(0, sample, 1)
  const many = await grown(sample, sample, GRANTS)
  const grant = (many - few) / (GRANTS - 1)
  const device = few - grant
  const crowdMemory = await grown(2 * sample, crowd, GRANTS)
  say(`  ${crowd} devices: ${(crowdMemory / 1024).toFixed(1)} KiB each`)

  const before = await readCounters(client)
  const followers = await startFollowers(server, sidecars)
  const seconds = Math.max(2, SECONDS * part)
  // The server brings the memory of its connections up to date once a second.
  const idle = await meter.cost(sidecars * seconds, () => pause(seconds * 1000))
  const connected = await readCounters(client)
  const connection = (connected.connections - before.connections) / sidecars / connections

  const logins = Math.round(LOGINS_PER_SECOND * seconds)
  const begin = performance.now()
  const busy = await meter.cost(1, async () => {
    for (let i = 0; i < logins; i += 1) {
      const follower = followers.each[i % followers.each.length]
      if (follower === undefined) continue
      const { store, epoch } = follower
      await Promise.all([
        logIn(store, { prefix: store.prefix, epoch }, i % 200),
        pause(1000 / LOGINS_PER_SECOND),
      ])
    }
  })
  const passed = (performance.now() - begin) / 1000
  await followers.close()
  await store.close()
  const costs: StoreCosts = { operations, memory: { device, grant, window, connection }, connections }
  return {
    costs,
    comparisons: [
      {
        id: 'memory',
        what: `memory of ${crowd} devices with ${GRANTS} logins each`,
        unit: 'MiB',
        predicted: (crowd * (device + GRANTS * grant)) / MEBIBYTE,
        measured: (crowd * crowdMemory) / MEBIBYTE,
      },
      {
        id: 'idle',
        what: `processor time of ${sidecars} idle sidecars for a second`,
        unit: 'ms',
        predicted: (sidecars * operations.idle.processor) / 1000,
        measured: (sidecars * idle.processor) / 1000,
      },
      {
        id: 'logins',
        what: `processor time of the same with ${logins} logins`,
        unit: 'ms',
        predicted:
          (sidecars * passed * operations.idle.processor + logins * operations.login.processor) / 1000,
        measured: busy.processor / 1000,
      },
    ],
  }
}
