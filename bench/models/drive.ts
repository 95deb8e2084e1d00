import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import process from 'node:process'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Child, freePort, listening, runIfMain, startChild } from '../child.ts'
import type { Counts } from './device.ts'
import { type ModelName, SLOW_PAGE } from './models.ts'

/** Clients that each send a request, await its response, and send the next one. */
export interface Drive {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly model: ModelName
  readonly clients: number
  /** How long they ask (ms). */
  readonly time: number
  /** So many responses are not measured. */
  readonly warmUp: number
}

export interface Driven {
  /** Per second. */
  readonly throughput: number
  /** Milliseconds; null if none was measured. */
  readonly p99: number | null
  readonly answered: number
  /** Responses other than 200, by status; 0: none came. Also of the warm-up. */
  readonly others: Readonly<Record<string, number>>
  /** When the first of them came and the last one (ms since the start). */
  readonly failedAt: readonly number[]
}

/** A model that is played by a process of its own. */
export interface PlayedModel {
  readonly port: number
  readonly child: Child
  counts(): Promise<Counts>
}

export async function playModel(model: ModelName, core?: number): Promise<PlayedModel> {
  const [port, control] = [await freePort(), await freePort()]
  const program = fileURLToPath(new URL('device.ts', import.meta.url))
  const child = await startChild(process.execPath, [program, model, String(port), String(control)], { core })
  await listening(control, child)
  return {
    port,
    child,
    async counts() {
      return JSON.parse(await text(connect(control, '127.0.0.1'))) as Counts // of `device.ts`
    },
  }
}

export async function drive({ url, headers, model, clients, time, warmUp }: Drive): Promise<Driven> {
  const agent = new Agent({ keepAlive: true })
  const times: number[] = []
  const others: Record<string, number> = {}
  const failedAt: number[] = []
  const start = performance.now()
  const end = start + time
  let answered = 0
  let measuredFrom = end
  const ask = (path: string): Promise<number> =>
    new Promise((resolve) => {
      get(`${url}${path}`, { headers, agent }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0))
        response.once('error', () => resolve(0))
      }).once('error', () => resolve(0))
    })
  async function client(index: number): Promise<void> {
    const path = model === 'page' && index % 8 === 0 ? SLOW_PAGE : '/'
    for (let now = performance.now(); now < end; ) {
      const status = await ask(path)
      const since = now
      now = performance.now()
      if (now > end) return
      if (status === 200) {
        answered += 1
        if (answered === warmUp) measuredFrom = now
        if (answered > warmUp) times.push(now - since)
      } else {
        others[status] = (others[status] ?? 0) + 1
        failedAt.push(Math.round(now - start))
        await pause(50)
        now = performance.now()
      }
    }
  }
  await Promise.race([Promise.all(Array.from({ length: clients }, (_, index) => client(index))), pause(time)])
  agent.destroy()
  times.sort((a, b) => a - b)
  return {
    throughput: (1000 * times.length) / Math.max(1, end - measuredFrom),
    p99: times[Math.floor(times.length * 0.99)] ?? null,
    answered,
    others,
    failedAt: failedAt.length > 1 ? [failedAt[0] ?? 0, failedAt.at(-1) ?? 0] : failedAt,
  }
}

await runIfMain(import.meta, drive)
