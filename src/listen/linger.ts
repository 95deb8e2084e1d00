import type { Socket } from 'node:net'

/** How long (ms) and how much (bytes) of what a client still sends is thrown away so that it can read our answer. */
const LINGER_TIME = 1_000
const LINGER_BYTES = 256 * 1024

/**
 * Sends the last bytes and closes a connection in two steps: our side ends, what the client is still sending is
 * discarded within bounds, then everything goes. Closing at once would reset the connection while the answer is
 * underway, and the client would see an error instead of it (RFC 9112 §9.6). From here on nobody else reads the
 * connection, so that nothing behind the answered request can be taken for another one.
 */
export function endLingering(socket: Socket, lastBytes = ''): void {
  if (socket.destroyed) return
  if (!socket.writableEnded) socket.end(lastBytes)
  socket.removeAllListeners('data')
  let left = LINGER_BYTES
  const timer = setTimeout(() => socket.destroy(), LINGER_TIME)
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) socket.destroy()
  })
  socket.once('end', () => socket.destroy())
  socket.once('close', () => clearTimeout(timer))
  socket.resume()
}

/** Ends a connection in a way that nobody can take for its orderly end, as far as `wire`, which carries it, knows one. */
export function endBroken(socket: Socket, wire: Socket): void {
  // A Unix socket has no reset.
  if (wire.remoteAddress !== undefined) wire.resetAndDestroy()
  socket.destroy()
}
