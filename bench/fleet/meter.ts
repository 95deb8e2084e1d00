import { setTimeout as pause } from 'node:timers/promises'
import type { Client } from './server.ts'
import { type Usage, usageOf } from './usage.ts'

/** Tells what operations cost a server, without what it does on its own and without the reading of its counters. */
export interface Meter {
  /** What each of `count` operations costs while `run` runs. */
  cost(count: number, run: () => Promise<unknown>): Promise<Usage>
}

/** Watches the server for `seconds` while it has nothing to do. */
export async function createMeter(client: Client, seconds: number): Promise<Meter> {
  /** The counters grow with the commands that the server knows, so they are read twice each time. */
  const withoutReading = async (run: () => Promise<unknown>): Promise<Usage> => {
    const reading = await usageOf(client, 1, async () => {})
    const usage = await usageOf(client, 1, run)
    return combine(usage, (value, name) => value - reading[name])
  }
  const quiet = await withoutReading(() => pause(seconds * 1000))
  return {
    async cost(count, run) {
      const begin = performance.now()
      const usage = await withoutReading(run)
      const passed = (performance.now() - begin) / 1000
      return combine(usage, (value, name) => Math.max(0, value - (quiet[name] / seconds) * passed) / count)
    },
  }
}

/** A usage with each of its numbers changed. */
export function combine(usage: Usage, change: (value: number, name: keyof Usage) => number): Usage {
  return {
    processor: change(usage.processor, 'processor'),
    commands: change(usage.commands, 'commands'),
    received: change(usage.received, 'received'),
    sent: change(usage.sent, 'sent'),
  }
}
