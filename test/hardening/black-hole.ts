import { spawn } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { closeLater } from '../support/cleanup.ts'

const LISTENER = `
  const server = require('node:net').createServer(() => {})
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port))`

/**
 * The URL of a port on which connections never open. The process that listens is stopped and its accept queue is full,
 * so the kernel drops every further SYN.
 */
export async function startBlackHole(): Promise<string> {
  const child = spawn(process.execPath, ['-e', LISTENER], { stdio: ['ignore', 'pipe', 'inherit'] })
  closeLater(() => {
    child.kill('SIGKILL')
  })
  const [said] = await once(child.stdout, 'data')
  child.kill('SIGSTOP')
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
      new Promise<boolean>((resolve) => setTimeout(resolve, 250, false)),
    ])
  }
  return `http://127.0.0.1:${port}`
}
