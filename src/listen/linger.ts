import type { Socket } from 'node:net'

/** How long (ms) and how much (bytes) of what a client still sends is thrown away so that it can read our answer. */
const LINGER_TIME = 1_000
const LINGER_BYTES = 256 * 1024

/**
 * Makes a connection close in two steps: our side ends, what the client is still sending is discarded within bounds,
 * then everything goes. Closing at once would reset the connection while the refusal is underway, and the client
 * would see an error instead of it (RFC 9112 §9.6). Reading the raw socket also takes it from the HTTP parser, so
 * that nothing behind the refused request can be taken for another one.
 */
export function lingerOnClose(socket: Socket): void {
  // Node calls this when a response that closes the connection has been written.
  socket.destroySoon = () => endLingering(socket)
}

/** Sends the last bytes and closes the connection in those two steps. */
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
