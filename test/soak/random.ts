/** A pseudo-random generator with a seed. */
export interface Random {
  /** An integer from 0 to `below` - 1. */
  below(below: number): number
  pick<T>(from: readonly [T, ...T[]]): T
  /** An independent generator, for concurrent use. */
  fork(): Random
}

/** The generator mulberry32: small, and good enough to mix traffic. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    pick: (from) => from[below(from.length)] ?? from[0],
    fork: () => createRandom(below(2 ** 32)),
  }
}

const BLOCK = 64 * 1024

/** Bytes that both ends derive from a key. Each 64 KiB block differs from the others, so an exchanged block is detected. */
export function bytesFor(key: number, length: number): Buffer {
  const random = createRandom(key)
  const block = Buffer.alloc(Math.min(length, BLOCK))
  for (const at of block.keys()) block[at] = random.below(256)
  const bytes = Buffer.alloc(length)
  for (let at = 0, round = 0; at < length; at += BLOCK, round += 1) {
    block.copy(bytes, at)
    bytes[at] = round & 0xff
  }
  return bytes
}
