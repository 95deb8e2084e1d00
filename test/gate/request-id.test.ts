import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRequestIds, requestIdOf } from '../../src/gate/admit.ts'
import { anyCodePoint } from '../support/any-code-point.ts'

it('C22 a request id is accepted only from a trusted peer, and only a single well-formed one', () => {
  const mint = () => 'minted'
  fc.assert(
    fc.property(fc.array(fc.string({ unit: anyCodePoint, maxLength: 140 }), { maxLength: 2 }), (ids) => {
      expect(requestIdOf(ids, false, mint)).toBe('minted')
      const id = requestIdOf(ids, true, mint)
      if (id !== 'minted') expect([ids, /^[!-~]{1,128}$/.test(id)]).toEqual([[id], true])
    }),
  )
  expect(requestIdOf(['from-the-proxy_1'], true, mint)).toBe('from-the-proxy_1')
  expect(requestIdOf(['one', 'two'], true, mint)).toBe('minted')
})

it('C22 request ids are unique, 128 random bits in hexadecimal, across batches', () => {
  const newId = createRequestIds(randomBytes)
  const ids = Array.from({ length: 1_000 }, newId)
  expect(new Set(ids).size).toBe(1_000)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
})
