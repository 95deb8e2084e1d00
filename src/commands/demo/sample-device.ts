import { createServer, type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '../../system/clock.ts'
import { formatHostPort } from '../../system/listen-address.ts'
import { isBug } from '../../system/setup-error.ts'
import { createDeviceApi, createPorts, type Ports } from './device-api.ts'

export interface SampleDeviceDeps {
  readonly clock: Clock
  /** Time between server-sent events (ms). Default: 1000. */
  readonly eventInterval?: number
}

export interface SampleDeviceAddress {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
}

export interface SampleDevice {
  /**
   * Listens, by default on a free port of 127.0.0.1, and resolves to the base URL, without a slash at its end. Rejects with Node's
   * error if the address cannot be listened on.
   */
  readonly start: (where?: SampleDeviceAddress) => Promise<string>
  readonly stop: () => Promise<void>
}

/** A small legacy power distribution unit for the demo. Its HTTP API has no access control. */
export function createSampleDevice(deps: SampleDeviceDeps): SampleDevice {
  const ports = createPorts(8)
  const console = createDeviceConsole({ ports })
  let address = ''
  const api = createDeviceApi({
    clock: deps.clock,
    ports,
    eventInterval: deps.eventInterval ?? 1000,
    ownAddress: () => address,
  })

  const server = createServer((req, res) => {
    // Any error except a bug means that the client left. Destroying the response shows that the transfer is incomplete.
    api(req, res).catch((error: unknown) => {
      res.destroy()
      if (isBug(error)) throw error
    })
  })
  server.on('upgrade', (req, socket, head) => {
    socket.on('error', () => socket.destroy())
    if (req.url?.split('?')[0] === '/api/console') console.open(req, socket, head)
    else refuseUpgrade(socket, 404)
  })

  return {
    start: ({ host, port } = { host: '127.0.0.1', port: 0 }) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          const bound = server.address()
          const chosen = typeof bound === 'object' && bound ? bound.port : 0
          address = `http://${formatHostPort({ host, port: chosen })}`
          resolve(address)
        })
      }),
    stop: () =>
      new Promise((resolve) => {
        console.closeAll()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function refuseUpgrade(socket: Duplex, status: number): void {
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`
  socket.end(head, () => socket.destroy())
}

export interface DeviceConsole {
  readonly open: (req: IncomingMessage, socket: Duplex, head: Buffer) => void
  readonly closeAll: () => void
}

/** The device's maintenance console over WebSocket: `help` and `ports` are commands, other text is echoed. */
export function createDeviceConsole(deps: { readonly ports: Ports }): DeviceConsole {
  const server = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 })

  const reply = (line: string): string => {
    if (line === 'help') return 'commands: help, ports; anything else is echoed'
    if (line === 'ports') return JSON.stringify(deps.ports.all())
    return line
  }
  server.on('connection', (client: WebSocket) => {
    client.on('message', (data, binary) => {
      if (binary) client.send(data)
      else client.send(reply(data.toString()))
    })
    // `ws` reports a framing error of the client here. Without a listener it would end the process.
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
