import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'
import type { Figure } from '../figure.ts'
import type { Lab } from '../lab.ts'
import { type Summary, summarize } from '../measure.ts'
import { say } from '../run-program.ts'

export const admission: Figure = {
  id: 'P10',
  title: 'Cost of one admission',
  about:
    'Processor time of the gate with its real window table and token store, in a loop: classify, limit, identify, authorize a small request. A thousand tokens take turns.',
  async measure(lab) {
    const cost = await programCost(lab, 'admission-program.ts')
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

export const middle: Figure = {
  id: 'P11',
  title: 'Cost of one request between the connections',
  about:
    'Processor time of a request without reading and writing HTTP, in a loop: the gate, the header policy in both directions, the queue for the device, metrics and the log (to /dev/null). 64 requests run at a time, and a thousand tokens take turns. The second number is the cost of a refusal past the limit.',
  async measure(lab) {
    const forwarded = await programCost(lab, 'middle-program.ts', 'forward')
    const refused = await programCost(lab, 'middle-program.ts', 'refuse')
    return {
      checks: [
        {
          id: 'P11 forwarded',
          what: 'one forwarded request',
          unit: 'µs',
          better: 'less',
          value: forwarded?.median,
          range: forwarded?.range,
          comparable: 'same machine',
        },
        {
          id: 'P11 refused',
          what: 'one refusal (429)',
          unit: 'µs',
          better: 'less',
          value: refused?.median,
          range: refused?.range,
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

/** Milliseconds. */
const TIMEOUT = 60_000

/**
 * Runs a program of this folder once per round. Its first argument is the duration (ms); it prints the processor time of one
 * iteration of its loop (µs).
 */
async function programCost(lab: Lab, file: string, ...more: string[]): Promise<Summary | undefined> {
  const program = fileURLToPath(new URL(file, import.meta.url))
  const costs: number[] = []
  for (let round = 0; round < lab.rounds; round += 1) {
    const args = [...lab.program.tuning, program, String(Math.round(lab.seconds * 1000)), ...more]
    const cost = Number(await outputOf(process.execPath, args, { core: lab.proxyCore, timeout: TIMEOUT }))
    say(`  round ${round + 1}: ${cost.toFixed(2)} µs`)
    costs.push(cost)
  }
  return summarize(costs)
}
