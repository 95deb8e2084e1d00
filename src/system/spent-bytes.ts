import type { Writable } from 'node:stream'

/** Smaller pieces (bytes) are not worth it, or share their memory with others. */
export const LARGE_PIECE: number = 16 * 1024

/**
 * Writes bytes that nobody looks at again. Their memory is given back when they are gone out, where they have it to
 * themselves: left alone, V8 collects what lies outside of its heap only when there are tens of megabytes of it.
 */
export function writeSpent(to: Writable, bytes: Buffer): boolean {
  const { buffer, length } = bytes
  if (length < LARGE_PIECE || length !== buffer.byteLength || !(buffer instanceof ArrayBuffer))
    return to.write(bytes)
  return to.write(bytes, () => buffer.transfer(0))
}
