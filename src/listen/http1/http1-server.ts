import type { Socket } from 'node:net'
import type { Holding } from '../../memory/account.ts'
import type { Clock } from '../../system/clock.ts'
import { IdleList } from '../../system/idle-list.ts'
import type { ListenLimits, ListenMemory } from '../connection-caps.ts'
import type { Lingering } from '../linger.ts'
import { type ConnectionRules, Http1Connection, type Http1Handlers } from './http1-connection.ts'

/** How much longer (ms) than announced in `Keep-Alive` an idle connection stays open, so that a late request still finds it open. */
const IDLE_BUFFER = 1_000

/**
 * How long (ms) a client that has closed its sending side over TLS may read nothing. The time is short because that end may be a reset: if
 * a reset arrives while Node 26.10 sends session tickets, Node reports an end, and later no write error.
 */
const ENDED_SILENCE = 5_000

/**
 * The HTTP/1 side of the public listener, for cleartext and TLS connections alike.
 *
 * @param redirects the connections are those of `listen.redirect`
 */
export function createHttp1Server(
  limits: Pick<ListenLimits, 'headerTimeout' | 'idleTimeout' | 'maxHeaderSize'>,
  handlers: Http1Handlers,
  clock: Clock,
  lingering: Pick<Lingering, 'end'>,
  memory: ListenMemory,
  redirects = false,
) {
  const connections = new Set<Http1Connection>()
  const idleTimeout = limits.idleTimeout + IDLE_BUFFER
  const rules: ConnectionRules = {
    clock,
    headerTimeout: limits.headerTimeout,
    idle: new IdleList(clock, idleTimeout),
    ended: new IdleList(clock, Math.min(idleTimeout, ENDED_SILENCE)),
    maxHeaderSize: limits.maxHeaderSize,
    handlers,
    lingering,
    memory,
    redirects,
    keepAliveFields: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(limits.idleTimeout / 1000)}\r\n`,
    dateLine: createDateLine(clock),
    draining: false,
  }

  return {
    /** Serves a connection, in cleartext or decrypted. `wire`: the TCP socket below it. `holding`: its memory. */
    accept(socket: Socket, wire: Socket, holding: Holding): void {
      const connection = new Http1Connection(socket, wire, rules, holding)
      connections.add(connection)
      socket.once('close', () => connections.delete(connection))
      // The TLS handshake was in progress when the stop began.
      if (rules.draining) connection.serverStopping()
    },
    /**
     * From now on every connection closes after its response, and tunnels close. Idle connections close after `LAST_REQUEST`, so a request
     * that is already in flight is still served.
     */
    drain(): void {
      rules.draining = true
      for (const connection of connections) connection.serverStopping()
    },
  }
}

/** Returns a function that gives the `Date` line of responses (RFC 9110 §6.6.1). It is formatted at most once a second. */
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
