import type { Writable } from 'node:stream'

/** Pieces from this size (bytes) on have memory of their own that is worth freeing early; smaller ones may share theirs. */
export const LARGE_PIECE: number = 16 * 1024

/**
 * Writes bytes that the caller does not use again. If they have their memory to themselves, it is freed when they are sent: V8
 * frees memory outside its heap only after tens of megabytes of it pile up.
 */
export function writeSpent(to: Writable, bytes: Buffer): boolean {
  const { buffer, length } = bytes
  if (length < LARGE_PIECE || length !== buffer.byteLength || !(buffer instanceof ArrayBuffer))
    return to.write(bytes)
  return to.write(bytes, () => buffer.transfer(0))
}
