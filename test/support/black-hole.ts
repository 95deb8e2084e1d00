import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { closeLater } from './cleanup.ts'
import { STOPPED_BY_TEST, stateOf } from './processes.ts'

const LISTENER = `
  const server = require('node:net').createServer(() => {})
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port))`

/** How many connections a queue takes whose backlog is 1. */
const QUEUE = 2

/**
 * The URL of a port on which connections never open. The process that listens is stopped and its accept queue is full,
 * so the kernel drops every further SYN.
 */
export async function startBlackHole(): Promise<string> {
  const child = spawn(process.execPath, ['-e', LISTENER], {
    env: { ...process.env, ...STOPPED_BY_TEST },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  closeLater(() => {
    child.kill('SIGKILL')
  })
  const [said] = await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  // Until then it may take connections from the queue.
  while (stateOf(child.pid ?? 0) !== 'T') await delay(1)
  const port = Number(said)
  for (let i = 0; i < QUEUE; i += 1) {
    const socket = net.connect(port, '127.0.0.1')
    closeLater(() => {
      socket.destroy()
    })
    socket.on('error', () => {})
  }
  while (queuedAt(port) < QUEUE) await delay(1)
  return `http://127.0.0.1:${port}`
}

/** How many open connections wait in the queue of a port on 127.0.0.1, as the kernel tells of a socket that listens (state 0A). */
function queuedAt(port: number): number {
  const place = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A \\w+:(\\w+)`
  return Number.parseInt(new RegExp(place).exec(readFileSync('/proc/net/tcp', 'latin1'))?.[1] ?? '0', 16)
}
