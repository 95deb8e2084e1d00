import process from 'node:process'
import { createGate } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { createSessions } from '../../src/oauth/browser-sessions.ts'
import { systemClock } from '../../src/system/clock.ts'
import { gateRules } from '../../test/support/admitted.ts'
import { BareExchange, requestHead } from '../../test/support/exchange.ts'
import { runIfMain, runModule } from '../child.ts'
import type { Figure } from '../lab.ts'
import { checkOf, summarize } from '../measure.ts'
import { say } from '../run-program.ts'
import { openTokenStore } from './p8-growth.ts'

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

const CLIENT = '192.0.2.7'

const DAY = 86_400_000

/** More than a measurement sends. */
const LIMIT = { requests: 1_000_000_000, window: 60_000, per: 'client' } as const

/**
 * Processor time of one admission (µs), including the threads of the garbage collector. Requests in turn with different tokens defeat
 * caches of the last lookup.
 */
async function measureAdmission({ duration, by }: Plan): Promise<number> {
  const table = () => createWindowTable(LIMIT, { clock: systemClock, maxKeys: 100_000 })
  const tokens = openTokenStore(10_000)
  const sessions = createSessions(
    { ...tokens, end: () => true },
    {
      clock: systemClock,
      live: { handOver() {}, granted: () => [] },
      settings: {
        config: { browser: { idle: DAY }, tokens: { refreshLifetime: DAY, grantLifetime: 'off' as const } },
      },
    },
  )
  const rules = gateRules(LIMIT, { browser: true })
  const limits = { ...rules.limits, browser: { ...LIMIT, per: 'grant' } } as const
  const admit = createGate({
    clock: systemClock,
    tables: { api: table(), oauth: table(), browser: table() },
    identify: tokens.identify,
    sessions,
    settings: { gate: { ...rules, limits }, clientOf: createClientAddress([]) },
  })
  const heads = Array.from({ length: by === 'token' ? 1_000 : 20 }, () => {
    const issued = tokens.issue(CLIENT, 'password')
    const [cookie = ''] = sessions.begin(issued)?.split(';') ?? []
    /** The fields that a load generator sends, or some of those of a browser. */
    const fields = [
      ...['Host', 'device.local:8443'],
      ...(by === 'token'
        ? ['Authorization', `Bearer ${issued.accessToken}`]
        : ['Sec-Fetch-Site', 'same-origin', 'Sec-Fetch-Mode', 'cors', 'Cookie', cookie]),
      ...['User-Agent', 'bench', 'Accept', '*/*'],
    ]
    return requestHead({ secure: true, target: '/api/status?verbose=1', peer: CLIENT, fields })
  })
  const run = (milliseconds: number): number => {
    let count = 0
    const before = process.cpuUsage()
    const end = performance.now() + milliseconds
    while (performance.now() < end) {
      for (const head of heads) {
        // A copy: what the gate derives from a head that repeats is kept with it.
        const answer = admit(new BareExchange({ ...head }))
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
