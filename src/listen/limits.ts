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
  /** Streams that an HTTP/2 client may break off, and control frames that it may send, within `OVERUSE_SPAN`. */
  readonly maxResets: number
  readonly maxControlFrames: number
  readonly maxQueuedBytes: number
}

/** The time over which resets and control frames are counted (ms). */
export const OVERUSE_SPAN = 10_000

/** Why a connection was closed before a byte of it was read: the `reason` label of its metric. */
export type RefusedConnection = 'max_connections' | 'max_connections_per_client'

/** What ended a TLS handshake: the `reason` label of its metric. */
export type FailedHandshake = 'handshake_timeout' | 'client_left' | 'tls_error'

/** What a client did too much of on its connection: the `reason` label of its metric. */
export type Overuse = 'max_resets' | 'max_control_frames' | 'max_queued_bytes' | 'protocol_error'
