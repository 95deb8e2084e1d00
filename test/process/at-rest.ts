import { setTimeout as delay } from 'node:timers/promises'
import { figuresOf } from '../support/process-figures.ts'
import type { Served } from './serve.ts'

/** How long a sidecar may take to come to rest once every client has gone (ms). */
const PATIENCE = 12_000

/** What is left behind when every client has gone, and does not go by itself: connections, exchanges, sockets. */
export async function leftBehind(served: Served, socketsAtRest: number): Promise<string[]> {
  let left: string[] = []
  for (const end = performance.now() + PATIENCE; performance.now() < end; await delay(100)) {
    left = await atWork(served, socketsAtRest)
    if (left.length === 0) break
  }
  return left
}

async function atWork(served: Served, socketsAtRest: number): Promise<string[]> {
  const gauges = ['connections', 'tunnels', 'upstream_in_flight', 'upstream_queued'].map(async (name) => {
    const value = await served.metric(`postern_${name}`)
    return value === 0 ? [] : [`${value} ${name} left behind`]
  })
  const sockets = figuresOf(served.pid).sockets - socketsAtRest
  // The admin connection of this very question may count as one.
  return [...(await Promise.all(gauges)).flat(), ...(sockets > 1 ? [`${sockets} sockets left behind`] : [])]
}
