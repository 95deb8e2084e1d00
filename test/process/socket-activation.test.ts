import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { connect as connectSocket, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { connect, send } from '../support/client.ts'
import { startDevice } from '../support/device.ts'
import type { Connection } from '../support/message.ts'
import type { Transport } from '../support/transports.ts'
import { clientOf, ENV, type LogLine, MAIN, prepareSite, readLog } from './serve.ts'

/**
 * Acts as a service manager: it holds the listening socket, passes it to the sidecar as descriptor 3, and starts another
 * sidecar whenever one exits with 0. It is a shell, because a parent in Node would accept the connections itself. It
 * prints the process id of each sidecar.
 */
const MANAGER = 'while sh -c \'echo "pid $$"; exec "$@"\' sh "$@"; do :; done'

interface Managed {
  readonly address: string
  readonly log: readonly LogLine[]
  /** The process ids of the sidecars so far. */
  readonly pids: () => readonly number[]
  /** Waits until the sidecar with this number listens; the first is 1. */
  started(count: number): Promise<LogLine>
}

/** The file descriptor of a server. Node has no public API for it. */
function descriptorOf(server: Server): number {
  const { _handle: handle } = server as Server & { readonly _handle?: { readonly fd: number } }
  if (handle === undefined) throw new Error('the server does not listen')
  return handle.fd
}

/**
 * @param path the path of a Unix socket; default: a TCP port of `host`
 * @param second passed as descriptor 4
 */
async function manage(
  configFile: string,
  { path, host = '127.0.0.1', second }: { path?: string; host?: string; second?: Server } = {},
): Promise<Managed> {
  const bound = `${path}.bound`
  const server = createServer().listen(path === undefined ? { port: 0, host } : { path: bound })
  await once(server, 'listening')
  // `close` removes the path that was bound.
  if (path !== undefined) renameSync(bound, path)
  const at = server.address()
  const address = typeof at === 'object' && at !== null ? `127.0.0.1:${at.port}` : ''
  const command = [process.execPath, MAIN, 'serve', '--config', configFile]
  const manager = spawn('sh', ['-c', MANAGER, 'sh', ...command], {
    stdio: [
      'ignore',
      'pipe',
      'pipe',
      ...(second === undefined ? [server] : [server, second]).map(descriptorOf),
    ],
    env: ENV,
  })
  second?.close()
  server.close() // the manager has its own descriptor of the socket
  if (manager.stderr === null) throw new Error('stderr is not piped')
  const stderr = text(manager.stderr)
  const { log, lines, waitForLog } = readLog(manager, stderr)
  const ended = once(manager, 'close')
  const pids = (): readonly number[] =>
    lines.filter((line) => line.startsWith('pid ')).map((line) => Number(line.slice(4)))
  closeLater(async () => {
    // A killed sidecar does not exit with 0, so the manager ends too.
    const last = pids().at(-1)
    if (last !== undefined && manager.exitCode === null) process.kill(last, 'SIGKILL')
    await ended
  })
  return {
    address,
    log,
    pids,
    started: (count) =>
      waitForLog(
        'listening',
        (line) => log.filter(({ msg }) => msg === 'listening').indexOf(line) === count - 1,
      ),
  }
}

/** Six clients that send requests without a pause: hundreds during a restart, and not so many that they slow it down. */
interface Load {
  readonly sent: number
  /** The requests that failed or got a wrong response. */
  readonly lost: readonly unknown[]
  /** Stops the clients; resolves when the last response has arrived. */
  finish(): Promise<void>
}

function load(url: string, transport: Transport, token: string, kept: boolean): Load {
  const lost: unknown[] = []
  const keeping = kept ? [] : ['Connection', 'close']
  let sent = 0
  let done = false

  /** Sends one request; returns the connection if it can carry another one. */
  async function ask(before: Connection | undefined): Promise<Connection | undefined> {
    sent += 1
    const path = `/${sent}`
    try {
      const connection = before ?? (await connect({ transport, url }))
      const fields = ['Authorization', `Bearer ${token}`, ...keeping]
      const response = await connection.send({ path, fields })
      if (response.status !== 200 || response.text !== `response to ${path}`)
        lost.push([path, response.status, response.text])
      if (response.header('connection') !== 'close') return connection
      connection.close()
    } catch (error) {
      lost.push([path, String(error)])
    }
    return undefined
  }

  const clients = Array.from({ length: 6 }, async () => {
    let connection: Connection | undefined
    while (!done) connection = await ask(connection)
  })
  return {
    get sent() {
      return sent
    },
    lost,
    async finish() {
      done = true
      await Promise.all(clients)
    },
  }
}

it('clients of a Unix socket that is passed as fd:3 are served', async () => {
  const path = join(temporaryDirectory(), 'postern.sock')
  const site = await prepareSite({ transport: 'http1', config: { listen: { address: 'fd:3' } } })
  const manager = await manage(site.configFile, { path })
  await manager.started(1)
  const client = connectSocket(path)
  client.end('GET / HTTP/1.1\r\nHost: device\r\nConnection: close\r\n\r\n')
  expect(await text(client)).toMatch(/^HTTP\/1\.1 401 /)
})

it('H366 a second socket that is passed as fd:4 leads to the first', async () => {
  const second = createServer().listen({ port: 0, host: '127.0.0.1' })
  await once(second, 'listening')
  const at = second.address()
  const url = typeof at === 'object' && at !== null ? `http://127.0.0.1:${at.port}` : ''
  const config = { listen: { address: 'fd:3', redirect: 'fd:4' } }
  const site = await prepareSite({ transport: 'tls', config })
  const managed = await manage(site.configFile, { second })
  await managed.started(1)
  const response = await send({ transport: 'http1', url, path: '/x' })
  expect([response.status, response.header('location')]).toEqual([301, `https://${managed.address}/x`])
})

it('C17 an IPv4 client of a socket for IPv4 and IPv6, as postern.socket has it, counts by its IPv4 address', async () => {
  const limits = { api: { requests: 10 } }
  const site = await prepareSite({ transport: 'http1', config: { listen: { address: 'fd:3' }, limits } })
  const manager = await manage(site.configFile, { host: '::' })
  expect((await manager.started(1)).public).toMatch(/^http:\/\/\[::\]:\d+$/)
  const [, port] = manager.address.split(':')
  const remaining = async (host: string): Promise<unknown> => {
    const response = await send({ transport: 'http1', url: `http://${host}:${port}` })
    return response.header('x-ratelimit-remaining')
  }
  expect([await remaining('127.0.0.1'), await remaining('[::ffff:127.0.0.1]')]).toEqual(['9', '8'])
  expect([await remaining('[::1]'), await remaining('127.0.0.1')]).toEqual(['9', '7'])
})

it.each<[kind: string, transport: Transport, kept: boolean]>([
  ['a connection for each request', 'http1', false],
  ['a TLS connection for each request', 'tls', false],
  ['kept connections', 'http1', true],
])(
  'a restart with listen.address fd:3 loses no request of clients with %s',
  async (_kind, transport, kept) => {
    const device = await startDevice(async (request, response) => {
      await delay(Number(request.url?.slice(1)) % 20)
      response.end(`response to ${request.url}`)
    })
    const site = await prepareSite({ device, transport, config: { listen: { address: 'fd:3' } } })
    const manager = await manage(site.configFile)
    const url = `${transport === 'http1' ? 'http' : 'https'}://${manager.address}`
    const first = await manager.started(1)
    expect(first.public).toBe(url)
    const sidecar = clientOf(url, String(first.admin), transport, site.stateDir)
    const { access_token } = await sidecar.grant()

    const clients = load(url, transport, access_token, kept)
    await device.waitForRequests(device.requests.length + 50)
    process.kill(manager.pids().at(-1) ?? 0, 'SIGTERM')
    await manager.started(2)
    await device.waitForRequests(device.requests.length + 50)
    await clients.finish()
    expect(clients.lost).toEqual([])
    expect(new Set(manager.pids()).size).toBe(2)
    // The device got each request once: none was lost, none was sent again.
    expect(device.requests).toHaveLength(clients.sent)
  },
)
