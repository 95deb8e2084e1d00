import process from 'node:process'
import { outputOf } from './child.ts'
import { type Device, startFastDevice } from './device.ts'
import type { Findings } from './figure.ts'
import { autocannonGenerator } from './load/autocannon.ts'
import type { Generator } from './load/generator.ts'
import { h2loadGenerator } from './load/h2load.ts'
import { wrkGenerator } from './load/wrk.ts'
import { canPin } from './machine.ts'
import type { Program } from './program.ts'
import { say } from './run-program.ts'

/** One measurement. */
export interface Figure {
  /** The name for `--only`, such as `P1`. */
  readonly id: string
  readonly title: string
  /** What is measured and compared with what; must be clear to a reader of the report alone. */
  readonly about: string
  measure(lab: Lab): Promise<Partial<Findings>>
}

/** Duration and number of the measurements. */
export interface Effort {
  readonly rounds: number
  /** Length of one round. */
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Fraction of the full number, for figures that run until a count is reached. */
  readonly part: number
}

/** What all figures share: the cores, the fast device, the load generators. */
export interface Lab extends Effort {
  /** Core of the proxy alone; undefined if processes cannot be pinned. */
  readonly proxyCore: number | undefined
  /** Core that the device, the load and this program share. */
  readonly otherCore: number | undefined
  /** nginx if it is installed, otherwise a Node server. */
  readonly device: Device
  readonly autocannon: Generator
  /** Undefined if not installed. */
  readonly wrk: Generator | undefined
  readonly h2load: Generator | undefined
  /** Names and versions of the installed load generators. */
  readonly tools: readonly string[]
  /** The program that is measured as Postern. */
  readonly program: Program
  /** Names of the peers to measure; undefined for all. */
  readonly peers: readonly string[] | undefined
  /** Whether P1f adds each capability to the floor. Otherwise it measures only the floor and Postern. */
  readonly everyCapability: boolean
}

export async function openLab(
  effort: Effort,
  options: Pick<Lab, 'program' | 'peers' | 'everyCapability'>,
): Promise<Lab> {
  const pinned = await canPin()
  const [proxyCore, otherCore] = pinned ? [0, 1] : [undefined, undefined]
  if (!pinned) say('processes are not pinned: taskset is not installed, or there is only one core')
  // Keeps all threads of this program, and children without a core of their own, off the core of the proxy.
  else await outputOf('taskset', ['-a', '-c', '-p', String(otherCore), String(process.pid)])
  const tools: string[] = []
  const ifInstalled = async (generator: Generator): Promise<Generator | undefined> => {
    const version = await generator.version()
    if (version === undefined) say(`${generator.name} is not installed: skipped`)
    else tools.push(`${generator.name} ${version}`)
    return version === undefined ? undefined : generator
  }
  await ifInstalled(autocannonGenerator)
  return {
    ...effort,
    ...options,
    proxyCore,
    otherCore,
    device: await startFastDevice(otherCore),
    autocannon: autocannonGenerator,
    wrk: await ifInstalled(wrkGenerator),
    h2load: await ifInstalled(h2loadGenerator),
    tools,
  }
}

/** The findings when a required program is not installed. */
export function notInstalled(program: string): Partial<Findings> {
  return { notes: [`skipped: ${program} is not installed`] }
}
