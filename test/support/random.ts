import fc from 'fast-check'

/** Random numbers from a seed: every run sends the same requests, so a failure can be reproduced. */
export function randomNumbers(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return (state >> 8) % sides
  }
}

/** Halves of surrogate pairs, from U+D800, are no code points of a string. */
const SURROGATES = 0x800

/**
 * Any code point, as a `unit` of `fc.string`. The unit `binary` of fast-check is the same, but builds a table of all of them first,
 * which takes more than a second of each process.
 */
export const anyCodePoint: fc.Arbitrary<string> = fc
  .nat(0x10_ffff - SURROGATES)
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + SURROGATES))
