import { setTimeout as pause } from 'node:timers/promises'
import type { Figure } from '../figure.ts'
import { notInstalled } from '../growth/point.ts'
import type { Lab } from '../lab.ts'
import { MEBIBYTE } from '../process-usage.ts'
import { say } from '../run-program.ts'
import type { StoreCosts } from './capacity.ts'
import {
  type Comparison,
  capacityTables,
  comparisonCheck,
  costFaults,
  operationChecks,
} from './capacity-tables.ts'
import { addDevices, keepPace, measureTogether, startMembers } from './crowd.ts'
import { openStore } from './member.ts'
import { createMeter } from './meter.ts'
import { measureOperations, SHORTEST, type SidecarCosts } from './operations.ts'
import { type Server, serverVersion, startServer } from './server.ts'
import { readCounters } from './usage.ts'

/** Devices of each half of the sample, devices of the crowd, and how many of those have a sidecar. */
const SAMPLE = 1_000
const CROWD = 20_000
const SIDECARS = 500

/** Logins that are alive on each device of the crowd. */
const GRANTS = 3

/** How often each sidecar does each operation. */
const ROUNDS = 4

/** What all sidecars do in a second, for the comparison with the arithmetic. */
const LOGINS = 200
const COUNTS = 4_000
const SECONDS = 4.5

/** `stream-node-max-bytes`: a stream takes so much memory at once. */
const DEFAULT_NODE = 4_096
const SMALL_NODE = 512

const NOTES = [
  'the cost of idle sidecars is that at a server with nothing else to do; a busy one wakes up less often for them, so it carries more than the tables say',
  'with Sentinel or a Cluster a sidecar has a third connection, each login and revocation waits for a replica (WAIT), and each replica costs the network every write once more',
  'all keys of a device are on one server, so a Cluster carries more devices, and no larger ones',
]

export const storeCapacity: Figure = {
  id: 'F3',
  title: 'How large a fleet one server carries',
  about: `What each operation of real sidecars costs a redis-server: processor time, commands and bytes from INFO, memory from the keys of ${2 * SAMPLE} devices. From that follows how many devices one server carries, and which of its resources ends first. A crowd of ${CROWD} devices with ${GRANTS} logins each and ${SIDECARS} connected sidecars checks the arithmetic.`,
  async measure(lab) {
    const version = await serverVersion()
    if (version === undefined) return notInstalled('redis-server')
    const sidecar = await onServer(lab, (server) => measureOperations(lab, server))
    const { costs, comparisons } = await onServer(lab, (server) => measureCrowd(lab, server, sidecar))
    return {
      checks: [...comparisons.map(comparisonCheck), ...operationChecks(costs)],
      charts: [],
      tables: capacityTables(costs, comparisons),
      notes: [`redis-server ${version}`, ...NOTES],
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

/** Measures memory on a sample and operations in a crowd, and compares the arithmetic with all that the crowd does. */
async function measureCrowd(
  { part }: Lab,
  server: Server,
  { alone, connections, window }: SidecarCosts,
): Promise<{ readonly costs: StoreCosts; readonly comparisons: readonly Comparison[] }> {
  const { client } = server
  const sized = (count: number): number => Math.ceil(count * part)
  const seconds = Math.max(SHORTEST, SECONDS * part)
  const meter = await createMeter(client, seconds)
  const store = await openStore(server, 'crowd')
  // The hash table of the keys doubles: a small sample would measure that.
  const sample = Math.max(SAMPLE / 2, sized(SAMPLE))
  let devices = 0
  /** Memory of each of so many new devices. */
  const grown = async (count: number, grants: number): Promise<number> => {
    const before = await readCounters(client)
    await addDevices(store, { from: devices, to: devices + count, grants })
    devices += count
    return ((await readCounters(client)).memory - before.memory) / count
  }
  const few = await grown(sample, 1)
  const grant = ((await grown(sample, GRANTS)) - few) / (GRANTS - 1)
  const device = few - grant
  await client.configSet('stream-node-max-bytes', String(SMALL_NODE))
  const smallDevice = (await grown(sample, 1)) - grant
  await client.configSet('stream-node-max-bytes', String(DEFAULT_NODE))
  const crowd = await grown(sized(CROWD), GRANTS)
  say(`  ${sized(CROWD)} devices: ${(crowd / 1024).toFixed(1)} KiB each`)

  const before = await readCounters(client)
  const members = await startMembers(server, sized(SIDECARS))
  const idle = await meter.cost(members.length * seconds, () => pause(seconds * 1000))
  const connection =
    ((await readCounters(client)).connections - before.connections) / members.length / connections
  const together = { ...(await measureTogether(meter, members, Math.max(1, ROUNDS * part))), idle }
  let done = { logins: 0, counts: 0, seconds: 0 }
  const paced = await meter.cost(1, async () => {
    done = await keepPace(members, { logins: sized(LOGINS), counts: sized(COUNTS) }, seconds)
  })
  await Promise.all([store.close(), ...members.map((member) => member.close())])

  const memory = { device, smallDevice, grant, window, connection }
  const costs: StoreCosts = { alone, together, memory, connections }
  const predicted =
    done.logins * together.login.processor +
    done.counts * together.count.processor +
    done.seconds * members.length * idle.processor
  return {
    costs,
    comparisons: [
      {
        id: 'memory',
        what: `memory of ${sized(CROWD)} devices with ${GRANTS} logins each`,
        unit: 'MiB',
        predicted: (sized(CROWD) * (device + GRANTS * grant)) / MEBIBYTE,
        measured: (sized(CROWD) * crowd) / MEBIBYTE,
      },
      {
        id: 'processor',
        what: `processor time for ${members.length} sidecars that do ${done.logins} logins and count ${done.counts} requests in ${done.seconds.toFixed(1)} s`,
        unit: 'ms',
        predicted: predicted / 1000,
        measured: paced.processor / 1000,
      },
    ],
  }
}
