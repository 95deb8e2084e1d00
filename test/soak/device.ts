import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { bytesFor } from './random.ts'

/** The device of the soak. The path of a request selects the response. It can be stopped and started on the same port. */
export interface SoakDevice {
  readonly url: string
  /** Requests with a bearer token or a wrong client address, which the sidecar must never forward. */
  readonly complaints: readonly string[]
  takeDown(): Promise<void>
  bringUp(): Promise<void>
}

/** The `Server` field of its responses. */
const SERVER = 'soak'

type Handler = (request: http.IncomingMessage, response: http.ServerResponse, args: readonly number[]) => void

const HANDLERS: Readonly<Record<string, Handler>> = {
  /** `/bytes/KEY/LENGTH`: with a Content-Length, or in chunks if the length is odd. */
  bytes(_request, response, [key = 0, length = 0]) {
    if (length % 2 === 0) response.setHeader('Content-Length', length)
    response.end(bytesFor(key, length))
  },
  upload(request, response) {
    const hash = createHash('sha256')
    let length = 0
    request.on('data', (chunk: Buffer) => {
      hash.update(chunk)
      length += chunk.length
    })
    request.once('end', () => response.end(`${length} ${hash.digest('hex')}`))
  },
  /** `/slow/MS` */
  slow(_request, response, [ms = 0]) {
    const timer = setTimeout(() => response.end('at last'), ms)
    response.once('close', () => clearTimeout(timer))
  },
  status(_request, response, [code = 200]) {
    response.writeHead(code).end(code === 204 || code === 304 ? undefined : `status ${code}`)
  },
  /** `/cut/LENGTH`: announces this length, sends half of it and destroys the connection. */
  cut(_request, response, [length = 0]) {
    response.setHeader('Content-Length', length)
    response.write(Buffer.alloc(length / 2), () => response.destroy())
  },
  events(_request, response, [count = 0]) {
    response.setHeader('Content-Type', 'text/event-stream')
    void sendEvents(response, count)
  },
  /** Sends no response; the client leaves. */
  hold() {},
}

async function sendEvents(response: http.ServerResponse, count: number): Promise<void> {
  for (let i = 0; i < count && !response.destroyed; i++) {
    response.write(`data: ${i}\n\n`)
    await delay(20)
  }
  response.end()
}

export async function startSoakDevice(): Promise<SoakDevice> {
  const complaints: string[] = []
  let running: { readonly server: http.Server; readonly sockets: ReadonlySet<Socket> } | undefined
  const port = await unusedPort()

  function inspect({ headers, url }: http.IncomingMessage): void {
    if (headers.authorization !== undefined) complaints.push(`${url} with Authorization`)
    if (!/^127\.\d+\.\d+\.\d+$/.test(String(headers['x-forwarded-for']))) {
      complaints.push(`${url} from ${headers['x-forwarded-for']}`)
    }
  }

  async function bringUp(): Promise<void> {
    const starting = http.createServer({ keepAliveTimeout: 4000, requestTimeout: 0 }, (request, response) => {
      inspect(request)
      response.on('error', () => {})
      const [, name = '', ...args] = (request.url ?? '').split('/')
      response.setHeader('Server', SERVER)
      response.setHeader('X-RateLimit-Limit', '7')
      const handler = HANDLERS[name]
      if (handler === undefined) response.writeHead(404).end('unknown')
      else handler(request, response, args.map(Number))
    })
    const tunnels = new WebSocketServer({ noServer: true, maxPayload: 4 << 20 })
    starting.on('upgrade', (request, socket, early) => {
      inspect(request)
      socket.on('error', () => {})
      tunnels.handleUpgrade(request, socket, early, echo)
    })
    const sockets = new Set<Socket>()
    starting.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    starting.listen(port, '127.0.0.1')
    await once(starting, 'listening')
    running = { server: starting, sockets }
  }

  async function takeDown(): Promise<void> {
    if (running === undefined) return
    const { server, sockets } = running
    running = undefined
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }

  await bringUp()
  closeLater(takeDown)
  return { url: `http://127.0.0.1:${port}`, complaints, takeDown, bringUp }
}

function echo(socket: WebSocket): void {
  socket.on('error', () => {})
  socket.on('message', (data: RawData, binary: boolean) => socket.send(data, { binary }))
}
