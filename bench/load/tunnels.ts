import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'

/** Tunnels through an upgrade, all open at once, on each of which messages go to and fro. */
export interface Tunnels {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
  readonly count: number
  /** How long messages are sent once all are open. */
  readonly seconds: number
}

export interface TunnelReport {
  /** Messages that came back, per second. */
  readonly rate: number
  /** Tunnels that did not open, broke, or gave back something else. */
  readonly failed: number
}

/** For opening them (ms). */
const LONGEST_OPENING = 60_000

/** autocannon knows no upgrades, so this is a client of our own, in a process of its own. */
export async function runTunnels(plan: Tunnels, core: number | undefined): Promise<TunnelReport> {
  const program = fileURLToPath(new URL('tunnels-program.ts', import.meta.url))
  const longest = LONGEST_OPENING + plan.seconds * 1000
  const output = await outputOf(process.execPath, [program, JSON.stringify(plan)], { core, longest })
  return JSON.parse(output) as TunnelReport // of our own program
}
