import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type net from 'node:net'
import { fieldValues } from '../../src/http/fields.ts'
import { closeLater } from './cleanup.ts'
import { unusedPort } from './raw.ts'

/** A request as the device received it. */
export interface DeviceRequest {
  readonly method: string
  /** The target, byte for byte. */
  readonly target: string
  readonly version: string
  /** Names and values in turn; order, repeats and casing as on the wire. */
  readonly fields: readonly string[]
  header(name: string): string | undefined
  values(name: string): readonly string[]
  /** The body, once the default handler or `readBody` has read it. */
  readonly body: Buffer | undefined
}

/** The result is awaited and ignored. */
type Handler = (request: http.IncomingMessage, response: http.ServerResponse) => unknown

export interface Device {
  /** The value for `upstream.url`. */
  readonly url: string
  /** Every request so far; a request is listed as soon as its head has arrived. */
  readonly requests: readonly DeviceRequest[]
  /** The first 16 MiB received on all connections, decrypted, in order of arrival. */
  readonly bytes: Buffer
  /** How many bytes the device has received. */
  readonly byteCount: number
  /** How many connections the device has accepted, and how many of them are open. */
  readonly connections: number
  readonly openConnections: number
  /** Node's server, for `upgrade` events and the like. */
  readonly server: http.Server
  /** Changes how the device responds from now on. */
  handle(handler: Handler): void
  /** Waits until `count` requests have arrived since the start, and resolves with the last of them. */
  waitForRequests(count: number): Promise<DeviceRequest>
  /** Waits until exactly `count` connections are open. */
  waitForOpenConnections(count: number): Promise<void>
  /** Ends every connection with FIN. The device keeps listening. */
  closeConnections(): void
  /** Closes the port and every connection. */
  stop(): Promise<void>
}

const bodies = new WeakMap<http.IncomingMessage, Buffer>()

/** Reads the body of a request to its end and stores it for `device.requests`. */
export async function readBody(request: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  bodies.set(request, body)
  return body
}

const respondPlainly: Handler = async (request, response) => {
  await readBody(request)
  response.setHeader('Content-Type', 'text/plain')
  response.end('from the device')
}

const keptBytes = 16 << 20

/**
 * Starts a device on a real socket that records what it receives. Without a handler it answers 200 `from the device`.
 * It stops when the test ends.
 * @param options.tls the certificate of a device that speaks HTTPS
 * @param options.path the Unix socket to listen on instead of a port of 127.0.0.1
 * @param options.port the port to listen on; default: any free port
 */
export async function startDevice(
  handler: Handler = respondPlainly,
  options: {
    readonly tls?: { readonly cert: string; readonly key: string }
    readonly path?: string
    readonly port?: number
  } = {},
): Promise<Device> {
  let current = handler
  const changes = new EventEmitter().setMaxListeners(0)
  const requests: DeviceRequest[] = []
  const chunks: Buffer[] = []
  const open = new Set<net.Socket>()
  let byteCount = 0
  let connections = 0

  const serve = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    requests.push({
      method: request.method ?? '',
      target: request.url ?? '',
      version: request.httpVersion,
      fields: request.rawHeaders,
      header: (name) => fieldValues(request.rawHeaders, name.toLowerCase())[0],
      values: (name) => fieldValues(request.rawHeaders, name.toLowerCase()),
      get body() {
        return bodies.get(request)
      },
    })
    changes.emit('change')
    // A request that breaks off while the handler reads it ends the handler, not the test.
    Promise.resolve(current(request, response)).catch(() => response.destroy())
  }
  const server = options.tls ? https.createServer(options.tls, serve) : http.createServer(serve)
  server.keepAliveTimeout = 60_000
  server.on('connection', (socket: net.Socket) => {
    connections += 1
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      changes.emit('change')
    })
    changes.emit('change')
  })
  server.on(options.tls ? 'secureConnection' : 'connection', (socket: net.Socket) => {
    socket.on('data', (chunk: Buffer) => {
      if (byteCount < keptBytes) chunks.push(chunk)
      byteCount += chunk.length
    })
  })
  if (options.path === undefined)
    server.listen(options.port ?? (await unusedPort({ forNode: true })), '127.0.0.1')
  else server.listen(options.path)
  await once(server, 'listening')
  const address = server.address()
  const scheme = options.tls ? 'https' : 'http'

  async function until(holds: () => boolean): Promise<void> {
    while (!holds()) await once(changes, 'change')
  }
  async function stop(): Promise<void> {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of open) socket.destroy()
    await closed
  }
  closeLater(stop)

  return {
    url:
      typeof address === 'object' && address !== null
        ? `${scheme}://127.0.0.1:${address.port}`
        : `${scheme}+unix:${options.path}`,
    requests,
    get bytes() {
      return Buffer.concat(chunks)
    },
    get byteCount() {
      return byteCount
    },
    get connections() {
      return connections
    },
    get openConnections() {
      return open.size
    },
    server,
    handle(next) {
      current = next
    },
    async waitForRequests(count) {
      await until(() => requests.length >= count)
      return requests[count - 1] as DeviceRequest // `until` has checked the length
    },
    waitForOpenConnections: (count) => until(() => open.size === count),
    closeConnections() {
      for (const socket of open) socket.end()
    },
    stop,
  }
}

/** A device that holds every request until the test answers it, and the held responses in order of arrival. */
export async function startHoldingDevice(): Promise<{
  readonly device: Device
  readonly held: readonly http.ServerResponse[]
}> {
  const held: http.ServerResponse[] = []
  const device = await startDevice((_request, response) => held.push(response))
  return { device, held }
}
