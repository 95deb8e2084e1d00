import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'
import type { LatencySummary } from '../measure.ts'

/** Seconds before the measurement: V8 compiles the client, and the client opens its connection. */
export const WARM_UP = 1

/** Requests at a constant rate, each sent on time even if earlier ones have no response yet. */
export interface SteadyLoad {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Per second. */
  readonly rate: number
  readonly seconds: number
  /** Expected status and body of every response. */
  readonly status: number
  readonly body: string
  /** Address of the client. */
  readonly address: string
}

/** Milliseconds. */
export interface SteadyReport extends LatencySummary {
  /** Correct responses, including those of the warm-up. */
  readonly answered: number
  /** Wrong responses, and errors. */
  readonly failed: number
}

/** Runs a client of our own in a separate process: autocannon sends the requests of a second in one burst. */
export async function runSteadily(load: SteadyLoad, core: number | undefined): Promise<SteadyReport> {
  const program = fileURLToPath(new URL('steady-program.ts', import.meta.url))
  const timeout = (WARM_UP + load.seconds + 20) * 1000
  const output = await outputOf(process.execPath, [program, JSON.stringify(load)], { core, timeout })
  return JSON.parse(output) as SteadyReport // `steady-program.ts` prints it
}
