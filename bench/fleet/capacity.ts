import { combine } from './meter.ts'
import type { Usage } from './usage.ts'

/** What an operation costs the server. */
export interface OperationCosts {
  readonly login: Usage
  readonly refresh: Usage
  /** A token that the sidecar does not know yet. */
  readonly lookup: Usage
  /** Including the message to the sidecars. */
  readonly revocation: Usage
  /** A request that is counted in a shared window. */
  readonly count: Usage
  /** One sidecar for one second, without any request. */
  readonly idle: Usage
}

/** Memory of the server (bytes). */
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

export interface StoreCosts {
  /** Each operation of a real sidecar on its own. */
  readonly alone: OperationCosts
  /** In a crowd of sidecars: what counts near the capacity of a server. */
  readonly together: OperationCosts
  readonly memory: MemoryCosts
  /** Connections of a sidecar to a single server. */
  readonly connections: number
}

/** What a device and its clients do. */
export interface Mix {
  readonly name: string
  readonly sidecars: number
  /** Logins that are alive, each from a client of its own. */
  readonly grants: number
  readonly loginsPerHour: number
  readonly refreshesPerHour: number
  readonly revocationsPerDay: number
  /** Requests per second that count in shared windows; 0 with local windows. */
  readonly countedPerSecond: number
}

/** What one device asks of the server. */
export interface DeviceLoad {
  /** Each second. */
  readonly usage: Usage
  readonly memory: number
  readonly connections: number
}

const HOUR = 3_600
const DAY = 24 * HOUR

/** The load of one device. Every other sidecar asks once for each access token that it did not issue. */
export function deviceLoad({ together, memory, connections }: StoreCosts, mix: Mix): DeviceLoad {
  const issued = mix.loginsPerHour + mix.refreshesPerHour
  const rates: readonly (readonly [Usage, number])[] = [
    [together.login, mix.loginsPerHour / HOUR],
    [together.refresh, mix.refreshesPerHour / HOUR],
    [together.lookup, (issued / HOUR) * (mix.sidecars - 1)],
    [together.revocation, mix.revocationsPerDay / DAY],
    [together.count, mix.countedPerSecond],
    [together.idle, mix.sidecars],
  ]
  const all = mix.sidecars * connections
  const windows = mix.countedPerSecond > 0 ? mix.grants : 0
  return {
    usage: combine(together.idle, (_, name) => rates.reduce((sum, [of, rate]) => sum + of[name] * rate, 0)),
    memory: memory.device + mix.grants * memory.grant + windows * memory.window + all * memory.connection,
    connections: all,
  }
}

/** What one server may use. */
export interface ServerSize {
  /** Processor time of each second (µs): commands run on one core. */
  readonly processor: number
  readonly memory: number
  /** Bytes per second in each direction. */
  readonly network: number
  readonly connections: number
}

export type Resource = keyof ServerSize
export const RESOURCES = [
  'processor',
  'memory',
  'network',
  'connections',
] as const satisfies readonly Resource[]

/** Ethernet, IP and TCP add this to each command and to each reply, if each travels alone (bytes). */
export const PACKET = 66

/** The number of devices that each resource of one server carries. */
export function devicesBy(load: DeviceLoad, size: ServerSize): Readonly<Record<Resource, number>> {
  const { usage } = load
  const traffic = Math.max(usage.received, usage.sent) + usage.commands * PACKET
  return {
    processor: Math.floor(size.processor / usage.processor),
    memory: Math.floor(size.memory / load.memory),
    network: Math.floor(size.network / traffic),
    connections: Math.floor(size.connections / load.connections),
  }
}

/** The resource that ends first, of these. */
export function endsFirst(
  devices: Readonly<Record<Resource, number>>,
  of: readonly Resource[] = RESOURCES,
): Resource {
  return of.reduce((least, resource) => (devices[resource] < devices[least] ? resource : least))
}

/** Servers that so many devices need. All keys of a device are on one server, and a Cluster spreads the devices evenly. */
export function serversFor(devices: number, perServer: number): number {
  return Math.ceil(devices / perServer)
}
