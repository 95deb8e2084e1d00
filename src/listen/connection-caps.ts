import type { Server, Socket } from 'node:net'
import type { ListenLimits, RefusedConnection } from './limits.ts'

/** Whose connections count together. */
export interface ConnectedClient {
  /** An IPv4 address, or the /64 of an IPv6 one. */
  readonly key: string
  /** A trusted proxy speaks for many clients, so that only the cap on all connections holds for it. */
  readonly peerTrusted: boolean
}

export interface ConnectionCapsDependencies {
  readonly limits: Pick<ListenLimits, 'maxConnections' | 'maxConnectionsPerClient'>
  readonly clientOf: (peer: string) => ConnectedClient
  readonly onRefused: (reason: RefusedConnection) => void
}

/**
 * Holds a server to its connections, in all and per client, before anything is read or encrypted. Returns whether a
 * connection may stay; one that may not is closed already, without an answer: whoever is over a cap gets no work out
 * of us.
 */
export function capConnections(
  server: Server,
  { limits, clientOf, onRefused }: ConnectionCapsDependencies,
): (socket: Socket) => boolean {
  const counts = new Map<string, number>()
  server.maxConnections = limits.maxConnections
  server.on('drop', () => onRefused('max_connections'))

  function release(key: string): void {
    const left = (counts.get(key) ?? 0) - 1
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }

  return (socket) => {
    const { remoteAddress } = socket
    // Over a Unix socket nobody can be told from anybody else; and who has left already has no address either.
    if (remoteAddress === undefined) return true
    const { key, peerTrusted } = clientOf(remoteAddress)
    if (peerTrusted) return true
    const count = counts.get(key) ?? 0
    if (count >= limits.maxConnectionsPerClient) {
      socket.destroy()
      onRefused('max_connections_per_client')
      return false
    }
    counts.set(key, count + 1)
    socket.once('close', () => release(key))
    return true
  }
}
