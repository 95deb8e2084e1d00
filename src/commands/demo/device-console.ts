import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Ports } from './device-ports.ts'

export interface DeviceConsole {
  /** Completes the WebSocket handshake and serves the console on it. */
  readonly open: (req: IncomingMessage, socket: Duplex, head: Buffer) => void
  readonly closeAll: () => void
}

/** The device's maintenance console, over WebSocket: `help` and `ports` are commands, all else is echoed. */
export function createDeviceConsole(deps: { readonly ports: Ports }): DeviceConsole {
  const server = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 })

  const answer = (line: string): string => {
    if (line === 'help') return 'commands: help, ports; anything else is echoed'
    if (line === 'ports') return JSON.stringify(deps.ports.all())
    return line
  }
  server.on('connection', (client: WebSocket) => {
    client.on('message', (data, binary) => {
      if (binary) client.send(data)
      else client.send(answer(data.toString()))
    })
    // A client that breaks the framing is closed by `ws` itself; unheard, the error would end the process.
    client.on('error', () => client.terminate())
  })

  return {
    open: (req, socket, head) =>
      server.handleUpgrade(req, socket, head, (client) => server.emit('connection', client, req)),
    closeAll: () => {
      for (const client of server.clients) client.terminate()
      server.close()
    },
  }
}
