import { createServer, type Server, type Socket } from 'node:net'
import process from 'node:process'
import { createServer as createTlsServer } from 'node:tls'
import { capConnections } from '../../src/listen/connection-caps.ts'
import { loadTlsMaterial } from '../../src/listen/tls-material.ts'
import { type AccessLog, createAccessLog } from '../../src/record/access-log.ts'
import { openLog } from '../../src/record/log.ts'
import { systemClock } from '../../src/system/clock.ts'
import { machineNames } from '../../src/system/machine-names.ts'
import { keepTicksFast } from '../../src/system/tick-objects.ts'
import { capabilitiesUpTo } from './capabilities.ts'
import { Floor } from './floor.ts'
import { Http1Client, IDLE_TIMEOUT } from './http1-client.ts'
import { serveHttp2 } from './http2-client.ts'

/**
 * `node floor-server.ts PORT DEVICE_PORT LAST [FOLDER]`: the floor with its capabilities up to LAST. With FOLDER, which holds or gets the certificate, it
 * speaks HTTP/1.1 and HTTP/2 over TLS, otherwise cleartext HTTP/1.1. Access lines go to standard output.
 */

// A full collection would make the floor slower for good, and the ratio better.
keepTicksFast()

const [, , port = '', devicePort = '', last = '', folder] = process.argv
const capabilities = capabilitiesUpTo(last)
const floor = new Floor(capabilities, Number(devicePort), await accessLog())

/** Room for every connection of a load. */
const CAPS = { maxConnections: 10_000, maxConnectionsPerClient: 10_000, idleTimeout: IDLE_TIMEOUT }

async function accessLog(): Promise<AccessLog | undefined> {
  if (!capabilities.has('log')) return undefined
  const log = await openLog({ level: 'info', format: 'json' }, { terminal: false, fd: 1 })
  return createAccessLog(log, systemClock, { config: { log: { access: true } } })
}

async function secureServer(material: string): Promise<Server> {
  const secrets = await loadTlsMaterial('auto', material, { clock: systemClock, machine: machineNames })
  return createTlsServer({ ...secrets, ALPNProtocols: ['h2', 'http/1.1'], noDelay: true }, (socket) => {
    if (!mayStay(socket)) return
    if (socket.alpnProtocol === 'h2') serveHttp2(floor, socket)
    else new Http1Client(floor, socket, true)
  })
}

function plainServer(): Server {
  return createServer({ noDelay: true }, (socket) => {
    if (mayStay(socket)) new Http1Client(floor, socket, false)
  })
}

const secure = folder === undefined ? undefined : await secureServer(folder)
const server = secure ?? plainServer()
const caps = capabilities.has('caps')
  ? capConnections({
      clock: systemClock,
      limits: CAPS,
      clientOf: (peer) => ({ key: peer, peerTrusted: false, hops: 0, admitted: true }),
      onRefused: (reason) => process.stderr.write(`refused: ${reason}\n`),
    })
  : undefined

function mayStay(socket: Socket): boolean {
  return caps?.mayStay(socket) ?? true
}

server.listen(Number(port), '127.0.0.1')
