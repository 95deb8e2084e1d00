import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { afterTurn, turnOfLoop } from './clock.ts'
import { giveBack } from './read-buffers.ts'

/** A text that has to be sent, and may grow until it is. */
export interface Message {
  readonly socket: Socket
  /** What is not written yet, in Latin-1. */
  text: string
  /** Called when the kernel has the message, or with the error; never before `writeSoon` and `finishSoon` return. */
  onWritten: ((error?: Error | null) => void) | undefined
  /** It waits for the end of the turn, and `next` after it. */
  waits: boolean
  next: Message | undefined
}

/** The turn of the event loop in which something was written, until `endTurn`. */
let writtenIn: number | undefined
/** The messages that wait for `endTurn`. A lone message needs none: an immediate costs more than to ask which turn this is. */
let first: Message | undefined
let last: Message | undefined

/**
 * Batches small writes. The first message of an event-loop turn is written immediately, later ones when the turn has read all
 * input: a write per message would wake the peer each time, which costs the kernel more than the bytes. Nothing else may be
 * written to the socket until `onWritten`. Not for a message that ends an exchange early, because it must not be delayed.
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

/** The same for the last part of a message. */
export function finishSoon(message: Message): void {
  const turn = turnOfLoop()
  writeAtTurnEnd(message)
  if (writtenIn === turn || message.text === '') return
  writtenIn = turn
  write(message)
}

/** Writes a message when the turn has read all input. Until then it may grow. */
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
    // If the kernel took the whole message, which is usual, Node would say so only one tick later.
    const isTaken = socket.writableLength === 0 && socket.errored === null && !socket.destroyed
    if (isTaken) onWritten?.()
    else if (onWritten !== undefined) socket.write('', onWritten)
    message = next
  }
}

/** Writes what there is of a message. Over TLS, the kernel has it only when Node says so. */
function write(message: Message): void {
  const { socket, text, onWritten } = message
  message.text = ''
  if (onWritten === undefined || !(socket instanceof TLSSocket)) socket.write(text, 'latin1')
  else {
    message.onWritten = undefined
    socket.write(text, 'latin1', onWritten)
  }
}

/** Buffers of this size (bytes) or more have their own memory, which is worth freeing early. Smaller ones may share memory. */
export const LARGE_PIECE: number = 16 * 1024

/**
 * Writes bytes that the caller does not use again. When they are sent, their memory goes back to who lent it, or is freed if no other
 * buffer shares it: V8 frees memory outside its heap only after tens of megabytes have accumulated.
 */
export function writeSpent(to: Writable, bytes: Buffer): boolean {
  return bytes.length < LARGE_PIECE ? to.write(bytes) : to.write(bytes, (error) => recycle(bytes, error))
}

/** Called when spent bytes were written, or never will be. After an error their memory is left to the collector, unless it was lent. */
export function recycle(bytes: Buffer, error: Error | null | undefined): void {
  if (giveBack(bytes) || error instanceof Error) return
  const { buffer, length } = bytes
  if (length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
