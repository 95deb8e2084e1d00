import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** One timeout for connections that are between two requests and for those that are not: then nothing has to change it. */
export function setIdleTimeout(server: Server, timeout: number): void {
  server.keepAliveTimeout = timeout
  // A connection that says nothing at all never reaches the header deadline's parser.
  server.timeout = timeout + (server.keepAliveTimeoutBuffer ?? 0)
}

/**
 * Node sets the timeout of a connection twice for every request, each time with a new timer. Every byte that is read or
 * written starts the timer afresh anyway, so to set it to what it is has no effect but its cost.
 */
export function keepIdleTimer(socket: Socket): void {
  const { setTimeout } = socket
  socket.setTimeout = (timeout, onTimeout) =>
    timeout === socket.timeout && onTimeout === undefined
      ? socket
      : setTimeout.call(socket, timeout, onTimeout)
}
