import process from 'node:process'
import { outputOf } from './child.ts'
import { type Device, startFastDevice } from './device.ts'
import { autocannonGenerator } from './load/autocannon.ts'
import type { Generator } from './load/generator.ts'
import { h2loadGenerator } from './load/h2load.ts'
import { wrkGenerator } from './load/wrk.ts'
import { canPin } from './machine.ts'
import type { Program } from './program.ts'
import { say } from './say.ts'

/** How long and how often things are measured. */
export interface Effort {
  readonly rounds: number
  /** Of one round. */
  readonly seconds: number
  readonly warmUpSeconds: number
  /** For figures that count rather than time: what part of the full number will do. */
  readonly part: number
}

/** Where everything is measured: the cores, the fast device, the load generators. */
export interface Lab extends Effort {
  /** The proxy has this core for itself; undefined where processes cannot be pinned. */
  readonly proxyCore: number | undefined
  /** Device, load and this program share the other. */
  readonly otherCore: number | undefined
  /** nginx where it is installed. */
  readonly device: Device
  readonly autocannon: Generator
  /** Undefined where not installed. */
  readonly wrk: Generator | undefined
  readonly h2load: Generator | undefined
  /** Names and versions of what of these is there. */
  readonly tools: readonly string[]
  /** What is measured as Postern. */
  readonly program: Program
  /** Names of the peers to measure; undefined for all. */
  readonly peers: readonly string[] | undefined
  /** P1f adds each capability to the floor, where it otherwise measures the floor and Postern alone. */
  readonly everyCapability: boolean
}

export async function openLab(
  effort: Effort,
  options: Pick<Lab, 'program' | 'peers' | 'everyCapability'>,
): Promise<Lab> {
  const pinned = await canPin()
  const [proxyCore, otherCore] = pinned ? [0, 1] : [undefined, undefined]
  if (!pinned) say('processes are not pinned: no taskset, or a single core')
  // So that the bench itself never disturbs the proxy; all threads, and what is started without a core of its own.
  else await outputOf('taskset', ['-a', '-c', '-p', String(otherCore), String(process.pid)])
  const device = await startFastDevice(otherCore)
  const [autocannon, wrk, h2load] = await Promise.all(
    [autocannonGenerator, wrkGenerator, h2loadGenerator].map(async (generator) => {
      const version = await generator.version()
      if (version === undefined) say(`${generator.name} is not installed: left out`)
      return { generator, version }
    }),
  )
  const there = (
    tool: { generator: Generator; version: string | undefined } | undefined,
  ): Generator | undefined => (tool?.version === undefined ? undefined : tool.generator)
  return {
    ...effort,
    ...options,
    proxyCore,
    otherCore,
    device,
    autocannon: autocannonGenerator,
    wrk: there(wrk),
    h2load: there(h2load),
    tools: [autocannon, wrk, h2load].flatMap((tool) =>
      tool?.version === undefined ? [] : [`${tool.generator.name} ${tool.version}`],
    ),
  }
}
