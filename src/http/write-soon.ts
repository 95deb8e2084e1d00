import type { Socket } from 'node:net'

interface Pending {
  readonly socket: Socket
  /** Latin-1. */
  readonly text: string
  readonly onWritten: ((error?: Error | null) => void) | undefined
}

let pending: Pending[] = []

/**
 * Writes a whole message once this turn of the event loop has read all that there was to read. To write it at once would
 * wake up whoever waits for it, and he might be asleep again before the next one is written to him: for many short
 * messages that takes the kernel longer than to carry them. Nothing else may be written to the socket until then.
 * @param onWritten told when the kernel has it, or with the error
 */
export function writeSoon(socket: Socket, text: string, onWritten?: (error?: Error | null) => void): void {
  if (pending.length === 0) setImmediate(writeAll)
  pending.push({ socket, text, onWritten })
}

function writeAll(): void {
  const messages = pending
  pending = []
  for (const { socket, text, onWritten } of messages) socket.write(text, 'latin1', onWritten)
}
