import fc from 'fast-check'
import { expect, it } from 'vitest'
import { requestIdOf } from '../../src/gate/request-id.ts'
import { anyCodePoint } from '../support/random.ts'

const MINTED = /^[0-9a-f]{32}$/

it('C22 a request id is accepted only from a trusted peer, and only a single well-formed one', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: anyCodePoint, maxLength: 140 }), { maxLength: 2 }), (ids) => {
      expect(requestIdOf(ids, false)).toMatch(MINTED)
      const id = requestIdOf(ids, true)
      if (!MINTED.test(id)) expect([ids, /^[!-~]{1,128}$/.test(id)]).toEqual([[id], true])
    }),
  )
  expect(requestIdOf(['from-the-proxy_1'], true)).toBe('from-the-proxy_1')
  expect(requestIdOf(['one', 'two'], true)).toMatch(MINTED)
})

it('C22 request ids are unique, 128 random bits in hexadecimal, across batches', () => {
  const ids = Array.from({ length: 1_000 }, () => requestIdOf([], false))
  expect(new Set(ids).size).toBe(1_000)
  for (const id of ids) expect(id).toMatch(MINTED)
})
