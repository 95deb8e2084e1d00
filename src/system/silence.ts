import type { Socket } from 'node:net'

/**
 * For a socket whose timer (`setTimeout`) has fired. Calls `onSilent` unless the peer has sent something, or taken something of what is
 * queued. As a `Deadline`, it judges after what has arrived is read.
 */
export function judgeSilence(socket: Socket, onSilent: () => void): void {
  const read = socket.bytesRead
  const taken = takenOf(socket)
  setImmediate(() => {
    if (socket.bytesRead === read && takenOf(socket) === taken) onSilent()
  })
}

/** The bytes that the peer's side has taken. Queued ones, which `bytesWritten` counts too, do not restart the timer. */
function takenOf({ bytesWritten, writableLength }: Socket): number {
  return bytesWritten - writableLength
}
