import type { Check, Table } from '../figure.ts'
import { fixed } from '../format.ts'
import { checkOf } from '../measure.ts'
import type { CrowdCosts } from './crowd.ts'
import { type Usage, usageOf } from './usage.ts'

/** What a server needs for a fleet: processor time, bytes and commands, and memory (bytes). */
export interface StoreCosts {
  /** In a crowd of sidecars: what counts near the capacity of a server. `idle` is one sidecar for one second. */
  readonly operations: CrowdCosts & { readonly idle: Usage }
  readonly memory: MemoryCosts
  /** Connections of a sidecar to a single server. */
  readonly connections: number
}

export interface MemoryCosts {
  /** A device without logins. */
  readonly device: number
  /** The same with `stream-node-max-bytes 512`. */
  readonly smallDevice: number
  /** A login with its tokens. */
  readonly grant: number
  /** A client's window, if windows are shared. */
  readonly window: number
  readonly connection: number
}

/** What a device and its clients do: logins that are alive, each from a client of its own, and how often. */
export interface Mix {
  readonly sidecars: number
  /** Requests per second that count in shared windows; 0 with local windows. */
  readonly countedPerSecond: number
  readonly grants: number
  readonly loginsPerHour: number
  readonly refreshesPerHour: number
  readonly revocationsPerDay: number
}

/** What one device asks of the server: each second, and all the time. */
export interface DeviceLoad {
  readonly usage: Usage
  readonly memory: number
  readonly connections: number
}

const HOUR = 3_600

/** The load of one device. Every other sidecar asks once for each access token that it did not issue. */
export function deviceLoad({ operations, memory, connections }: StoreCosts, mix: Mix): DeviceLoad {
  const issued = mix.loginsPerHour + mix.refreshesPerHour
  const rates: readonly (readonly [Usage, perSecond: number])[] = [
    [operations.login, mix.loginsPerHour / HOUR],
    [operations.refresh, mix.refreshesPerHour / HOUR],
    [operations.lookup, (issued / HOUR) * (mix.sidecars - 1)],
    [operations.revocation, mix.revocationsPerDay / (24 * HOUR)],
    [operations.count, mix.countedPerSecond],
    [operations.idle, mix.sidecars],
  ]
  const all = mix.sidecars * connections
  const windows = mix.countedPerSecond > 0 ? mix.grants : 0
  return {
    usage: usageOf((name) => rates.reduce((sum, [of, rate]) => sum + of[name] * rate, 0)),
    memory: memory.device + mix.grants * memory.grant + windows * memory.window + all * memory.connection,
    connections: all,
  }
}

/** What one server may use: 70 % of a core (µs/s) and of 1 Gbit/s (B/s), 24 GiB, and the default of `maxclients`. */
const SIZE = { processor: 700_000, memory: 24 * 2 ** 30, network: 87.5e6, connections: 10_000 }

export type Resource = keyof typeof SIZE

/** Ethernet, IP and TCP add this to each command and to each reply, if each travels alone (bytes). */
export const PACKET = 66

/** The number of devices that each resource of one server carries. */
export function devicesBy({ usage, memory, connections }: DeviceLoad): Readonly<Record<Resource, number>> {
  const traffic = Math.max(usage.received, usage.sent) + usage.commands * PACKET
  return {
    processor: Math.floor(SIZE.processor / usage.processor),
    memory: Math.floor(SIZE.memory / memory),
    network: Math.floor(SIZE.network / traffic),
    connections: Math.floor(SIZE.connections / connections),
  }
}

const FLEET = 1_000_000

const QUIET = { grants: 3, loginsPerHour: 1, refreshesPerHour: 3, revocationsPerDay: 1 }

/** Requests per second in shared windows, and sidecars of each device. */
const MIXES = [
  [0, 1],
  [1, 1],
  [0, 2],
  [1, 2],
  [10, 2],
] as const

const OPERATIONS: Readonly<Record<keyof StoreCosts['operations'], string>> = {
  login: 'a login',
  refresh: 'a refresh',
  lookup: 'a lookup of a token that another sidecar issued',
  revocation: 'a revocation that one other sidecar hears of',
  count: 'a counted request (shared windows)',
  idle: 'a second of an idle sidecar',
}

const OPERATION_NAMES = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[] // of a record with these keys

/** What the operations cost, for a comparison with other runs. */
export function operationChecks({ operations }: StoreCosts): Check[] {
  return OPERATION_NAMES.map((name) => {
    const what = `processor time of the server in a crowd: ${OPERATIONS[name]}`
    return checkOf(`F3 ${name}`, what, 'µs', operations[name].processor)
  })
}

/** All that the figure reports. */
export function capacityTables(costs: StoreCosts): Table[] {
  const { operations, memory, connections } = costs
  return [
    {
      caption: 'What an operation costs the server in a crowd of sidecars',
      head: ['operation', 'µs', 'commands', 'bytes received', 'bytes sent'],
      rows: OPERATION_NAMES.map((name) => {
        const { processor, commands, received, sent } = operations[name]
        return [OPERATIONS[name], fixed(processor, 0), fixed(commands, 2), fixed(received, 0), fixed(sent, 0)]
      }),
    },
    {
      caption: 'Memory of the server',
      head: ['what', 'bytes'],
      rows: [
        ['a device without logins', fixed(memory.device, 0)],
        ['the same with stream-node-max-bytes 512', fixed(memory.smallDevice, 0)],
        ['a login with its two tokens', fixed(memory.grant, 0)],
        ["a client's shared window", fixed(memory.window, 0)],
        [`a connection (a sidecar has ${connections})`, fixed(memory.connection, 0)],
      ],
    },
    {
      caption: `Devices that one server carries, with ${QUIET.grants} logins alive, each hour ${QUIET.loginsPerHour} login and ${QUIET.refreshesPerHour} refreshes, ${QUIET.revocationsPerDay} revocation a day: by 70 % of one core, ${SIZE.memory / 2 ** 30} GiB, 70 % of 1 Gbit/s (with ${PACKET} bytes of headers per command) and ${SIZE.connections} connections (the default of maxclients, a setting); servers of a Cluster for ${FLEET.toLocaleString('en')} devices`,
      head: ['device', 'processor', 'memory', 'network', 'connections', 'servers', 'with more maxclients'],
      rows: MIXES.map(([countedPerSecond, sidecars]) => {
        const {
          processor,
          memory: most,
          network,
          connections: open,
        } = devicesBy(deviceLoad(costs, { ...QUIET, sidecars, countedPerSecond }))
        const servers = (...devices: readonly number[]): string =>
          String(Math.ceil(FLEET / Math.min(...devices)))
        const windows =
          countedPerSecond === 0 ? 'local windows' : `${countedPerSecond} requests/s in shared windows`
        return [
          `${sidecars === 1 ? '1 sidecar' : `${sidecars} sidecars`}, ${windows}`,
          ...[processor, most, network, open].map(String),
          servers(processor, most, network, open),
          servers(processor, most, network),
        ]
      }),
    },
  ]
}

/** What was not measured. */
export function costFaults({ operations, memory, connections }: StoreCosts): string[] {
  return [
    // An idle sidecar asks at least twice in six seconds, every operation at least once.
    ...OPERATION_NAMES.filter((name) => !(operations[name].commands > 0.2)).map(
      (name) => `${name}: nothing was measured`,
    ),
    ...Object.entries(memory).flatMap(([name, bytes]) =>
      bytes > 0 ? [] : [`${name}: no memory was measured`],
    ),
    ...(Number.isInteger(connections) ? [] : [`a sidecar has ${connections} connections`]),
  ]
}
