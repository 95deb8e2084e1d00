// Acts as inetd: it starts a process for every connection, with the connection as its input and output. It is a process of its own,
// because a fork of a small process takes a tenth of the time that one of the test's process takes.
import { spawn } from 'node:child_process'
import net from 'node:net'
import process from 'node:process'

const [port, program = '', ...args] = process.argv.slice(2)

net
  .createServer((socket) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] })
    child.once('error', () => socket.destroy())
    child.stdin.on('error', () => {})
    socket.on('error', () => {})
    socket.on('data', (chunk) => child.stdin.write(chunk))
    socket.once('close', () => child.kill())
    child.stdout.pipe(socket)
  })
  .listen(Number(port), '127.0.0.1')
