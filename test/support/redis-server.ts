import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { temporaryDirectory } from './certificate.ts'
import { closeLater } from './cleanup.ts'
import { unusedPort } from './raw.ts'
import { needs } from './tools.ts'

export interface RedisServer {
  readonly port: number
  /** The value of `tokens.store`. */
  readonly url: string
}

/**
 * Starts Debian's redis-server, in place of Valkey, on a free port of loopback and without persistence. It ends with the test.
 *
 * @param settings further arguments, or the path of a configuration file as the first
 */
export async function startRedisServer(...settings: readonly string[]): Promise<RedisServer> {
  needs('redis-server')
  const port = await unusedPort()
  const [first = ''] = settings
  const [file, rest] = first.startsWith('/') ? [[first], settings.slice(1)] : [[], settings]
  const own = ['--bind', '127.0.0.1', '--port', String(port), '--dir', temporaryDirectory()]
  const persistence = file.length === 0 ? ['--save', ''] : []
  const child = spawn('redis-server', [...file, ...own, ...persistence, ...rest], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  closeLater(async () => {
    child.kill('SIGKILL')
    await closed
  })
  const lines: string[] = []
  for await (const line of createInterface(child.stdout)) {
    lines.push(line)
    if (line.includes('Ready to accept connections')) {
      child.stdout.resume()
      return { port, url: `valkey://127.0.0.1:${port}` }
    }
  }
  throw new Error(`redis-server ended:\n${lines.join('\n')}`)
}
