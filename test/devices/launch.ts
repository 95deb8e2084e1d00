import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import type { Readable } from 'node:stream'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'

/** What a program prints once it is ready. Without it, one is ready when it accepts connections. */
export const READY = 'ready'

/** Starts a daemon in the foreground and waits until it is ready. */
export async function launch(
  program: string,
  argsFor: (port: number) => string[],
  { saysReady = false } = {},
): Promise<string | undefined> {
  const port = await unusedPort()
  const child = spawn(program, argsFor(port), {
    // A program that reads commands from its input must not see the end of it.
    stdio: ['pipe', saysReady ? 'pipe' : 'ignore', 'ignore'],
    env: { ...process.env, HOME: temporaryDirectory() },
  })
  child.stdin?.on('error', () => {})
  const gone = once(child, 'exit').catch(() => {})
  const failed = new Promise<'missing'>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve('missing')
      else reject(error)
    })
    child.once('exit', (code) => reject(new Error(`${program} ended with ${code}`)))
  })
  failed.catch(() => {})
  closeLater(() => end(child, gone))
  const first = await Promise.race([
    failed,
    child.stdout === null ? untilOpen(port) : untilReady(child.stdout),
  ])
  return first === 'missing' ? undefined : `http://127.0.0.1:${port}`
}

async function end(child: ChildProcess, gone: Promise<unknown>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return
  child.kill('SIGTERM')
  // Erlang takes seconds to stop.
  const timer = setTimeout(() => child.kill('SIGKILL'), 100)
  await gone
  clearTimeout(timer)
}

/** Keeps reading afterwards: a program may stop when its output is not read. */
function untilReady(output: Readable): Promise<'ready'> {
  return new Promise((resolve) => {
    let text = ''
    output.on('data', (chunk) => {
      text += chunk
      if (text.includes(READY)) resolve('ready')
    })
  })
}

async function untilOpen(port: number): Promise<'open'> {
  for (;;) {
    const socket = net.connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return 'open'
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    } finally {
      socket.destroy()
    }
  }
}
