import { crc32 as reference } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crc32 } from '../../src/tokens/crc32.ts'

describe('The checksum of a row', () => {
  it('is the one that zlib gives, so that the files of earlier versions stay readable', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(crc32(text)).toBe(reference(text))
      }),
    )
    expect(crc32('123456789')).toBe(0xcbf43926)
  })
})
