import type { Socket } from 'node:net'
import type { Clock } from '../../system/clock.ts'
import type { ListenLimits } from '../limits.ts'
import { createLingering } from '../linger.ts'
import { Http1Connection } from './connection.ts'
import type { ConnectionRules, Http1Handlers, IdleConnection } from './rules.ts'

export interface Http1Server {
  /** Takes a connection, in cleartext or decrypted, and what carries its bytes. */
  accept(socket: Socket, wire: Socket): void
  /**
   * From now on every response closes its connection, tunnels are closed, and so, a moment later, are idle connections:
   * a request that a client is just sending on one is still answered.
   */
  drain(): void
}

/** How long a connection that seems idle may still bring a request when the sidecar stops (ms). */
export const LAST_REQUEST: number = 500

/** So much longer (ms) than it was told an idle client may stay, so that its last request does not meet a closed door. */
const IDLE_BUFFER = 1_000

/** The HTTP/1 side of the public listener, for cleartext and TLS connections alike. */
export function createHttp1Server(
  limits: Pick<ListenLimits, 'headerTimeout' | 'idleTimeout' | 'maxHeaderSize'>,
  handlers: Http1Handlers,
  clock: Clock,
): Http1Server {
  const connections = new Set<Http1Connection>()
  let draining = false
  const rules: ConnectionRules = {
    headerTimeout: limits.headerTimeout,
    idleTimeout: limits.idleTimeout + IDLE_BUFFER,
    maxHeaderSize: limits.maxHeaderSize,
    handlers,
    lingering: createLingering(),
    keepAliveFields: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(limits.idleTimeout / 1000)}\r\n`,
    dateLine: createDateLine(clock),
    isDraining: () => draining,
    closeIdleSoon,
  }

  return {
    accept(socket, wire) {
      const connection = new Http1Connection(socket, wire, rules)
      connections.add(connection)
      socket.once('close', () => connections.delete(connection))
      // Its handshake was under way when the stop was asked for.
      if (draining) closeIdleSoon([connection])
    },
    drain() {
      draining = true
      for (const connection of connections) connection.serverStopping()
      rules.lingering.drain()
      closeIdleSoon(connections)
    },
  }
}

function closeIdleSoon(connections: Iterable<IdleConnection>): void {
  setTimeout(() => {
    for (const { idle, socket } of connections) if (idle) socket.destroy()
  }, LAST_REQUEST).unref()
}

/** The `Date` of a response (RFC 9110 §6.6.1), put together once a second. */
function createDateLine(clock: Clock): () => string {
  let second = -1
  let line = ''
  return () => {
    const now = Math.floor(clock.wall() / 1000)
    if (now !== second) {
      second = now
      line = `Date: ${new Date(now * 1000).toUTCString()}\r\n`
    }
    return line
  }
}
