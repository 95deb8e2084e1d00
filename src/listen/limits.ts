/** The bounds of the public listener. Times in ms, sizes in bytes. */
export interface ListenLimits {
  readonly handshakeTimeout: number
  readonly headerTimeout: number
  readonly idleTimeout: number
  readonly maxHeaderSize: number
  readonly maxHeaderCount: number
  readonly maxConnections: number
  readonly maxConnectionsPerClient: number
  readonly maxStreams: number
  /** How many streams an HTTP/2 client may reset within `OVERUSE_SPAN`. */
  readonly maxResets: number
  /** How many control frames an HTTP/2 client may send within `OVERUSE_SPAN`. */
  readonly maxControlFrames: number
  readonly maxQueuedBytes: number
}

/** The time over which resets and control frames are counted (ms). */
export const OVERUSE_SPAN = 10_000

/** Why a connection is closed before any byte of it is read: the `reason` label of its metric. */
export type RefusedConnection = 'max_connections' | 'max_connections_per_client'

/** Why a TLS handshake failed: the `reason` label of its metric. */
export type FailedHandshake = 'handshake_timeout' | 'client_left' | 'plain_http' | 'tls_error'

/** Which bound a client exceeded on its connection: the `reason` label of its metric. */
export type Overuse = 'max_resets' | 'max_control_frames' | 'max_queued_bytes' | 'protocol_error'
