import { setTimeout as pause } from 'node:timers/promises'
import type { Findings } from '../figure.ts'
import { type Figure, type Lab, notInstalled } from '../lab.ts'
import { costFaults, costTables, operationChecks, type StoreCosts } from './costs.ts'
import { addDevices, measureTogether, startMembers, windowMemory } from './crowd.ts'
import { openStore } from './member.ts'
import { type Server, serverVersion, startServer } from './server.ts'
import { createMeter, readCounters } from './usage.ts'

/** Devices of each half of the sample, and devices with a sidecar. */
const SAMPLE = 1_000
const SIDECARS = 500

/** Logins of each device of the second half. */
const GRANTS = 3

/** How often each sidecar does each operation. */
const ROUNDS = 4

/** An idle sidecar waits for messages three times, two seconds each, and then reads the state (s). */
const SECONDS = 6.1

/** `stream-node-max-bytes`: a stream takes so much memory at once. */
const DEFAULT_NODE = 4_096
const SMALL_NODE = 512

const NOTES = [
  'the cost of idle sidecars is that at a server with nothing else to do; a busy one wakes up less often for them, so it carries more than these costs say',
  'with Sentinel or a Cluster a sidecar has a third connection, each login and revocation waits for a replica (WAIT), and each replica costs the network every write once more',
  'all keys of a device are on one server, so a Cluster carries more devices, and no larger ones',
]

export const storeCosts: Figure = {
  id: 'F3',
  title: 'What sharing costs the server',
  about: `What operations of ${SIDECARS} sidecars without HTTP cost a redis-server, each done by all at the same time: processor time, commands and bytes from INFO, memory from the keys of ${2 * SAMPLE} devices.`,
  async measure(lab) {
    const version = await serverVersion()
    if (version === undefined) return notInstalled('redis-server')
    const server = await startServer(lab.proxyCore)
    try {
      return { ...(await measureCrowd(lab, server)), notes: [`redis-server ${version}`, ...NOTES] }
    } finally {
      await server.stop()
    }
  },
}

/** Measures memory on a sample, and operations in a crowd. */
async function measureCrowd({ part }: Lab, server: Server): Promise<Partial<Findings>> {
  const { client } = server
  const sized = (count: number): number => Math.ceil(count * part)
  const meter = await createMeter(client, SECONDS)
  const store = await openStore(server, 'crowd')
  // The hash table of the keys doubles: a small sample would measure that.
  const sample = Math.max(SAMPLE / 2, sized(SAMPLE))
  let devices = 0
  /** Memory of each of so many new devices. */
  const grown = async (count: number, grants: number): Promise<number> => {
    const before = await readCounters(client)
    await addDevices(store, devices, devices + count, grants)
    devices += count
    return ((await readCounters(client)).memory - before.memory) / count
  }
  const few = await grown(sample, 1)
  const grant = ((await grown(sample, GRANTS)) - few) / (GRANTS - 1)
  const device = few - grant
  await client.configSet('stream-node-max-bytes', String(SMALL_NODE))
  const smallDevice = (await grown(sample, 1)) - grant
  await client.configSet('stream-node-max-bytes', String(DEFAULT_NODE))

  const [before, open] = [await readCounters(client), await connectionsOf(server)]
  const members = await startMembers(server, sized(SIDECARS))
  const idle = await meter(members.length * SECONDS, () => pause(SECONDS * 1000))
  const connections = ((await connectionsOf(server)) - open) / members.length
  const connection =
    ((await readCounters(client)).connections - before.connections) / members.length / connections
  const together = await measureTogether(meter, members, Math.max(1, ROUNDS * part))
  const window = await windowMemory(client, members)
  await Promise.all([store.close(), ...members.map((member) => member.close())])

  const memory = { device, smallDevice, grant, window, connection }
  const costs: StoreCosts = { operations: { ...together, idle }, memory, connections }
  return {
    checks: operationChecks(costs),
    tables: costTables(costs),
    faults: costFaults(costs),
  }
}

async function connectionsOf({ client }: Server): Promise<number> {
  const text = await client.sendCommand<string>(['INFO', 'clients'])
  return Number(/^connected_clients:(\d+)/m.exec(text)?.[1])
}
