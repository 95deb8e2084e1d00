import type { Socket } from 'node:net'
import type { Account, ClientAccount } from '../memory/account.ts'
import type { Clock } from '../system/clock.ts'

/** The bounds of the public listener that have no configuration key. Times in ms, sizes in bytes. */
export interface ListenBounds {
  /** How long a TLS handshake may take. */
  readonly tlsTimeout: number
  /** How long a client may pause within a request body. Only data ends a pause: chunk framing without data does not. */
  readonly bodyTimeout: number
  /** The largest head: in HTTP/1 all of its bytes, in HTTP/2 the sum of its fields. */
  readonly maxHeaderSize: number
  /** The most fields in a head. */
  readonly maxHeaderCount: number
  /** How many requests an HTTP/2 connection may have open at once. */
  readonly maxStreams: number
  /** How many streams an HTTP/2 client may reset within `OVERUSE_SPAN`. */
  readonly maxResets: number
  /** How many control frames an HTTP/2 client may send within `OVERUSE_SPAN`. */
  readonly maxControlFrames: number
  /** The most bytes of responses that one connection queues for a client that does not read them. */
  readonly maxQueuedBytes: number
}

/** The bounds of every public listener. Tests pass smaller bounds, to reach them with few bytes. */
export const LISTEN_BOUNDS: ListenBounds = {
  // Two lost packets, as in `listen.header_timeout`.
  tlsTimeout: 10_000,
  // The time of a whole upload has no limit, because a long upload is no attack.
  bodyTimeout: 10_000,
  // The limit of Node.js and most servers. In HTTP/2 it holds from the first request, before the client has acknowledged the SETTINGS.
  maxHeaderSize: 16 * 1024,
  // Browsers send about 20 fields.
  maxHeaderCount: 100,
  // The least that RFC 9113 §6.5.2 recommends.
  maxStreams: 100,
  // As many as all streams of a connection: a browser resets them when the user leaves a page that is still loading.
  maxResets: 100,
  // Clients that measure the round-trip time send up to ten PING frames a second.
  maxControlFrames: 250,
  // 100 streams with one chunk each.
  maxQueuedBytes: 8 * 1024 ** 2,
}

/** All bounds of a public listener, including those with a configuration key. Times in ms. */
export interface ListenLimits extends ListenBounds {
  readonly headerTimeout: number
  readonly idleTimeout: number
  readonly maxConnections: number
  readonly maxConnectionsPerClient: number
}

/** The memory account, and the function that finds the client of a connection, also behind trusted proxies. */
export interface ListenMemory {
  readonly account: Account
  readonly clientOf: (peer: string, forwardedFor: readonly string[]) => ConnectedClient
}

/** The account of a connection's peer, or of the client that a trusted proxy names in `forwardedFor`. */
export function accountOf(
  { account, clientOf }: ListenMemory,
  peer: string,
  forwardedFor: readonly string[] = [],
): ClientAccount {
  const { key, peerTrusted } = clientOf(peer, forwardedFor)
  return account.client(key, peerTrusted && forwardedFor.length === 0)
}

/** The time over which resets, control frames and tiny frames are counted (ms). */
export const OVERUSE_SPAN = 10_000

/** Why a connection is refused before any byte of it is read, or closed for a newcomer: the `reason` label of its metric. */
export type RefusedConnection = 'max_connections' | 'max_connections_per_client' | 'memory' | 'not_allowed'

/** Why a TLS handshake failed: the `reason` label of its metric. */
export type FailedHandshake = 'handshake_timeout' | 'client_left' | 'plain_http' | 'tls_error'

/** Which bound a client exceeded on its connection: the `reason` label of its metric. */
export type Overuse =
  | 'max_resets'
  | 'max_control_frames'
  | 'tiny_frames'
  | 'max_queued_bytes'
  | 'protocol_error'

/** The client of a connection, for the caps and the memory account. */
export interface ConnectedClient {
  /** Connections with the same key count together: an IPv4 address, or the /64 prefix of an IPv6 address. */
  readonly key: string
  /** A trusted proxy carries the requests of many clients, so only the cap on all connections applies to it. */
  readonly peerTrusted: boolean
  /** False: the address may not connect, unless it is a trusted proxy. */
  readonly admitted: boolean
}

interface ConnectionCapsDependencies {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly limits: Pick<ListenLimits, 'maxConnectionsPerClient' | 'idleTimeout'>
  readonly clientOf: (peer: string) => ConnectedClient
  readonly onRefused: (reason: RefusedConnection, peer?: string) => void
}

/** While this many connections closed for overuse are remembered, their client may open no connection. */
const MOST_OVERUSED = 25

/** The weight of one open connection. It is large, so that a fraction of a connection is an integer, too. */
const OPEN = 1_000

/**
 * How many closed connections of all clients are remembered (about 100 bytes each). Beyond this number the oldest are forgotten. A
 * processor core cannot serve this many in a minute.
 */
const MOST_REMEMBERED = 20_000

/** Enforces `listen.allow` and the cap on the connections of each client, before any byte is read or decrypted. */
export function capConnections({ clock, limits, clientOf, onRefused }: ConnectionCapsDependencies) {
  const counts = new Map<string, number>()
  /** Closed connections after overuse, the oldest first. */
  const remembered: { readonly key: string; readonly weight: number; readonly at: number }[] = []

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
      // A reload may change `idleTimeout`, so the time of the end is not kept.
      const isValid = oldest !== undefined && now < oldest.at + limits.idleTimeout
      if (oldest === undefined || (isValid && remembered.length <= most)) return
      remembered.shift()
      release(oldest.key, oldest.weight)
    }
  }

  return {
    /**
     * Whether a new connection may stay: its address is allowed, and its client is below the cap. Otherwise it is closed at once, without a
     * response, which would cost work.
     */
    mayStay(socket: Socket): boolean {
      const { remoteAddress } = socket
      // A client on a Unix socket has no address to count by.
      if (remoteAddress === undefined) return true
      const { key, peerTrusted, admitted } = clientOf(remoteAddress)
      if (peerTrusted) return true
      if (!admitted) {
        socket.destroy()
        onRefused('not_allowed', remoteAddress)
        return false
      }
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
    /**
     * Call this when a connection of this peer has closed after overuse. It still counts for `idleTimeout`, with the weight of a part of
     * the cap. Otherwise a client could repeat the overuse on a new connection.
     *
     * @param part the overuse as a fraction of the bound that closes a connection, 0 to 1
     */
    remember(peer: string, part: number): void {
      const { key, peerTrusted } = clientOf(peer)
      if (peerTrusted) return
      const now = clock.monotonic()
      const weight = Math.round((part * OPEN * limits.maxConnectionsPerClient) / MOST_OVERUSED)
      take(key, weight)
      remembered.push({ key, weight, at: now })
      forget(now, MOST_REMEMBERED)
    },
  }
}
