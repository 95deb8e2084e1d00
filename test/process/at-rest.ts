import { setTimeout as delay } from 'node:timers/promises'
import { PATIENCE } from '../support/patience.ts'
import { figuresOf } from '../support/process-figures.ts'
import type { Served } from './serve.ts'

/** Connections, exchanges and sockets that stay although every client has left. */
export async function leftBehind(served: Served, socketsAtRest: number): Promise<string[]> {
  let left: string[] = []
  for (const end = performance.now() + PATIENCE; performance.now() < end; await delay(100)) {
    left = await leftNow(served, socketsAtRest)
    if (left.length === 0) break
  }
  return left
}

async function leftNow(served: Served, socketsAtRest: number): Promise<string[]> {
  const gauges = ['connections', 'tunnels', 'upstream_in_flight', 'upstream_queued'].map(async (name) => {
    const value = await served.metric(`postern_${name}`)
    return value === 0 ? [] : [`${value} ${name} left behind`]
  })
  const sockets = figuresOf(served.pid).sockets - socketsAtRest
  // The admin connection that reads these metrics may count as one.
  return [...(await Promise.all(gauges)).flat(), ...(sockets > 1 ? [`${sockets} sockets left behind`] : [])]
}
