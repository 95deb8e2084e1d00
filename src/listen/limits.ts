/** The bounds of the public listener. Times in ms, sizes in bytes. */
export interface ListenLimits {
  readonly handshakeTimeout: number
  readonly headerTimeout: number
  readonly idleTimeout: number
  readonly maxHeaderSize: number
  readonly maxHeaderCount: number
  readonly maxConnections: number
  readonly maxStreams: number
}
