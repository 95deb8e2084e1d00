import { createServer, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Clock } from '../../system/clock.ts'
import { isBug } from '../../system/setup-error.ts'
import { createDeviceApi } from './device-api.ts'
import { createDeviceConsole } from './device-console.ts'
import { createPorts } from './device-ports.ts'

export interface SampleDeviceDeps {
  readonly clock: Clock
  /** Milliseconds between server-sent events; 1000 unless a test is in a hurry. */
  readonly eventInterval?: number
}

export interface SampleDevice {
  /** Listens on a free port of 127.0.0.1 and answers with the base URL, without a slash at its end. */
  readonly start: () => Promise<string>
  /** Closes the listener and every connection, at once. */
  readonly stop: () => Promise<void>
}

/** A small legacy power distribution unit to stand behind the sidecar: an HTTP API that trusts whoever asks. */
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
    // What fails here, but for a defect of ours, fails because the client left; a broken transfer must look broken.
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
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(0, '127.0.0.1', () => {
          server.off('error', reject)
          const bound = server.address()
          address = `http://127.0.0.1:${typeof bound === 'object' && bound ? bound.port : 0}`
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
