import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseChallenges, parseParameters } from '../../src/sign-in/challenge.ts'
import { digestChallenge } from '../../src/sign-in/digest.ts'
import { growth, LINEAR } from '../support/lived-time.ts'

const plain = (...values: string[]) =>
  parseChallenges(values).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)])

describe('WWW-Authenticate', () => {
  it.each<[string, unknown[]]>([
    ['Basic realm="a"', [['basic', { realm: 'a' }]]],
    ['Basic', [['basic', {}]]],
    [
      'Basic, Negotiate',
      [
        ['basic', {}],
        ['negotiate', {}],
      ],
    ],
    [
      'Negotiate abc+/==, Basic realm=x',
      [
        ['negotiate', {}],
        ['basic', { realm: 'x' }],
      ],
    ],
    [
      'Digest realm="a, Basic realm=\\"b\\"", nonce = "n" ,, qop="auth,auth-int" , Basic realm="b"',
      [
        ['digest', { realm: 'a, Basic realm="b"', nonce: 'n', qop: 'auth,auth-int' }],
        ['basic', { realm: 'b' }],
      ],
    ],
    [' , Digest REALM="a\\\\"', [['digest', { realm: 'a\\' }]]],
    ['Digest realm="", nonce=""', [['digest', { realm: '', nonce: '' }]]],
  ])('%s is parsed', (value, expected) => {
    expect(plain(value)).toEqual(expected)
  })

  it('may be in several fields or in one', () => {
    expect(plain('Basic realm="a"', 'Digest nonce=b')).toEqual(plain('Basic realm="a", Digest nonce=b'))
  })

  it.each([
    ['an unclosed quote', 'Digest realm="a'],
    ['text after a quote', 'Digest realm="a"b'],
    ['no comma between parameters', 'Digest realm="a" nonce="b"'],
    ['a parameter twice', 'Digest realm="a", Realm="b"'],
    ['a parameter without a value', 'Digest realm="a", nonce='],
    ['a control character', 'Digest realm="a\x01"'],
    ['an escaped control character', 'Digest realm="a\\\x01"'],
    ['two schemes without a comma', 'Basic Digest realm="a"'],
    ['an unquoted value with characters that need quotes', 'Digest nonce=a/b=='],
    ['a parameter without a scheme', 'realm="a"'],
  ])('with %s is ignored, and the other fields are used', (_what, value) => {
    expect(plain(value)).toEqual([])
    expect(plain(value, 'Basic realm="ok"')).toEqual([['basic', { realm: 'ok' }]])
  })

  it('may contain any quoted text', () => {
    const text = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]*$/)
    fc.assert(
      fc.property(text, text, (realm, nonce) => {
        const quote = (value: string): string => `"${value.replace(/["\\]/g, '\\$&')}"`
        const value = `Digest realm=${quote(realm)}, nonce=${quote(nonce)}`
        expect(plain(value)).toEqual([['digest', { realm, nonce }]])
      }),
    )
  })

  it('is parsed in linear time', () => {
    const values = [
      (size: number) => 'a='.repeat(size),
      (size: number) => `Digest a="${'\\'.repeat(2 * size)}`,
      (size: number) => ', '.repeat(size),
    ]
    for (const value of values) {
      const grown = growth(8_000, (size) => void parseChallenges([value(size), `Basic ${value(size)}`]))
      expect(grown).toBeLessThan(LINEAR)
    }
  })
})

describe('Authentication-Info', () => {
  it('is a list of parameters', () => {
    expect(parseParameters('nextnonce="a", nc=00000001')?.get('nextnonce')).toBe('a')
    expect(parseParameters('')?.size).toBe(0)
    expect(parseParameters('nextnonce="a')).toBeUndefined()
  })
})

describe('Of several Digest challenges,', () => {
  const offer = (...algorithms: string[]) =>
    algorithms.flatMap((name) => ['WWW-Authenticate', `Digest realm="r", nonce="n", qop="auth", ${name}`])
  const chosen = (fields: string[]) => digestChallenge(fields)?.algorithm

  it('the strongest is used, in any order', () => {
    expect(chosen(offer('algorithm=MD5', 'algorithm=SHA-256'))).toBe('SHA-256')
    expect(chosen(offer('algorithm=SHA-256', 'algorithm=MD5'))).toBe('SHA-256')
    expect(chosen(offer('algorithm=SHA-512-256-sess', 'algorithm=SHA-256'))).toBe('SHA-512-256-sess')
    expect(chosen(offer('algorithm=md5-sess', 'algorithm=token'))).toBe('md5-sess')
  })

  it('an unsupported one is ignored', () => {
    expect(chosen(offer('algorithm=SHA-1', 'algorithm=MD5'))).toBe('MD5')
    const authInt = ['WWW-Authenticate', 'Digest realm="r", nonce="n", qop="auth-int", algorithm=SHA-256']
    expect(chosen([...authInt, ...offer('algorithm=MD5')])).toBe('MD5')
    expect(digestChallenge(authInt)).toBeUndefined()
    expect(
      digestChallenge(['WWW-Authenticate', 'Digest realm="r", nonce="n", algorithm=MD5-sess']),
    ).toBeUndefined()
    expect(digestChallenge(['WWW-Authenticate', 'Digest realm="r"'])).toBeUndefined()
  })
})
