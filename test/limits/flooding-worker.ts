import { setTimeout } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { createSharedWindows } from '../../src/fleet/windows.ts'
import type { WindowPolicy } from '../../src/limits/window-table.ts'

import { open } from '../store/opened.ts'
import { realClock } from '../support/clock.ts'

/** What one sidecar, an event loop of its own, counted. */
export interface Flooded {
  readonly admitted: number
  readonly refused: number
  readonly fallbacks: number
}

/**
 * Counts one key without end. When told to stop, goes on until it was admitted once, and then until the last request of a turn is refused:
 * its last window is used up then. A window may close within a turn, so an earlier refusal does not say so of the next one.
 */
async function flood(port: number, policy: WindowPolicy): Promise<Flooded> {
  const clock = realClock()
  const { store } = await open(`valkey://127.0.0.1:${port}`, { timeout: 60_000 }, clock)
  let [admitted, refused, fallbacks, stopping] = [0, 0, 0, false]
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
  parentPort?.once('message', () => {
    stopping = true
  })
  parentPort?.postMessage('connected')
  for (;;) {
    const decisions = await Promise.all(Array.from({ length: 20 }, () => windows.count('client')))
    const passed = decisions.filter((decision) => decision.admitted).length
    admitted += passed
    refused += decisions.length - passed
    if (stopping && admitted > 0 && decisions.at(-1)?.admitted === false) break
    await setTimeout(1)
  }
  await store.close()
  return { admitted, refused, fallbacks }
}

parentPort?.postMessage(await flood(workerData.port, workerData.policy))
