import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { TLSSocket } from 'node:tls'

interface Message {
  readonly socket: Socket
  /** Latin-1. */
  readonly text: string
  readonly onWritten: ((error?: Error | null) => void) | undefined
}

/** Whether something has been written in this turn of the event loop, and what came after it. */
let written = false
const pending: Message[] = []

/**
 * Batches small writes. The first message of an event-loop turn is written immediately, later ones when the turn has read all
 * input: a write per message would wake the peer each time, which costs the kernel more than the bytes. Nothing else may be
 * written to the socket until `onWritten`. Not for a message that ends an exchange early, because it must not be delayed.
 * @param onWritten called when the kernel has the message, or with the error; never before this function returns
 */
export function writeSoon(socket: Socket, text: string, onWritten?: (error?: Error | null) => void): void {
  if (written) {
    pending.push({ socket, text, onWritten })
    return
  }
  written = true
  setImmediate(writeAll)
  socket.write(text, 'latin1', onWritten)
}

function writeAll(): void {
  written = false
  if (pending.length > 0) for (const message of pending.splice(0)) write(message)
}

/** Calls `onWritten` directly if the kernel took the whole message, which is usual. Node would call it one tick later. */
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

/** Buffers of this size (bytes) or more have their own memory, which is worth freeing early. Smaller ones may share memory. */
export const LARGE_PIECE: number = 16 * 1024

/**
 * Writes bytes that the caller does not use again. If the buffer does not share its memory, the memory is freed when the bytes
 * are sent. V8 frees memory outside its heap only after tens of megabytes have accumulated.
 */
export function writeSpent(to: Writable, bytes: Buffer): boolean {
  const { buffer, length } = bytes
  if (length < LARGE_PIECE || length !== buffer.byteLength || !(buffer instanceof ArrayBuffer))
    return to.write(bytes)
  return to.write(bytes, () => buffer.transfer(0))
}
