import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readBearer } from '../../src/gate/credential.ts'
import { anyCodePoint } from '../support/any-code-point.ts'
import { growth, LINEAR } from '../support/lived-time.ts'
import { rows } from '../support/rows.ts'

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

it.each([
  [[], 'missing'],
  [['Bearer a', ''], 'malformed'],
  [['', 'Bearer a'], 'malformed'],
  [['Bearer a', 'Bearer a'], 'malformed'],
  [['Basic eDp4', 'Bearer a'], 'malformed'],
] as const)('C10 C11 H19 readBearer takes one field only: %j is %s', (values, cause) => {
  expect(readBearer(values)).toEqual({ kind: 'none', cause })
})

it.each([
  ...rows`
    Bearer TOKEN
    bearer TOKEN
    BEARER TOKEN
    bEaReR TOKEN
    Bearer  TOKEN`,
  `Bearer${' '.repeat(200)}TOKEN`,
])('C10 H35 readBearer finds the token in "%s"', (value) => {
  expect(readBearer([value])).toEqual({ kind: 'token', token: 'TOKEN' })
})

it.each(rows`
  ∅
  ␣
  Bearer
  Bearer␣
  Bearer ␣
  bearer
  TOKEN
  BearerTOKEN
  Bearer=TOKEN
  Bearer:TOKEN
  Bearer\xa0TOKEN
  B\xe9arer TOKEN
  Bear\xe2\x84\xaaer TOKEN
  Basic TOKEN
  Basic dXNlcjpwYXNz
  Basic eDp5, Bearer TOKEN
  Digest username="Bearer x"
  Token TOKEN
  DPoP TOKEN
  Bearers TOKEN
  Beare TOKEN
  XBearer TOKEN
  Negotiate TOKEN
  bearer-TOKEN
  ␣Bearer TOKEN
  \tBearer TOKEN\t`)('C10 C11 H35 readBearer finds no bearer token in %j, malformed or not', (value) => {
  expect(readBearer([value])).toEqual({ kind: 'none', cause: 'missing' })
})

it.each([
  ...rows`
    Bearer\tTOKEN
    Bearer \tTOKEN
    Bearer\t TOKEN
    Bearer TOKEN\tx
    Bearer TOKEN␣
    Bearer \xa0TOKEN
    Bearer TOKEN\xa0
    Bearer a b
    Bearer TOKEN TOKEN
    Bearer TOKEN b
    Bearer b TOKEN
    Bearer Bearer TOKEN
    Bearer x Bearer TOKEN
    Bearer,TOKEN
    Bearer TOKEN,
    Bearer ,TOKEN
    Bearer TOKEN,TOKEN
    Bearer TOKEN, Bearer TOKEN
    Bearer TOKEN, realm="x"
    Bearer "TOKEN"
    Bearer 'TOKEN'
    Bearer <TOKEN>
    Bearer {TOKEN}
    Bearer token=TOKEN
    Bearer token="TOKEN"
    Bearer TOKEN;
    Bearer TOKEN#
    Bearer TOKEN?
    Bearer =TOKEN
    Bearer a=b
    Bearer =
    Bearer ====
    Bearer TOKEN%00
    Bearer %54OKEN
    Bearer %TOKEN
    Bearer TOKEN\\
    Bearer *
    Bearer \xe4
    Bearer \xe9
    Bearer TOKEN\xe4
    Bearer \xff\xfe
    Bearer \xe4\xf6\xfc
    Bearer \xc2\xadTOKEN`,
  `Bearer ${'a'.repeat(513)}`,
  `Bearer TOKEN${'='.repeat(8192)}`,
])('C11 H35 readBearer tells a malformed token from a missing one: %.60j', (value) => {
  expect(readBearer([value])).toEqual({ kind: 'none', cause: 'malformed' })
})

it.each(rows`
  TOKEN=
  TOKEN.
  TOKEN/
  ../TOKEN
  undefined
  null
  __proto__
  constructor
  0
  -
  AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA`)(
  'H35 the well-formed token "%s" is read as it stands, so no live one stands in its place',
  (token) => {
    expect(readBearer([`Bearer ${token}`])).toEqual({ kind: 'token', token })
  },
)

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
