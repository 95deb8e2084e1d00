import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { runIfMain, runModule } from '../child.ts'
import { type LatencySummary, summarizeLatencies } from '../measure.ts'
import { requestOnce } from '../request.ts'

/** Clients that each poll one page, on a connection of their own. A client whose poll takes longer leaves polls out. */
export interface Polls {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly clients: number
  /** The time (ms) between two polls of a client. */
  readonly period: number
  /** The first polls of all clients come within this time (ms). */
  readonly spread: number
  readonly periods: number
}

/** Milliseconds, of the responses with status 200. */
export interface PollReport extends LatencySummary {
  /** Other responses, and errors. */
  readonly failed: number
}

/** Runs them in a process of its own. */
export function runPolls(polls: Polls, core: number | undefined): Promise<PollReport> {
  return runModule(import.meta.url, polls, { core, timeout: (polls.periods + 2) * polls.period + 30_000 })
}

async function program({ url, headers, clients, period, spread, periods }: Polls): Promise<PollReport> {
  const latencies: number[] = []
  let failed = 0
  const begin = performance.now()

  async function client(number: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const first = begin + (spread * number) / clients
    for (let next = 0; next < periods; ) {
      await pause(Math.max(0, first + next * period - performance.now()))
      const start = performance.now()
      const { status } = await requestOnce(url, { headers, agent }).catch(() => ({ status: 0 }))
      if (status === 200) latencies.push(performance.now() - start)
      else failed += 1
      next = Math.max(next + 1, Math.ceil((performance.now() - first) / period))
    }
    agent.destroy()
  }

  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  return { ...summarizeLatencies(latencies), failed }
}

await runIfMain(import.meta, program)
