import type { Writable } from 'node:stream'

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
