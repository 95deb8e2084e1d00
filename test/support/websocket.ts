import { once } from 'node:events'
import type http from 'node:http'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import { closeLater } from './cleanup.ts'
import type { Device } from './device.ts'
import { PATIENCE } from './running-test.ts'

export interface WebSocketDevice {
  /** The upgrade requests that reached the device. */
  readonly upgrades: readonly http.IncomingMessage[]
  /** The WebSockets at the device. */
  readonly sockets: readonly WebSocket[]
  readonly server: WebSocketServer
}

/** Makes a device accept WebSockets on any path. By default it echoes every message. */
export function acceptWebSockets(
  device: Device,
  onSocket: (socket: WebSocket) => void = echo,
): WebSocketDevice {
  const upgrades: http.IncomingMessage[] = []
  const sockets: WebSocket[] = []
  const server = new WebSocketServer({ noServer: true })
  device.server.on('upgrade', (request, socket, early) => {
    upgrades.push(request)
    server.handleUpgrade(request, socket, early, (accepted) => {
      sockets.push(accepted)
      accepted.on('error', () => {})
      onSocket(accepted)
    })
  })
  return { upgrades, sockets, server }
}

function echo(socket: WebSocket): void {
  socket.on('message', (data: RawData, binary: boolean) => socket.send(data, { binary }))
}

interface OpenWebSocket {
  readonly socket: WebSocket
  /** The 101 response. */
  readonly response: http.IncomingMessage
}

export interface WebSocketRequest {
  readonly path?: string
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly protocols?: string[]
  /** The local address to connect from. */
  readonly from?: string | undefined
  /** Fields of the handshake that replace those of `ws`. */
  readonly handshake?: Readonly<Record<string, string>>
}

/** Starts to open a WebSocket of the `ws` package and returns it before it is open. */
export function dial(
  url: string,
  { path = '/', token, headers = {}, protocols, from, handshake = {} }: WebSocketRequest,
): WebSocket {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${path}`, protocols ?? [], {
    headers: { ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }), ...headers },
    rejectUnauthorized: false,
    ...(from === undefined ? {} : { localAddress: from }),
    handshakeTimeout: PATIENCE,
    finishRequest(request) {
      for (const [name, value] of Object.entries(handshake)) request.setHeader(name, value)
      request.end()
    },
  })
  socket.on('error', () => {})
  socket.once(
    'close',
    closeLater(() => socket.terminate()),
  )
  return socket
}

/** Opens a WebSocket; rejects when the upgrade is refused. */
export async function openWebSocket(url: string, request: WebSocketRequest): Promise<OpenWebSocket> {
  const socket = dial(url, request)
  const upgraded = once(socket, 'upgrade')
  await once(socket, 'open')
  const [response] = await upgraded
  return { socket, response }
}

/** Requests a WebSocket upgrade that must be refused, and resolves with the response and its body. */
export async function refusedWebSocket(
  url: string,
  request: WebSocketRequest,
): Promise<{ readonly status: number; readonly fields: readonly string[]; readonly text: string }> {
  const socket = dial(url, request)
  const [, response]: [unknown, http.IncomingMessage] = await new Promise((resolve, reject) => {
    socket.once('unexpected-response', (...args) => resolve(args))
    socket.once('open', () => reject(new Error('the upgrade was not refused')))
    socket.once('error', reject)
  })
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return {
    status: response.statusCode ?? 0,
    fields: response.rawHeaders,
    text: Buffer.concat(chunks).toString(),
  }
}
