import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { closeLater } from '../support/cleanup.ts'
import type { Case } from './case.ts'

/** A request as the device received it. */
export interface Seen {
  readonly method: string
  readonly target: string
}

/** A device that records the requests of each client. */
export interface WitnessDevice {
  readonly url: string
  /** Requests from a client address, in order, since the last `forget`. */
  seenFrom(client: string): readonly Seen[]
  /** Requests without the fields of the sidecar, and bytes that are no request: the sidecar must never send any. */
  strays(): readonly string[]
  forget(): void
}

/** A witness that responds to `/case/KEY` with the scripted bytes. */
export interface ScriptedDevice extends WitnessDevice {
  script(key: string, response: Case): void
  /** Closes all connections, including idle ones. */
  hangUp(): void
}

/** The field that identifies a response of the device. nginx always sends it, the sidecar never. */
export const MARK = 'Server'

/** Uses the request parser of Node, and writes responses directly to the socket. */
export async function startScriptedDevice(): Promise<ScriptedDevice> {
  const seen = new Map<string, Seen[]>()
  const scripts = new Map<string, Case>()
  const strays: string[] = []

  function serve(request: http.IncomingMessage, socket: Socket): void {
    const { method = '', url = '' } = request
    const client = request.headers['x-forwarded-for']
    if (typeof client === 'string') seen.set(client, [...(seen.get(client) ?? []), { method, target: url }])
    else strays.push(`${method} ${url}`)
    const script = scripts.get(/^\/case\/([^/?]+)/.exec(url)?.[1] ?? '')
    // Reads the body first, except for a scripted response, which may come early.
    if (script !== undefined) void playTo(socket, script)
    else if (request.complete || request.headers.upgrade !== undefined) respond(socket, method, url)
    else request.resume().once('end', () => respond(socket, method, url))
  }

  const server = http.createServer({ requestTimeout: 0, keepAliveTimeout: 0 }, (request) =>
    serve(request, request.socket),
  )
  server.on('upgrade', (request) => serve(request, request.socket))
  server.on('connection', (socket) => {
    socket.on('error', () => {})
  })
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    // A request that the sidecar aborts, because its client did, is no stray.
    if (error.code?.startsWith('HPE_') && error.code !== 'HPE_INVALID_EOF_STATE')
      strays.push(`${error.code} ${JSON.stringify(error.rawPacket?.toString('latin1'))}`)
    socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo // listening on TCP
  return {
    url: `http://127.0.0.1:${port}`,
    seenFrom: (client) => seen.get(client) ?? [],
    strays: () => strays,
    forget() {
      seen.clear()
      scripts.clear()
      strays.length = 0
    },
    script: (key, response) => scripts.set(key, response),
    hangUp: () => server.closeAllConnections(),
  }
}

function respond(socket: Socket, method: string, target: string): void {
  const body = `${method} ${target}`
  const head = `HTTP/1.1 200 OK\r\n${MARK}: Node\r\nContent-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n`
  if (socket.writable) socket.write(Buffer.from(method === 'HEAD' ? head : head + body, 'latin1'))
}

async function playTo(socket: Socket, { writes, ending }: Case): Promise<void> {
  for (const [i, text] of writes.entries()) {
    if (i > 0) await delay(1)
    if (socket.writable) socket.write(Buffer.from(text, 'latin1'))
  }
  if (ending === 'end') socket.end()
  else if (ending === 'reset') socket.resetAndDestroy()
}
