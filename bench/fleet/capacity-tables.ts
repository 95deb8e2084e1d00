import type { Check, Table } from '../figure.ts'
import { fixed, rounded } from '../format.ts'
import {
  type DeviceLoad,
  deviceLoad,
  devicesBy,
  endsFirst,
  type Mix,
  type OperationCosts,
  PACKET,
  RESOURCES,
  type Resource,
  type ServerSize,
  type StoreCosts,
  serversFor,
} from './capacity.ts'

/** A prediction of the arithmetic, and what was measured. */
export interface Comparison {
  readonly id: string
  readonly what: string
  readonly unit: string
  readonly predicted: number
  readonly measured: number
}

/** 70 % of a core and of a network of 1 Gbit/s, 24 GiB, and the default of `maxclients`. */
const SIZE: ServerSize = { processor: 700_000, memory: 24 * 2 ** 30, network: 87.5e6, connections: 10_000 }

const FLEET = 1_000_000

/** Servers of the Clusters in the table. */
const CLUSTERS = [3, 6, 12, 48]

const QUIET: Omit<Mix, 'name' | 'sidecars' | 'countedPerSecond'> = {
  grants: 3,
  loginsPerHour: 1,
  refreshesPerHour: 3,
  revocationsPerDay: 1,
}

const MIXES: readonly Mix[] = [
  { name: '1 sidecar, local windows', sidecars: 1, countedPerSecond: 0, ...QUIET },
  { name: '1 sidecar, 1 request/s in shared windows', sidecars: 1, countedPerSecond: 1, ...QUIET },
  { name: '2 sidecars, local windows', sidecars: 2, countedPerSecond: 0, ...QUIET },
  { name: '2 sidecars, 1 request/s in shared windows', sidecars: 2, countedPerSecond: 1, ...QUIET },
  { name: '2 sidecars, 10 requests/s in shared windows', sidecars: 2, countedPerSecond: 10, ...QUIET },
]

/** All that the figure reports. */
export function capacityTables(costs: StoreCosts, comparisons: readonly Comparison[]): Table[] {
  const loads = MIXES.map((mix) => ({ name: mix.name, load: deviceLoad(costs, mix) }))
  return [
    operationTable(costs),
    memoryTable(costs),
    loadTable(loads),
    serverTable(loads),
    millionTable(loads),
    clusterTable(loads),
    comparisonTable(comparisons),
  ]
}

interface NamedLoad {
  readonly name: string
  readonly load: DeviceLoad
}

const OPERATIONS: Readonly<Record<keyof OperationCosts, string>> = {
  login: 'a login',
  refresh: 'a refresh',
  lookup: 'a lookup of a token that another sidecar issued',
  revocation: 'a revocation (in the crowd one sidecar hears of it, alone two)',
  count: 'a counted request (shared windows)',
  idle: 'a second of an idle sidecar',
}

const OPERATION_NAMES = Object.keys(OPERATIONS) as (keyof OperationCosts)[] // of a record with these keys

function operationTable({ alone, together }: StoreCosts): Table {
  return {
    caption: 'What an operation costs the server: in a crowd of sidecars, and of one sidecar alone',
    head: ['operation', 'µs in a crowd', 'µs alone', 'commands', 'bytes received', 'bytes sent'],
    rows: OPERATION_NAMES.map((name) => {
      const { processor, commands, received, sent } = alone[name]
      return [
        OPERATIONS[name],
        fixed(together[name].processor, 0),
        // Two sidecars that do nothing cost less than what the server does on its own varies.
        name === 'idle' ? 'too small' : fixed(processor, 0),
        fixed(commands, 2),
        fixed(received, 0),
        fixed(sent, 0),
      ]
    }),
  }
}

/** What the operations cost in a crowd, for a comparison with other runs. */
export function operationChecks({ together }: StoreCosts): Check[] {
  return OPERATION_NAMES.map((name) => ({
    id: `F3 ${name}`,
    what: `processor time of the server in a crowd: ${OPERATIONS[name]}`,
    unit: 'µs',
    better: 'less',
    value: together[name].processor,
    comparable: 'same machine',
  }))
}

function memoryTable({ memory, connections }: StoreCosts): Table {
  return {
    caption: 'Memory of the server',
    head: ['what', 'bytes'],
    rows: [
      ['a device without logins', fixed(memory.device, 0)],
      ['the same with stream-node-max-bytes 512', fixed(memory.smallDevice, 0)],
      ['a login with its two tokens', fixed(memory.grant, 0)],
      ["a client's shared window", fixed(memory.window, 0)],
      [`a connection (a sidecar has ${connections})`, fixed(memory.connection, 0)],
    ],
  }
}

