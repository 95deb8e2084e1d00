import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

interface Message {
  readonly socket: Socket
  /** Latin-1. */
  readonly text: string
  readonly onWritten: ((error?: Error | null) => void) | undefined
}

/** Undefined until something has been written in this turn of the event loop. */
let pending: Message[] | undefined

/**
 * Writes a whole message: the first of a turn of the event loop at once, the others when the turn has read all that there
 * was to read. To write each at once would wake up whoever waits for it, and he might be asleep again before the next
 * one is written to him: for many short messages that takes the kernel longer than to carry them. Nothing else may be
 * written to the socket until `onWritten`. Not for what ends an exchange before its time, which the others must hear of.
 * @param onWritten told, never before this returns, when the kernel has it, or with the error
 */
export function writeSoon(socket: Socket, text: string, onWritten?: (error?: Error | null) => void): void {
  if (pending !== undefined) {
    pending.push({ socket, text, onWritten })
    return
  }
  pending = []
  setImmediate(writeAll)
  socket.write(text, 'latin1', onWritten)
}

function writeAll(): void {
  const messages = pending ?? []
  pending = undefined
  for (const message of messages) write(message)
}

/** Node tells a callback a tick later; where the kernel takes all at once, as it mostly does, nobody need wait for that. */
function write({ socket, text, onWritten }: Message): void {
  if (onWritten === undefined || socket instanceof TLSSocket) socket.write(text, 'latin1', onWritten)
  else {
    socket.write(text, 'latin1')
    if (isWritten(socket)) onWritten()
    else socket.write('', onWritten)
  }
}

function isWritten({ writableLength, errored, destroyed }: Socket): boolean {
  return writableLength === 0 && errored === null && !destroyed
}
