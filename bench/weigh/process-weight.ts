import { setTimeout as pause } from 'node:timers/promises'
import { freePort, listening, startChild } from '../child.ts'
import { medianOf } from '../measure.ts'
import { privateMemory, processorTime, wakeUpsOf } from '../process-usage.ts'
import type { Program } from '../program.ts'
import { prepareSidecar } from '../sidecar.ts'
import { keepAliveClient, startWeighed } from './meter.ts'

const STARTS = 9

/** Processor time from the start of the process until its listener is open, and beside a Node that does nothing. */
export async function weighStart(
  program: Program,
  device: string,
): Promise<Readonly<Record<string, number>>> {
  const bare: number[] = []
  const ours: number[] = []
  for (let i = 0; i < STARTS; i += 1) {
    const node = await startChild(process.execPath, ['-e', 'setInterval(() => {}, 1e9)'])
    await pause(300)
    bare.push(processorTime(node.pid))
    await node.stop()
    const prepared = await prepareSidecar({ device, tls: true, program })
    const { child, stop } = await prepared.launch()
    await listening(prepared.port, child)
    ours.push(processorTime(child.pid))
    await stop()
  }
  return {
    'start: processor time, ms': medianOf(ours),
    'start: processor time, of node -e 0': medianOf(ours) / medianOf(bare),
  }
}

/** Idle sidecars: a garbage collection of one of them does not count. Requests before the rest, and the rest (ms). */
const SIDECARS = 3
const REQUESTS = 200
const REST = 30_000
/** The time that is measured (ms): a sidecar has timers of up to half a minute. */
const IDLE = 30_000

/**
 * Starts idle sidecars and a bare `node:http` server, and sends requests to each. The function weighs them after their rest: what an idle
 * sidecar costs, and the private memory of both.
 */
export async function startIdle(
  program: Program,
  device: string,
): Promise<() => Promise<Readonly<Record<string, number>>>> {
  const port = await freePort()
  const server = `require('node:http').createServer((_, response) => response.end('ok')).listen(${port}, '127.0.0.1')`
  const bare = await startChild(process.execPath, ['-e', server])
  await listening(port, bare)
  const client = keepAliveClient(`http://127.0.0.1:${port}`)
  for (let i = 0; i < REQUESTS; i += 1) await client()
  const pids: number[] = []
  for (let i = 0; i < SIDECARS; i += 1) {
    const { child, headers, ask } = await startWeighed(program, device)
    for (let sent = 0; sent < REQUESTS; sent += 1) await ask({ headers })
    pids.push(child.pid)
  }
  const rested = pause(REST)
  return async () => {
    await rested
    const before = pids.map((pid) => ({ pid, wakeUps: wakeUpsOf(pid), time: processorTime(pid) }))
    await pause(IDLE)
    const wakeUps = before.map((was) => wakeUpsOf(was.pid) - was.wakeUps)
    const times = before.map((was) => processorTime(was.pid) - was.time)
    return {
      'idle: wake-ups a second': (medianOf(wakeUps) * 1000) / IDLE,
      'idle: processor time, ms a minute': (medianOf(times) * 60_000) / IDLE,
      'idle: private memory, MiB': medianOf(pids.map(privateMemory)),
      'idle: private memory of a bare node:http, MiB': privateMemory(bare.pid),
    }
  }
}