function loadTable(loads: readonly NamedLoad[]): Table {
  const { grants, loginsPerHour, refreshesPerHour, revocationsPerDay } = QUIET
  return {
    caption: `What one device asks of the server: ${grants} logins alive, each hour ${loginsPerHour} login and ${refreshesPerHour} refreshes, ${revocationsPerDay} revocation a day`,
    head: ['device', 'µs/s', 'commands/s', 'B/s received', 'B/s sent', 'KiB', 'connections'],
    rows: loads.map(({ name, load: { usage, memory, connections } }) => [
      name,
      fixed(usage.processor, 1),
      fixed(usage.commands, 2),
      fixed(usage.received, 0),
      fixed(usage.sent, 0),
      fixed(memory / 1024, 1),
      String(connections),
    ]),
  }
}

/** `maxclients` is a setting, so the resource that ends after it is named, too. */
function serverTable(loads: readonly NamedLoad[]): Table {
  return {
    caption: `Devices that one server carries: 70 % of one core, ${SIZE.memory / 2 ** 30} GiB, 70 % of 1 Gbit/s (with ${PACKET} bytes of headers per command), ${SIZE.connections} connections (the default of maxclients)`,
    head: ['device', ...RESOURCES, 'ends first', 'with more maxclients'],
    rows: loads.map(({ name, load }) => {
      const devices = devicesBy(load, SIZE)
      return [
        name,
        ...RESOURCES.map((resource) => String(devices[resource])),
        endsFirst(devices),
        endsFirst(devices, WITHOUT_CONNECTIONS),
      ]
    }),
  }
}

const WITHOUT_CONNECTIONS: readonly Resource[] = ['processor', 'memory', 'network']

function millionTable(loads: readonly NamedLoad[]): Table {
  return {
    caption: `Servers for ${FLEET.toLocaleString('en')} devices, by each resource; a Cluster spreads the devices evenly`,
    head: ['device', ...RESOURCES, 'servers', 'with more maxclients'],
    rows: loads.map(({ name, load }) => {
      const devices = devicesBy(load, SIZE)
      const servers = (resource: Resource): string => String(serversFor(FLEET, devices[resource]))
      return [
        name,
        ...RESOURCES.map(servers),
        servers(endsFirst(devices)),
        servers(endsFirst(devices, WITHOUT_CONNECTIONS)),
      ]
    }),
  }
}

function clusterTable(loads: readonly NamedLoad[]): Table {
  return {
    caption: 'Devices that one server and a Cluster of so many primaries carry, with more maxclients',
    head: ['device', '1', ...CLUSTERS.map(String)],
    rows: loads.map(({ name, load }) => {
      const devices = devicesBy(load, SIZE)
      const one = devices[endsFirst(devices, WITHOUT_CONNECTIONS)]
      return [name, ...[1, ...CLUSTERS].map((servers) => String(one * servers))]
    }),
  }
}

function comparisonTable(comparisons: readonly Comparison[]): Table {
  return {
    caption: 'The arithmetic beside a measurement',
    head: ['what', 'predicted', 'measured', 'unit'],
    rows: comparisons.map(({ what, predicted, measured, unit }) => [
      what,
      rounded(predicted),
      rounded(measured),
      unit,
    ]),
  }
}

/** Below the threshold the arithmetic promises no more than was measured. */
const TOLERANCE = 1.25

export function comparisonCheck({ id, what, predicted, measured }: Comparison): Check {
  return {
    id: `F3 ${id}`,
    what: `${what}, as a multiple of the prediction`,
    unit: '×',
    better: 'less',
    reach: TOLERANCE,
    value: measured / predicted,
    comparable: 'anywhere',
  }
}

/** What was not measured. */
export function costFaults({ alone, together, memory, connections }: StoreCosts): string[] {
  const operations = [alone, together].flatMap((costs) => Object.entries(costs))
  return [
    // An idle sidecar asks at least twice in six seconds, every operation at least once.
    ...operations
      .filter(([, { commands }]) => !(commands > 0.2))
      .map(([name]) => `${name}: nothing was measured`),
    ...Object.entries(memory).flatMap(([name, bytes]) =>
      bytes > 0 ? [] : [`${name}: no memory was measured`],
    ),
    ...(Number.isInteger(connections) ? [] : [`a sidecar has ${connections} connections`]),
  ]
}
