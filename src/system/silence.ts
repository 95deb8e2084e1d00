import type { Socket } from 'node:net'
import { afterTurn } from './clock.ts'

/**
 * For a socket whose idle timer (`setTimeout`) has fired. As a deadline of the clock, waits until what has arrived is read. Then calls `onSilent`, unless
 * the peer has sent something or taken queued bytes. Node restarts the timer for both.
 */
export function judgeSilence(socket: Socket, onSilent: () => void): void {
  const read = socket.bytesRead
  const taken = takenOf(socket)
  afterTurn(() => {
    if (socket.bytesRead === read && takenOf(socket) === taken) onSilent()
  })
}

/** How many bytes have left the queue. `bytesWritten` counts queued ones, too. */
function takenOf({ bytesWritten, writableLength }: Socket): number {
  return bytesWritten - writableLength
}
