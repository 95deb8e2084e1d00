import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { runIfMain, runModule } from '../child.ts'

/** Connections that pipeline requests without a token, as fast as the responses are read. */
export interface PipelinedLoad {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** Address of the client. */
  readonly address: string
}

export interface PipelinedReport {
  /** Responses that refuse a request. */
  readonly refused: number
  /** Other responses, and connections that closed. */
  readonly failed: number
}

/** What a connection sends at once (bytes). */
const BURST = 64 * 1024

/** Runs them in a process of its own, which gives way to other processes on its core. */
export function runPipelined(load: PipelinedLoad, core: number | undefined): Promise<PipelinedReport> {
  return runModule(import.meta.url, load, {
    core,
    idlePriority: true,
    timeout: (load.seconds + 20) * 1000,
  })
}

async function program({ url, connections, seconds, address }: PipelinedLoad): Promise<PipelinedReport> {
  const { hostname, port } = new URL(url)
  const request = `GET / HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`
  const burst = Buffer.from(request.repeat(Math.ceil(BURST / request.length)))
  let refused = 0
  let failed = 0
  let over = false

  function flood(): Socket {
    const socket = connect({ host: hostname, port: Number(port), localAddress: address })
    const send = (): void => {
      while (!over && socket.write(burst));
    }
    let rest = ''
    socket.on('connect', send)
    socket.on('drain', send)
    socket.on('error', () => {})
    socket.on('close', () => {
      if (!over) failed += 1
    })
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      const statuses = text.split('HTTP/1.1 ').slice(1)
      // A status that is cut counts with the next bytes.
      rest = /(?:HTTP\/1\.1 \d{0,2}|H?T?T?P?\/?1?\.?1?)$/.exec(text)?.[0] ?? ''
      for (const each of statuses) {
        if (/^(?:401|429)/.test(each)) refused += 1
        else if (/^\d{3}/.test(each)) failed += 1
      }
    })
    return socket
  }

  const sockets = Array.from({ length: connections }, flood)
  await pause(seconds * 1000)
  over = true
  for (const socket of sockets) socket.destroy()
  return { refused, failed }
}

await runIfMain(import.meta, program)
