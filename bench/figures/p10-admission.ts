import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'
import type { Figure } from '../figure.ts'
import { summarize } from '../measure.ts'
import { say } from '../say.ts'

/** Milliseconds. */
const LONGEST = 60_000

export const admission: Figure = {
  id: 'P10',
  title: 'Cost of one admission',
  about:
    'Processor time of the gate with its real window table and token store, in a loop: classify, identify, limit, authorize, for a small request, one of a thousand tokens in turn.',
  async measure(lab) {
    const program = fileURLToPath(new URL('admission-program.ts', import.meta.url))
    const costs: number[] = []
    for (let round = 0; round < lab.rounds; round += 1) {
      const args = [...lab.program.tuning, program, String(Math.round(lab.seconds * 1000))]
      const cost = Number(await outputOf(process.execPath, args, { core: lab.proxyCore, longest: LONGEST }))
      say(`  round ${round + 1}: ${cost.toFixed(2)} µs`)
      costs.push(cost)
    }
    const cost = summarize(costs)
    return {
      checks: [
        {
          id: 'P10 admission',
          what: 'one admission',
          unit: 'µs',
          better: 'less',
          reach: 2,
          value: cost?.median,
          range: cost?.range,
          comparable: 'same machine',
        },
      ],
      charts: [],
      tables: [],
      notes: [],
      faults: [],
    }
  },
}
