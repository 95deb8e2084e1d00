import process from 'node:process'
import { runIfMain, runModule } from '../child.ts'
import { BareExchange } from '../floor/bare-exchange.ts'
import type { Figure } from '../lab.ts'
import { checkOf, summarize } from '../measure.ts'
import { say } from '../run-program.ts'
import { openGate } from './parts.ts'

export const admission: Figure = {
  id: 'P10',
  title: 'Cost of one admission',
  about:
    'Processor time of the gate with its real window table and token store, in a loop: classify, limit, identify, authorize a small request. A thousand tokens take turns.',
  async measure({ program, proxyCore: core, rounds, seconds }) {
    const costs: number[] = []
    for (let round = 0; round < rounds; round += 1) {
      const plan: Plan = { duration: Math.round(seconds * 1000) }
      const cost = await runModule<number>(import.meta.url, plan, {
        core,
        timeout: TIMEOUT,
        flags: program.tuning,
      })
      say(`  round ${round + 1}: ${cost.toFixed(2)} µs`)
      costs.push(cost)
    }
    return { checks: [checkOf('P10 admission', 'one admission', 'µs', summarize(costs), { reach: 1 })] }
  },
}

/** Milliseconds. */
const TIMEOUT = 60_000

interface Plan {
  /** How long it measures (ms). */
  readonly duration: number
}

/** Processor time of one admission (µs), including the threads of the garbage collector. */
async function measureAdmission({ duration }: Plan): Promise<number> {
  const gate = openGate(1_000_000_000)
  /** The fields that a load generator sends. */
  const heads = gate.heads(1_000, (token) => [
    ...['Host', 'device.local:8443'],
    ...['Authorization', `Bearer ${token}`],
    ...['User-Agent', 'bench', 'Accept', '*/*'],
  ])
  const run = (milliseconds: number): number => {
    let count = 0
    const before = process.cpuUsage()
    const end = performance.now() + milliseconds
    while (performance.now() < end) {
      for (const head of heads) {
        // A copy: what the gate derives from a head that repeats is kept with it.
        const answer = gate.admit(new BareExchange({ ...head }))
        if (answer instanceof Promise) throw new Error('admission was asynchronous')
        if (answer.kind !== 'forward') throw new Error('a valid token was refused')
      }
      count += heads.length
    }
    const { user, system } = process.cpuUsage(before)
    return (user + system) / count
  }
  run(Math.min(500, duration))
  return run(duration)
}

await runIfMain(import.meta, measureAdmission)
