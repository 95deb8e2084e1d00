import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { closeLater } from './cleanup.ts'

const LISTENER = `
  const server = require('node:net').createServer(() => {})
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port))`

/**
 * The URL of a port on which connections never open. The process that listens is stopped and its accept queue is full,
 * so the kernel drops every further SYN.
 */
export async function startBlackHole(): Promise<string> {
  // A process of this name is none that `.ci/steady` stops and continues.
  const child = spawn(process.execPath, ['--title=stopped-by-test', '-e', LISTENER], {
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
  // Fills the queue: the first connection that does not open proves that it is full.
  for (let open = true; open; ) {
    const socket = net.connect(port, '127.0.0.1')
    closeLater(() => {
      socket.destroy()
    })
    socket.on('error', () => {})
    open = await Promise.race([
      once(socket, 'connect').then(() => true),
      // After a stall of this process the timer fires before an open connection is seen.
      delay(250).then(() => turn(false)),
    ])
  }
  return `http://127.0.0.1:${port}`
}

/** The state of a process in its line of `/proc`, behind its name. */
const stateOf = (pid: number): string | undefined =>
  / \(.*\) (\w) /s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]
