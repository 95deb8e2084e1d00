import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { fieldValues } from '../../src/http/fields.ts'
import { closeLater } from './cleanup.ts'
import { type RawPeer, rawPeer } from './raw.ts'

/** A request as it reached the device. */
export interface DeviceRequest {
  readonly method: string
  /** The target, byte for byte. */
  readonly target: string
  readonly version: string
  /** As on the wire: order, repeats and casing. */
  readonly fields: readonly string[]
  header(name: string): string | undefined
  values(name: string): readonly string[]
  /** The body, once it has been read: by the default handler, or by `readBody`. */
  readonly body: Buffer | undefined
}

/** What it returns is only awaited, so that a body may end in any expression. */
type Handler = (request: http.IncomingMessage, response: http.ServerResponse) => unknown

export interface Device {
  /** Goes into `upstream.url`. */
  readonly url: string
  /** Every request so far, from the moment its head had come. */
  readonly requests: readonly DeviceRequest[]
  /** Every byte received so far on all connections, in the order of arrival (in cleartext; the first 16 MiB). */
  readonly bytes: Buffer
  /** How many bytes have been received. */
  readonly byteCount: number
  /** How many connections have been made, and how many of them are open. */
  readonly connections: number
  readonly openConnections: number
  /** Node's server, for `upgrade` events and the like. */
  readonly server: http.Server
  /** Answers differently from now on. */
  handle(handler: Handler): void
  /** Waits until so many requests in all have come, and resolves with the last of them. */
  waitForRequests(count: number): Promise<DeviceRequest>
  /** Waits until so many connections are open. */
  waitForOpenConnections(count: number): Promise<void>
  /** Ends every connection with FIN and leaves the device listening. */
  closeConnections(): void
  /** Goes down: closes the port and every connection. */
  stop(): Promise<void>
}

const bodies = new WeakMap<http.IncomingMessage, Buffer>()

/** Reads a request's body to its end, and keeps it for `device.requests`. */
export async function readBody(request: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  bodies.set(request, body)
  return body
}

const answerPlainly: Handler = async (request, response) => {
  await readBody(request)
  response.setHeader('Content-Type', 'text/plain')
  response.end('from the device')
}

const keptBytes = 16 << 20

/**
 * A device on a real socket that records what reaches it. It answers 200 `from the device`, unless a handler says
 * otherwise. Closed when the test ends.
 * @param options.tls its certificate, for a device that speaks HTTPS
 * @param options.path the Unix socket to listen on instead of a port of 127.0.0.1
 * @param options.port a port to come back on, after `stop`
 */
export async function startDevice(
  handler: Handler = answerPlainly,
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
    // A request that is cut off while it is read ends the handler, not the test.
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
  if (options.path === undefined) server.listen(options.port ?? 0, '127.0.0.1')
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
      return requests[count - 1] as DeviceRequest // just seen to be there
    },
    waitForOpenConnections: (count) => until(() => open.size === count),
    closeConnections() {
      for (const socket of open) socket.end()
    },
    stop,
  }
}

export interface RawDevice {
  readonly url: string
  /** Every connection so far, in order. */
  readonly peers: readonly RawPeer[]
  /** Waits for the connection of that number, from 1. */
  waitForConnection(count: number): Promise<RawPeer>
  stop(): Promise<void>
}

/**
 * A device whose every byte is scripted: `onConnection` reads with `peer.waitFor` and answers with `peer.write`,
 * `peer.end` and `peer.reset`. Closed when the test ends.
 */
export async function startRawDevice(
  onConnection: (peer: RawPeer, number: number) => void | Promise<void>,
): Promise<RawDevice> {
  const peers: RawPeer[] = []
  const changes = new EventEmitter().setMaxListeners(0)
  // Half-open, so that the script and not Node decides when its side ends.
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const peer = rawPeer(socket)
    peers.push(peer)
    changes.emit('change')
    // The script may wait for bytes that never come once the test is over.
    Promise.resolve(onConnection(peer, peers.length)).catch(() => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  async function stop(): Promise<void> {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const { socket } of peers) socket.destroy()
    await closed
  }
  closeLater(stop)
  const { port } = server.address() as net.AddressInfo // a TCP server's address is never a string
  return {
    url: `http://127.0.0.1:${port}`,
    peers,
    async waitForConnection(count) {
      while (peers.length < count) await once(changes, 'change')
      return peers[count - 1] as RawPeer // just seen to be there
    },
    stop,
  }
}

/** A raw device that answers every connection's first request head with the same bytes, then ends the connection. */
export function startCannedDevice(bytes: string): Promise<RawDevice> {
  return startRawDevice(async (peer) => {
    await peer.waitFor('\r\n\r\n')
    peer.end(bytes)
  })
}
