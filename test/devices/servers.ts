import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { lighttpdConfig, nginxConfig } from './server-configs.ts'

export interface ZooServer {
  readonly name: string
  /** The program that must be installed. */
  readonly program: string
  /** Whether it runs the CGI programs of the site, and whether they can get a request body. */
  readonly cgi: 'no' | 'without bodies' | 'with bodies'
  /** Whether it answers 304 to a condition on its validators. */
  readonly conditional: boolean
  /** Serves `root` until the test file ends. Resolves with the URL, or undefined if the program is missing. */
  start(root: string): Promise<string | undefined>
}

export const servers: readonly ZooServer[] = [
  {
    name: 'BusyBox httpd',
    program: 'busybox',
    cgi: 'with bodies',
    conditional: false,
    start: (root) => launch('busybox', (port) => ['httpd', '-f', '-p', `127.0.0.1:${port}`, '-h', root]),
  },
  {
    name: 'lighttpd',
    program: 'lighttpd',
    cgi: 'with bodies',
    conditional: true,
    start: (root) =>
      launch('lighttpd', (port) => ['-D', '-f', configFile('lighttpd.conf', lighttpdConfig(root, port))]),
  },
  {
    name: 'mini_httpd',
    program: 'mini_httpd',
    // Version 1.30 closes without a response when head and body arrive in one segment, as curl sends them too.
    cgi: 'without bodies',
    conditional: true,
    start: (root) =>
      launch('mini_httpd', (port) => [
        ...['-D', '-C', '/dev/null', '-h', '127.0.0.1', '-p', String(port)],
        ...['-d', root, '-c', 'cgi-bin/*', '-i', '/dev/null'],
      ]),
  },
  {
    name: 'micro-httpd',
    program: 'micro-httpd',
    cgi: 'no',
    conditional: false,
    start: (root) => superServer('micro-httpd', [root]),
  },
  {
    name: 'nginx',
    program: 'nginx',
    cgi: 'no',
    conditional: true,
    start: (root) =>
      launch('nginx', (port) => [
        ...['-e', '/dev/null', '-c', configFile('nginx.conf', nginxConfig(root, port))],
      ]),
  },
  {
    name: "Python's http.server",
    program: 'python3',
    cgi: 'no',
    conditional: true,
    start: (root) =>
      launch('python3', (port) => [
        '-m',
        'http.server',
        String(port),
        '--bind',
        '127.0.0.1',
        '--directory',
        root,
      ]),
  },
]

function configFile(name: string, text: string): string {
  const path = join(temporaryDirectory(), name)
  writeFileSync(path, text)
  return path
}

/** Starts a daemon in the foreground and waits until it accepts connections. */
async function launch(program: string, argsFor: (port: number) => string[]): Promise<string | undefined> {
  const port = await unusedPort()
  const child = spawn(program, argsFor(port), { stdio: 'ignore' })
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
  const first = await Promise.race([failed, untilOpen(port)])
  return first === 'missing' ? undefined : `http://127.0.0.1:${port}`
}

async function end(child: ChildProcess, gone: Promise<unknown>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return
  child.kill('SIGTERM')
  await gone
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

/** Acts as inetd: it starts a process for every connection, with the connection as its input and output. */
async function superServer(program: string, args: readonly string[]): Promise<string | undefined> {
  const server = net.createServer((socket) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] })
    child.once('error', () => socket.destroy())
    child.stdin.on('error', () => {})
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => child.stdin.write(chunk))
    socket.once('close', () => child.kill())
    child.stdout.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
  })
  const { port } = server.address() as net.AddressInfo // listening on TCP
  return `http://127.0.0.1:${port}`
}
