import { figuresOf } from '../support/processes.ts'
import { until } from '../support/redis.ts'
import type { Served } from './serve.ts'

/** Connections, exchanges and sockets that stay although every client has left. */
export async function leftBehind(served: Served, socketsAtRest: number): Promise<string[]> {
  let left: string[] = []
  const isAtRest = async (): Promise<boolean> => {
    left = await leftNow(served, socketsAtRest)
    return left.length === 0
  }
  await until(isAtRest).catch(() => {})
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
