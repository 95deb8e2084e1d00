import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Child, freePort, listening, startChild } from '../child.ts'
import { summarize } from '../measure.ts'
import type { Program } from '../program.ts'
import { askForToken, prepareSidecar, startSidecar } from '../sidecar.ts'
import { keepAliveClient, WIDE } from './request-weight.ts'

const STARTS = 9
/** Requests before the rest, then the rest and the time that is measured (ms). */
const REQUESTS = 200
const REST = 30_000
const IDLE = 20_000

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
    'start: processor time, ms': summarize(ours)?.median ?? Number.NaN,
    'start: processor time, of node -e 0':
      (summarize(ours)?.median ?? Number.NaN) / (summarize(bare)?.median ?? Number.NaN),
  }
}

/** What an idle sidecar costs, after requests and a rest, and the private memory of a bare `node:http` server after as many. */
export async function weighIdle(program: Program, device: string): Promise<Readonly<Record<string, number>>> {
  const sidecar = await startSidecar({ device, tls: false, limits: WIDE, program })
  const authorization = `Bearer ${await askForToken(sidecar.url)}`
  const bare = await startBareServer()
  for (const url of [sidecar.url, bare.url]) {
    const ask = keepAliveClient(url)
    for (let i = 0; i < REQUESTS; i += 1) await ask('GET', { authorization })
  }
  const { pid } = sidecar.child
  await pause(REST)
  const [wakeUps, time] = [wakeUpsOf(pid), processorTime(pid)]
  await pause(IDLE)
  const figures = {
    'idle: wake-ups a second': ((wakeUpsOf(pid) - wakeUps) * 1000) / IDLE,
    'idle: processor time, ms a minute': ((processorTime(pid) - time) * 60_000) / IDLE,
    'idle: private memory, MiB': privateMemory(pid),
    'idle: private memory of a bare node:http, MiB': privateMemory(bare.child.pid),
  }
  await Promise.all([sidecar.stop(), bare.child.stop()])
  return figures
}

async function startBareServer(): Promise<{ readonly url: string; readonly child: Child }> {
  const port = await freePort()
  const server = `require('node:http').createServer((_, response) => response.end('ok')).listen(${port}, '127.0.0.1')`
  const child = await startChild(process.execPath, ['-e', server])
  await listening(port, child)
  return { url: `http://127.0.0.1:${port}`, child }
}

/** Processor time of all threads (ms), by the scheduler's nanoseconds: `/proc/PID/stat` counts in hundredths of a second. */
function processorTime(pid: number): number {
  return sumOfThreads(pid, 'schedstat', /^(\d+)/) / 1e6
}

/** How often the threads began to wait and were woken. */
function wakeUpsOf(pid: number): number {
  return sumOfThreads(pid, 'status', /^voluntary_ctxt_switches:\s+(\d+)/m)
}

function sumOfThreads(pid: number, file: string, number: RegExp): number {
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => Number(number.exec(readFileSync(join(`/proc/${pid}/task`, thread, file), 'utf8'))?.[1]))
    .reduce((sum, value) => sum + value, 0)
}

/** Anonymous memory (MiB): what no file of the disk can give back. */
function privateMemory(pid: number): number {
  return Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
