import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { afterTurn, turnOfLoop } from './clock.ts'
import { giveBack } from './read-buffers.ts'

/** A text to be sent. It may grow until it is written. */
export interface Message {
  readonly socket: Socket
  /** The part that is not written yet, in Latin-1. */
  text: string
  /** Called when the kernel has the message, or with the error; never before `writeSoon` and `finishSoon` return. */
  onWritten: ((error?: Error | null) => void) | undefined
  /** The message is in the queue for the end of the turn; `next` is the message behind it. */
  waits: boolean
  next: Message | undefined
}

/** The turn of the event loop in which something was written, until `endTurn`. */
let writtenIn: number | undefined
/** The queue of messages for `endTurn`. */
let first: Message | undefined
let last: Message | undefined

/**
 * Batches small writes. The first message of an event-loop turn is written immediately, later ones when the turn has read all
 * input: a write per message would wake the peer each time, which costs the kernel more than the bytes. The caller writes nothing else to
 * the socket until `onWritten`. Do not use it for a message that ends an exchange early, because that must not be delayed.
 */
export function writeSoon(socket: Socket, text: string, onWritten?: Message['onWritten']): void {
  const turn = turnOfLoop()
  if (writtenIn === turn || onWritten !== undefined) {
    finishSoon({ socket, text, onWritten, waits: false, next: undefined })
    return
  }
  writtenIn = turn
  socket.write(text, 'latin1')
}

/** Batches a message like `writeSoon`. Call it when its text is complete. */
export function finishSoon(message: Message): void {
  const turn = turnOfLoop()
  writeAtTurnEnd(message)
  if (writtenIn === turn || message.text === '') return
  writtenIn = turn
  write(message)
}

/** Writes a message when the turn has read all input. Its text may grow until then. */
export function writeAtTurnEnd(message: Message): void {
  if (message.waits) return
  message.waits = true
  if (first === undefined) afterTurn(endTurn)
  if (last === undefined) first = message
  else last.next = message
  last = message
}

function endTurn(): void {
  let message = first
  first = undefined
  last = undefined
  writtenIn = undefined
  while (message !== undefined) {
    const { next } = message
    message.waits = false
    message.next = undefined
    if (message.text !== '') write(message)
    const { socket, onWritten } = message
    message.onWritten = undefined
    // If the kernel took the whole message, which is usual, the callback is called here: Node's would come one tick later.
    const isTaken = socket.writableLength === 0 && socket.errored === null && !socket.destroyed
    if (isTaken) onWritten?.()
    else if (onWritten !== undefined) socket.write('', onWritten)
    message = next
  }
}

/** Writes the present text of a message. Over TLS only Node's callback tells when the kernel has it. */
function write(message: Message): void {
  const { socket, text, onWritten } = message
  message.text = ''
  if (onWritten === undefined || !(socket instanceof TLSSocket)) socket.write(text, 'latin1')
  else {
    message.onWritten = undefined
    socket.write(text, 'latin1', onWritten)
  }
}

/** A buffer of at least this size (bytes) has memory of its own, which is worth freeing early. Smaller buffers may share memory. */
export const LARGE_PIECE: number = 16 * 1024

/**
 * Writes bytes that the caller does not use again. When they are sent, `giveBack` takes lent memory, and other memory is freed if no other
 * buffer shares it: V8 frees memory outside its heap only after tens of megabytes have accumulated. Returns as `Writable.write`.
 */
export function writeSpent(to: Writable, bytes: Buffer): boolean {
  return bytes.length < LARGE_PIECE ? to.write(bytes) : to.write(bytes, (error) => recycle(bytes, error))
}

/** How many bytes of a memory that several pieces share were spent, counted from its beginning and without a gap. */
const spentUpTo = new WeakMap<ArrayBufferLike, number>()

/**
 * Recycles the memory of bytes that were written or never will be. Several pieces may share a memory, as those that TLS reads do: it is freed
 * with the last one, if they come in order and leave out no byte. After an error, memory that was not lent is left to the collector.
 */
export function recycle(bytes: Buffer, error: Error | null | undefined): void {
  if (giveBack(bytes) || error instanceof Error) return
  const { buffer, byteOffset, length } = bytes
  if (byteOffset !== (spentUpTo.get(buffer) ?? 0)) return
  const end = byteOffset + length
  if (end < buffer.byteLength) spentUpTo.set(buffer, end)
  else if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}
