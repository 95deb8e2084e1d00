import { setTimeout as pause } from 'node:timers/promises'
import type { Findings } from '../figure.ts'
import { fixed } from '../format.ts'
import { type Figure, type Lab, notInstalled } from '../lab.ts'
import { checkOf } from '../measure.ts'
import { atEnd } from '../run-program.ts'
import { addDevices, type CrowdCosts, measureTogether, startMembers, windowMemory } from './crowd.ts'
import { openStore } from './member.ts'
import { type Server, serverVersion, startServer } from './server.ts'
import { createMeter, readCounters, type Usage } from './usage.ts'

/** What a server needs for a fleet: processor time, bytes and commands, and memory (bytes). */
export interface StoreCosts {
  /** In a crowd of sidecars: what counts near the capacity of a server. `idle` is one sidecar for one second. */
  readonly operations: CrowdCosts & { readonly idle: Usage }
  readonly memory: Readonly<Record<keyof typeof MEMORY, number>>
  /** Connections of a sidecar to a single server. */
  readonly connections: number
}

const OPERATIONS: Readonly<Record<keyof StoreCosts['operations'], string>> = {
  login: 'a login',
  refresh: 'a refresh',
  lookup: 'a lookup of a token that another sidecar issued',
  revocation: 'a revocation that one other sidecar hears of',
  count: 'a counted request (shared windows)',
  idle: 'a second of an idle sidecar',
}

const OPERATION_NAMES = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[] // of a record with these keys

const MEMORY = {
  device: 'a device without logins',
  smallDevice: 'the same with stream-node-max-bytes 512',
  grant: 'a login with its two tokens',
  window: "a client's shared window",
  connection: 'a connection',
} as const

const MEMORY_NAMES = Object.keys(MEMORY) as (keyof typeof MEMORY)[] // of an object with these keys

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
  'with `store.replicas` a sidecar has a third connection, each login and revocation waits for a replica (WAIT), and each replica costs the network every write once more',
  'all keys of a device are on one server, so several servers carry more devices, and no larger ones',
]

export const storeCosts: Figure = {
  id: 'F3',
  title: 'What sharing costs the server',
  about: `What operations of ${SIDECARS} sidecars without HTTP cost a redis-server, each done by all at the same time: processor time, commands and bytes from INFO, memory from the keys of ${2 * SAMPLE} devices.`,
  async measure(lab) {
    const version = await serverVersion()
    if (version === undefined) return notInstalled('redis-server')
    const findings = costFindings(await measureCrowd(lab, await startServer(lab.proxyCore)))
    return { ...findings, notes: [`redis-server ${version}`, ...findings.notes, ...NOTES] }
  },
}

/** All that the figure reports. The processor times are checks, so that later runs are compared with them. */
export function costFindings({ operations, memory, connections }: StoreCosts): Findings {
  return {
    checks: OPERATION_NAMES.map((name) => {
      const what = `processor time of the server in a crowd: ${OPERATIONS[name]}`
      return checkOf(`F3 ${name}`, what, 'µs', operations[name].processor)
    }),
    tables: [
      {
        caption: 'What an operation costs the server in a crowd of sidecars',
        head: ['operation', 'µs', 'commands', 'bytes received', 'bytes sent'],
        rows: OPERATION_NAMES.map((name) => {
          const { processor, commands, received, sent } = operations[name]
          return [
            OPERATIONS[name],
            fixed(processor, 0),
            fixed(commands, 2),
            fixed(received, 0),
            fixed(sent, 0),
          ]
        }),
      },
      {
        caption: 'Memory of the server',
        head: ['what', 'bytes'],
        rows: MEMORY_NAMES.map((name) => [MEMORY[name], fixed(memory[name], 0)]),
      },
    ],
    notes: [`a sidecar has ${connections} connections`],
    faults: [
      // An idle sidecar asks at least twice in six seconds, every operation at least once.
      ...OPERATION_NAMES.filter((name) => !(operations[name].commands > 0.2)).map(
        (name) => `${name}: nothing was measured`,
      ),
      ...MEMORY_NAMES.filter((name) => !(memory[name] > 0)).map((name) => `${name}: no memory was measured`),
      ...(Number.isInteger(connections) ? [] : [`a sidecar has ${connections} connections`]),
    ],
  }
}

/** Measures memory on a sample, and operations in a crowd. */
async function measureCrowd({ part }: Lab, server: Server): Promise<StoreCosts> {
  const { client } = server
  const sized = (count: number): number => Math.ceil(count * part)
  const meter = await createMeter(client, SECONDS)
  const store = await openStore(server, 'crowd')
  atEnd(() => store.close())
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
  const memory = { device, smallDevice, grant, window, connection }
  return { operations: { ...together, idle }, memory, connections }
}

async function connectionsOf({ client }: Server): Promise<number> {
  const text = await client.sendCommand<string>(['INFO', 'clients'])
  return Number(/^connected_clients:(\d+)/m.exec(text)?.[1])
}
