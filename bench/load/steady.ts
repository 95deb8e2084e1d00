import http from 'node:http'
import https from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { runIfMain, runModule } from '../child.ts'
import { type LatencySummary, summarizeLatencies } from '../measure.ts'
import { requestOnce } from '../request.ts'

/** Seconds before the measurement: V8 compiles the client, and the client opens its connection. */
export const WARM_UP = 1

/** Timeout of a response (ms). */
const TIMEOUT = 5_000

/** Requests at a constant rate, each sent on time even if earlier ones have no response yet. */
export interface SteadyLoad {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Per second. */
  readonly rate: number
  readonly seconds: number
  /** Expected body of every response, whose status is 200. */
  readonly body: string
  /** Address of the client. */
  readonly address: string
}

/** Milliseconds. */
export interface SteadyReport extends LatencySummary {
  /** Correct responses, including those of the warm-up. */
  readonly answered: number
  /** Wrong responses, and errors. */
  readonly failed: number
}

/** Runs a client of our own in a separate process: autocannon sends the requests of a second in one burst. */
export function runSteadily(load: SteadyLoad, core: number | undefined): Promise<SteadyReport> {
  return runModule(import.meta.url, load, { core, timeout: (WARM_UP + load.seconds + 20) * 1000 })
}

async function program(load: SteadyLoad): Promise<SteadyReport> {
  const options = { keepAlive: true, scheduling: 'lifo', localAddress: load.address } as const
  const agent = load.url.startsWith('https:') ? new https.Agent(options) : new http.Agent(options)
  const latencies: number[] = []
  let answered = 0
  let failed = 0

  const send = async (timed: boolean): Promise<void> => {
    const start = performance.now()
    const sent = requestOnce(load.url, { headers: load.headers, agent, timeout: TIMEOUT })
    const { status, body } = await sent.catch(() => ({ status: 0, body: '' }))
    const correct = status === 200 && body === load.body
    if (correct) answered += 1
    else failed += 1
    if (correct && timed) latencies.push(performance.now() - start)
  }

  const untimed = Math.round(load.rate * WARM_UP)
  const wanted = untimed + Math.round(load.rate * load.seconds)
  const begin = performance.now()
  const responses: Promise<void>[] = []
  while (responses.length < wanted) {
    const due = ((performance.now() - begin) / 1000) * load.rate
    // One request at a time: after a pause of this process a burst would measure itself.
    if (responses.length <= due) responses.push(send(responses.length >= untimed))
    await pause(1000 / load.rate / 4)
  }
  await Promise.all(responses)
  agent.destroy()
  return { ...summarizeLatencies(latencies), answered, failed }
}

await runIfMain(import.meta, program)
