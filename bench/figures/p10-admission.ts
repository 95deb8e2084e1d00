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
    'Processor time of the gate with its real window table and token store, in a loop: classify, limit, identify, authorize a small request. A thousand tokens take turns; then twenty sessions of browsers.',
  async measure({ program, proxyCore: core, rounds, seconds }) {
    const costs: Record<Plan['by'], number[]> = { token: [], session: [] }
    for (let round = 0; round < rounds; round += 1) {
      for (const by of ['token', 'session'] as const) {
        const plan: Plan = { duration: Math.round(seconds * 1000), by }
        const options = { core, timeout: TIMEOUT, flags: program.tuning }
        const cost = await runModule<number>(import.meta.url, plan, options)
        say(`  round ${round + 1}, by ${by}: ${cost.toFixed(2)} µs`)
        costs[by].push(cost)
      }
    }
    return {
      checks: [
        checkOf('P10 admission', 'one admission', 'µs', summarize(costs.token), { reach: 1 }),
        checkOf('P10 session', 'one admission by a session', 'µs', summarize(costs.session), { reach: 2 }),
      ],
    }
  },
}

/** Milliseconds. */
const TIMEOUT = 60_000

interface Plan {
  /** How long it measures (ms). */
  readonly duration: number
  readonly by: 'token' | 'session'
}

/** Processor time of one admission (µs), including the threads of the garbage collector. */
async function measureAdmission({ duration, by }: Plan): Promise<number> {
  const gate = openGate(1_000_000_000)
  /** The fields that a load generator sends, or some of those of a browser. */
  const heads = gate.heads(by === 'token' ? 1_000 : 20, (token, cookie) => [
    ...['Host', 'device.local:8443'],
    ...(by === 'token'
      ? ['Authorization', `Bearer ${token}`]
      : ['Sec-Fetch-Site', 'same-origin', 'Sec-Fetch-Mode', 'cors', 'Cookie', cookie]),
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
