import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'

/** Upgraded connections, all open at once, with a message going back and forth on each. */
export interface Tunnels {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
  readonly count: number
  /** Duration of the messages, after all tunnels are open. */
  readonly seconds: number
}

export interface TunnelReport {
  /** Echoed messages per second. */
  readonly rate: number
  /** Tunnels that did not open, closed, or returned another message. */
  readonly failed: number
}

/** Time limit for opening all tunnels (ms). */
const OPENING_TIMEOUT = 60_000

/** Runs a client of our own in a separate process: autocannon does not support upgrades. */
export async function runTunnels(plan: Tunnels, core: number | undefined): Promise<TunnelReport> {
  const program = fileURLToPath(new URL('tunnels-program.ts', import.meta.url))
  const timeout = OPENING_TIMEOUT + plan.seconds * 1000
  const output = await outputOf(process.execPath, [program, JSON.stringify(plan)], { core, timeout })
  return JSON.parse(output) as TunnelReport // `tunnels-program.ts` prints it
}
