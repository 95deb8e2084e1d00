import type { Check, Table } from '../figure.ts'
import { fixed } from '../format.ts'
import { checkOf } from '../measure.ts'
import type { CrowdCosts } from './crowd.ts'
import type { Usage } from './usage.ts'

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
export function costTables(costs: StoreCosts): Table[] {
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
