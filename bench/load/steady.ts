import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'
import type { LatencySummary } from './latencies.ts'

/** So long (seconds) it goes on before anything is timed: the client compiles itself, and opens its connection. */
export const WARM_UP = 1

/** Requests at a steady pace, each sent on time whether or not those before it were answered. */
export interface SteadyLoad {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Per second. */
  readonly rate: number
  readonly seconds: number
  /** The status and body of every answer. */
  readonly status: number
  readonly body: string
  /** Of the client. */
  readonly address: string
}

/** Milliseconds. */
export interface SteadyReport extends LatencySummary {
  /** Right answers, also those that were not timed. */
  readonly answered: number
  /** Other answers, and errors. */
  readonly failed: number
}

/** autocannon sends a second's worth of requests at once, so this is a client of our own, in a process of its own. */
export async function runSteadily(load: SteadyLoad, core: number | undefined): Promise<SteadyReport> {
  const program = fileURLToPath(new URL('steady-program.ts', import.meta.url))
  const longest = (WARM_UP + load.seconds + 20) * 1000
  const output = await outputOf(process.execPath, [program, JSON.stringify(load)], { core, longest })
  return JSON.parse(output) as SteadyReport // of our own program
}
