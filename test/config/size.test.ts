import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatSize, parseSize } from '../../src/config/units.ts'

describe('a size', () => {
  it.each([
    [4096, 4096],
    ['4096', 4096],
    ['4096B', 4096],
    ['8KiB', 8192],
    ['1.5KiB', 1536],
    ['1MiB', 1_048_576],
    ['2GiB', 2_147_483_648],
  ])('%j is %i bytes', (given, value) => {
    expect(parseSize(given)).toEqual({ value })
  })

  it.each(['', '8KB', '8K', '8 KiB', '-1', -1, '1e3', 'KiB', Number.NaN])(
    '%j is refused with examples of sizes',
    (given) => {
      expect(parseSize(given)).toEqual({ problem: 'must be a size: a number of bytes, or 8KiB, 1MiB' })
    },
  )

  it.each([0.5, '0.3KiB', '99999999999GiB'])(
    '%j is refused, because it is no safe whole number of bytes',
    (given) => {
      expect(parseSize(given)).toEqual({ problem: 'must be whole bytes' })
    },
  )

  it('is written in the largest unit that fits', () => {
    expect([0, 1000, 1024, 1536, 1_048_576].map(formatSize)).toEqual([0, 1000, '1KiB', 1536, '1MiB'])
  })

  it('survives formatting and parsing', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.nat(),
          fc.nat().map((n) => n * 1024),
        ),
        (value) => {
          expect(parseSize(formatSize(value))).toEqual({ value })
        },
      ),
    )
  })
})
