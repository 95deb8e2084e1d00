import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'
import type { Lab } from '../lab.ts'
import { type Summary, summarize } from '../measure.ts'
import { say } from '../say.ts'

/** Milliseconds. */
const LONGEST = 60_000

/**
 * What a program beside this file prints: microseconds of one turn of its loop, measured over the milliseconds that it is
 * given first.
 */
export async function programCost(lab: Lab, file: string, ...more: string[]): Promise<Summary | undefined> {
  const program = fileURLToPath(new URL(file, import.meta.url))
  const costs: number[] = []
  for (let round = 0; round < lab.rounds; round += 1) {
    const args = [...lab.program.tuning, program, String(Math.round(lab.seconds * 1000)), ...more]
    const cost = Number(await outputOf(process.execPath, args, { core: lab.proxyCore, longest: LONGEST }))
    say(`  round ${round + 1}: ${cost.toFixed(2)} µs`)
    costs.push(cost)
  }
  return summarize(costs)
}
