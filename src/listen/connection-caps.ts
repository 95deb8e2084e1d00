import type { Server, Socket } from 'node:net'
import type { Clock } from '../system/clock.ts'
import type { ListenLimits, RefusedConnection } from './limits.ts'

/** Whose connections count together. */
export interface ConnectedClient {
  /** An IPv4 address, or the /64 of an IPv6 one. */
  readonly key: string
  /** A trusted proxy speaks for many clients, so that only the cap on all connections holds for it. */
  readonly peerTrusted: boolean
}

export interface ConnectionCapsDependencies {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly limits: Pick<ListenLimits, 'maxConnections' | 'maxConnectionsPerClient' | 'idleTimeout'>
  readonly clientOf: (peer: string) => ConnectedClient
  readonly onRefused: (reason: RefusedConnection) => void
}

export interface ConnectionCaps {
  /**
   * Whether a connection may stay; one that may not is closed already, without an answer: whoever is over a cap gets no
   * work out of us.
   */
  mayStay(socket: Socket): boolean
  /**
   * A connection of that peer has closed on which it overdid something: it goes on counting for `idleTimeout`, as if many
   * were open and idle. Otherwise a new connection would be all that it takes to begin again.
   * @param part of what a connection is ended for, 0 to 1
   */
  remember(peer: string, part: number): void
}

/** So many connections that were ended for what they did make up the whole of what a client may have. */
const MOST_ENDED = 25

/** An open connection, in whole numbers so small that the least part of a twenty-fifth of one is one of them, too. */
const OPEN = 1_000

/**
 * The most closed connections remembered, of all clients together (about 100 bytes each); the oldest are forgotten for
 * newer ones. More of them in a minute than a processor core has time to serve.
 */
const MOST_REMEMBERED = 20_000

/** Holds a server to its connections, in all and per client, before anything is read or encrypted. */
export function capConnections(
  server: Server,
  { clock, limits, clientOf, onRefused }: ConnectionCapsDependencies,
): ConnectionCaps {
  const counts = new Map<string, number>()
  /** The oldest first. Each was a connection that had to be let in. */
  const remembered: { readonly key: string; readonly weight: number; readonly until: number }[] = []
  server.maxConnections = limits.maxConnections
  server.on('drop', () => onRefused('max_connections'))

  function take(key: string, weight: number): void {
    counts.set(key, (counts.get(key) ?? 0) + weight)
  }

  function release(key: string, weight: number): void {
    const left = (counts.get(key) ?? 0) - weight
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }

  function forget(now: number, most: number): void {
    for (;;) {
      const oldest = remembered[0]
      if (oldest === undefined || (oldest.until > now && remembered.length <= most)) return
      remembered.shift()
      release(oldest.key, oldest.weight)
    }
  }

  return {
    mayStay(socket) {
      const { remoteAddress } = socket
      // Over a Unix socket all clients are alike.
      if (remoteAddress === undefined) return true
      const { key, peerTrusted } = clientOf(remoteAddress)
      if (peerTrusted) return true
      forget(clock.monotonic(), MOST_REMEMBERED)
      if ((counts.get(key) ?? 0) >= OPEN * limits.maxConnectionsPerClient) {
        socket.destroy()
        onRefused('max_connections_per_client')
        return false
      }
      take(key, OPEN)
      socket.once('close', () => release(key, OPEN))
      return true
    },
    remember(peer, part) {
      const { key, peerTrusted } = clientOf(peer)
      if (peerTrusted) return
      const now = clock.monotonic()
      const weight = Math.round((part * OPEN * limits.maxConnectionsPerClient) / MOST_ENDED)
      take(key, weight)
      remembered.push({ key, weight, until: now + limits.idleTimeout })
      forget(now, MOST_REMEMBERED)
    },
  }
}
