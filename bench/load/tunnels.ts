import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { runIfMain, runModule } from '../child.ts'

/** Upgraded connections, all open at once, with a message going back and forth on each. */
export interface Tunnels {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
  readonly count: number
  /** Duration of the messages, after all tunnels are open. */
  readonly seconds: number
}

export interface TunnelReport {
  /** Echoed messages per second. */
  readonly rate: number
  /** Tunnels that did not open, closed, or returned another message. */
  readonly failed: number
}

/** Time limit for opening all tunnels (ms). */
const OPENING_TIMEOUT = 60_000

/** Runs a client of our own in a separate process: autocannon does not support upgrades. */
export function runTunnels(plan: Tunnels, core: number | undefined): Promise<TunnelReport> {
  return runModule(import.meta.url, plan, { core, timeout: OPENING_TIMEOUT + plan.seconds * 1000 })
}

const MESSAGE = 'there and back again, 32 bytes..'

/** Tunnels that are opened concurrently. */
const BATCH = 50

async function program(plan: Tunnels): Promise<TunnelReport> {
  let failed = 0
  let messages = 0
  let sending = true
  const exchangeMessages = (socket: Socket): void => {
    let received = ''
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (received.length < MESSAGE.length) return
      if (received !== MESSAGE) {
        socket.destroy()
        return
      }
      received = ''
      messages += 1
      if (sending) socket.write(MESSAGE)
    })
    socket.on('close', () => {
      if (sending) failed += 1
    })
    socket.write(MESSAGE)
  }

  const tunnels: Socket[] = []
  while (tunnels.length + failed < plan.count) {
    const batch = Math.min(BATCH, plan.count - tunnels.length - failed)
    for (const socket of await Promise.all(Array.from({ length: batch }, () => open(plan)))) {
      if (socket === undefined) failed += 1
      else tunnels.push(socket)
    }
  }
  const begin = performance.now()
  for (const socket of tunnels) exchangeMessages(socket)
  await pause(plan.seconds * 1000)
  sending = false
  return { rate: (messages * 1000) / (performance.now() - begin), failed }
}

/** Resolves with undefined unless the response is 101. */
function open({ port, headers }: Tunnels): Promise<Socket | undefined> {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const request = `GET / HTTP/1.1\r\nHost: device\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${fields.join('')}\r\n`
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    let head = ''
    const read = (chunk: Buffer): void => {
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      socket.off('data', read)
      resolve(head.startsWith('HTTP/1.1 101 ') ? socket : undefined)
    }
    socket.on('data', read)
    socket.on('error', () => resolve(undefined))
    socket.on('close', () => resolve(undefined))
  })
}

await runIfMain(import.meta, program)
