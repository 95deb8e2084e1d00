import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readBearer } from '../../src/gate/credential.ts'
import { runCases } from '../support/cases.ts'
import { growth, LINEAR } from '../support/lived-time.ts'
import { anyCodePoint } from '../support/random.ts'
import { bytesOf } from '../support/shown-bytes.ts'

const TOKEN68 = 'ABCXYZabcxyz0189-._~+/'

const token68 = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...TOKEN68), minLength: 1, maxLength: 100 }),
    fc.constantFrom('', '=', '=='),
  )
  .map((parts) => parts.join(''))

const anyCase = (text: string): fc.Arbitrary<string> => fc.mixedCase(fc.constant(text))

/** Field values, valid and invalid. */
const anyValue = fc.oneof(
  fc.string({ unit: anyCodePoint, maxLength: 60 }),
  fc
    .array(fc.constantFrom('bearer', 'Bearer', ' ', '\t', ',', '=', 'abc', 'é', '"', 'Basic'), {
      maxLength: 8,
    })
    .map((parts) => parts.join('')),
)

it('C10 readBearer accepts any token after the scheme in any case and one or more spaces', () => {
  fc.assert(
    fc.property(anyCase('bearer'), fc.integer({ min: 1, max: 9 }), token68, (scheme, spaces, token) => {
      expect(readBearer([`${scheme}${' '.repeat(spaces)}${token}`])).toEqual({ kind: 'token', token })
    }),
  )
})

it('C10 readBearer never throws, and finds a token only in a single well-formed field', () => {
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 3 }), (values) => {
      const presented = readBearer(values)
      if (presented.kind === 'none') return
      expect(values).toHaveLength(1)
      const value = values[0] ?? ''
      expect(value.slice(0, 7).toLowerCase()).toBe('bearer ')
      expect(value.slice(6).trim()).toBe(presented.token)
      expect(
        [...presented.token.replace(/=*$/, '')].every(
          (char) => TOKEN68.includes(char) || /[A-Za-z0-9]/.test(char),
        ),
      ).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

it('C10 two Authorization fields are refused, even with the same valid token', () => {
  fc.assert(
    fc.property(token68, token68, (one, other) => {
      expect(readBearer([`Bearer ${one}`, `Bearer ${other}`]).kind).toBe('none')
      expect(readBearer([`Bearer ${one}`, `Bearer ${one}`]).kind).toBe('none')
    }),
  )
})

// Each line of a value is a field.
runCases(join(import.meta.dirname, 'bearer.txt'), {
  given: ['value'],
  results: ['token', 'none'],
  play({ value = '' }) {
    const presented = readBearer(value.split('\n').map((line) => bytesOf(line).toString('latin1')))
    return presented.kind === 'token' ? { token: presented.token } : { none: presented.cause }
  },
})

it('C10 C11 H19 readBearer takes one field only, also beside an empty one', () => {
  for (const values of [
    ['Bearer a', ''],
    ['', 'Bearer a'],
  ])
    expect(readBearer(values)).toEqual({ kind: 'none', cause: 'malformed' })
})

it('C10 C11 readBearer tells a token that is too long from a missing one', () => {
  expect(readBearer([])).toEqual({ kind: 'none', cause: 'missing' })
  for (const token of ['a'.repeat(513), `TOKEN${'='.repeat(8192)}`])
    expect(readBearer([`Bearer ${token}`])).toEqual({ kind: 'none', cause: 'malformed' })
})

it('C10 a token of 512 bytes is looked up', () => {
  const token = 'a'.repeat(512)
  expect(readBearer([`Bearer ${token}`])).toEqual({ kind: 'token', token })
})

it('C10 a very long value is read in linear time', () => {
  const values = [
    (size: number) => `Bearer ${' '.repeat(size)}`,
    (size: number) => `Bearer ${'a '.repeat(size / 2)}`,
    (size: number) => `Bearer a${'='.repeat(size)}!`,
  ]
  for (const value of values) {
    const grown = growth(1 << 14, (size) => expect(readBearer([value(size)]).kind).toBe('none'))
    expect(grown).toBeLessThan(LINEAR)
  }
})
