import { isIPv6 as isIPv6OfNode } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isIPv6, matchesAny, normalizeAddress, parseCidr, prefix48, prefix64 } from '../../src/http/ip.ts'

function ranges(...texts: string[]) {
  return texts.map((text) => parseCidr(text) ?? expect.fail(`${text} is no range`))
}

describe('isIPv6', () => {
  const pieces = [
    '::',
    ':',
    '0',
    '1',
    'FFFF',
    '00001',
    '12345',
    '192.0.2.1',
    '1.2.3',
    '01.2.3.4',
    '256.1.1.1',
    '.',
    '%eth0',
    ' ',
    '\n',
    ']',
    '/',
  ]
  const nearly = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''))
  const colons = fc.array(fc.constantFrom(...pieces), { maxLength: 9 }).map((parts) => parts.join(':'))

  it('takes the same texts for addresses as Node does, without those that have a zone', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), nearly, colons), (text) => {
        expect(isIPv6(text)).toBe(isIPv6OfNode(text) && !text.includes('%'))
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('normalizeAddress', () => {
  it('does not change a normalized address', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (address) => {
        const once = normalizeAddress(address)
        expect(once).toBeDefined()
        expect(normalizeAddress(once ?? '')).toBe(once)
      }),
    )
  })

  it('turns an IPv4-mapped address into the IPv4 address', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(normalizeAddress(`::ffff:${address}`)).toBe(address)
      }),
    )
  })
})

describe('prefix64', () => {
  it('is equal for two addresses of one /64 and different for another /64', () => {
    expect(prefix64('2001:db8:1:2::1')).toBe('2001:db8:1:2::/64')
    expect(prefix64('2001:db8:1:2:ffff:ffff:ffff:ffff')).toBe('2001:db8:1:2::/64')
    expect(prefix64('2001:db8:1:3::1')).toBe('2001:db8:1:3::/64')
  })

  it('does not change an IPv4 address', () => {
    expect(prefix64('192.0.2.1')).toBe('192.0.2.1')
  })

  it('does not change a text that is no address', () => {
    expect(prefix64('unix')).toBe('unix')
  })
})

describe('prefix48', () => {
  it('is equal for two clients of one /48, and different for another /48', () => {
    const keys = ['2001:db8:1:2::7', '2001:db8:1:ffff::7', '2001:db8:2:2::7', '::ffff:0:0:7'].map(prefix64)
    expect(keys.map(prefix48)).toEqual(['2001:db8:1::/48', '2001:db8:1::/48', '2001:db8:2::/48', '::/48'])
  })

  it('does not change another key', () => {
    for (const key of ['192.0.2.1', 'unix', '']) expect(prefix48(key)).toBe(key)
  })
})

describe('parseCidr and matchesAny', () => {
  it('match if any of several ranges matches', () => {
    expect(matchesAny('fd00::1', ranges('10.0.0.0/8', 'fd00::/8'))).toBe(true)
    expect(matchesAny('fd00::1', [])).toBe(false)
  })
})
