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
  const reading = await usageOf(client, 1, async () => {})
  const quiet = perUnit(await usageOf(client, 1, () => pause(seconds * 1000)), reading, seconds)
  return {
    async cost(count, run) {
      const begin = performance.now()
      const usage = await usageOf(client, 1, run)
      const passed = (performance.now() - begin) / 1000
      return perUnit(minus(usage, quiet, passed), reading, count)
    },
  }
}

/** A usage without the reading of the counters, divided. */
function perUnit(usage: Usage, reading: Usage, count: number): Usage {
  return combine(minus(usage, reading, 1), (value) => Math.max(0, value) / count)
}

function minus(usage: Usage, less: Usage, times: number): Usage {
  return combine(usage, (value, name) => value - less[name] * times)
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
