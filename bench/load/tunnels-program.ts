import { connect, type Socket } from 'node:net'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import type { TunnelReport, Tunnels } from './tunnels.ts'

/** `node tunnels-program.ts PLAN`: runs `Tunnels`, and prints a `TunnelReport` as JSON. */
const plan = JSON.parse(process.argv[2] ?? '{}') as Tunnels // of `runTunnels`
const MESSAGE = 'there and back again, 32 bytes..'

/** Tunnels that are opened concurrently. */
const BATCH = 50

let failed = 0
let messages = 0
let sending = true

const fields = Object.entries(plan.headers).map(([name, value]) => `${name}: ${value}\r\n`)
const request = `GET / HTTP/1.1\r\nHost: device\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${fields.join('')}\r\n`

/** Resolves with undefined unless the response is 101. */
function open(): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(plan.port, '127.0.0.1', () => socket.write(request))
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

function exchangeMessages(socket: Socket): void {
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
    if (received.length < MESSAGE.length) return
    if (received !== MESSAGE) {
      failed += 1
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
  for (const socket of await Promise.all(Array.from({ length: batch }, open))) {
    if (socket === undefined) failed += 1
    else tunnels.push(socket)
  }
}
const begin = performance.now()
for (const socket of tunnels) exchangeMessages(socket)
await pause(plan.seconds * 1000)
sending = false
const report: TunnelReport = { rate: (messages * 1000) / (performance.now() - begin), failed }
process.stdout.write(JSON.stringify(report), () => process.exit(0))
