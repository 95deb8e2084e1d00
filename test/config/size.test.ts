import { describe, expect, it } from 'vitest'
import { parseSize } from '../../src/config/units.ts'

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
})
