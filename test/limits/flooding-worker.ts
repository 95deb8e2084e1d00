import { parentPort, workerData } from 'node:worker_threads'
import { createSharedWindows } from '../../src/fleet/windows.ts'
import type { WindowPolicy } from '../../src/limits/window-table.ts'

import { open } from '../store/opened.ts'
import { stillClock } from '../support/clock.ts'

/** What a sidecar, an event loop of its own, is told to do. */
export interface Order {
  /** Passes on its clock before it counts (ms). */
  readonly after: number
  /** Ends with the first turn, or when a turn ends with a refusal. */
  readonly until: 'one turn' | 'used up'
}

/** What it counted since the order. */
export interface Flooded {
  readonly admitted: number
  readonly refused: number
  readonly fallbacks: number
}

/** How many requests it counts at once. */
const TURN = 20

/** Counts one key, as it is ordered to. */
async function flood(port: number, policy: WindowPolicy): Promise<void> {
  const clock = stillClock()
  const { store } = await open(`valkey://127.0.0.1:${port}`, { timeout: 60_000 }, clock)
  let fallbacks = 0
  const windows = createSharedWindows(policy, {
    store,
    endpoint: 'api',
    clock,
    maxKeys: 10,
    onFallback: () => {
      fallbacks += 1
    },
    onAnswer: () => {},
    onLost: () => {
      throw new Error('no window was lost')
    },
  })

  async function obey({ after, until }: Order): Promise<Flooded> {
    await clock.leap(after)
    let [admitted, refused] = [0, 0]
    for (;;) {
      const decisions = await Promise.all(Array.from({ length: TURN }, () => windows.count('client')))
      const passed = decisions.filter((decision) => decision.admitted).length
      admitted += passed
      refused += decisions.length - passed
      if (until === 'one turn' || passed < TURN) return { admitted, refused, fallbacks }
    }
  }

  parentPort?.on('message', async (order: Order) => parentPort?.postMessage(await obey(order)))
  parentPort?.postMessage('connected')
}

await flood(workerData.port, workerData.policy)
