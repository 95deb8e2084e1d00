import { describe, expect, it } from 'vitest'
import { parseParameters } from '../../src/sign-in/challenge.ts'
import { digestAuthorization, digestChallenge, digestKey } from '../../src/sign-in/digest.ts'

interface Example {
  readonly challenge: string
  readonly user: string
  readonly password: string
  readonly method?: string
  readonly target?: string
  readonly cnonce?: string
  readonly count?: number
}

function credentialsFor({ challenge: text, user, password, ...use }: Example): string {
  const challenge = digestChallenge(['WWW-Authenticate', text]) ?? expect.fail('not understood')
  const { method = 'GET', target = '/dir/index.html', cnonce = 'c', count = 1 } = use
  const key = digestKey(challenge, { user, password }, cnonce)
  return digestAuthorization(challenge, user, key, { method, target, cnonce, count, nonce: challenge.nonce })
}

const parameter = (credentials: string, name: string): string | undefined =>
  parseParameters(credentials.replace('Digest ', ''))?.get(name)

/** RFC 7616 §3.9.1. */
const MUFASA = {
  user: 'Mufasa',
  password: 'Circle of Life',
  cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
}
const offered = (algorithm: string): string =>
  `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`

describe('Digest credentials', () => {
  it.each([
    ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
    ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
  ])('are those of RFC 7616 §3.9.1 with %s', (algorithm, expected) => {
    expect(credentialsFor({ challenge: offered(algorithm), ...MUFASA })).toBe(
      `Digest username="Mufasa", realm="http-auth@example.org", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", uri="/dir/index.html", response="${expected}", algorithm=${algorithm}, qop=auth, nc=00000001, cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`,
    )
  })

  it('are those of RFC 2617 §3.5', () => {
    const challenge =
      'Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"'
    const credentials = credentialsFor({
      challenge,
      user: 'Mufasa',
      password: 'Circle Of Life',
      cnonce: '0a4f113b',
    })
    expect(parameter(credentials, 'response')).toBe('6629fae49393a05397450978507c4ef1')
    expect(credentials).not.toContain('algorithm')
  })

  it('are those of RFC 2069 §2.4 (with its errata) if the device offers no qop', () => {
    const challenge =
      'Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"'
    const credentials = credentialsFor({ challenge, user: 'Mufasa', password: 'CircleOfLife' })
    expect(parameter(credentials, 'response')).toBe('1949323746fe6a43ef61f9606e7febea')
    expect(credentials).not.toMatch(/qop|nc=|cnonce/)
  })

  it('hash the user name as RFC 7616 §3.9.2 (with its errata) does', () => {
    const challenge =
      'Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="n", charset=UTF-8, userhash=true'
    const credentials = credentialsFor({ challenge, user: 'Jäsøn Doe', password: 'Secret, or not?' })
    expect(parameter(credentials, 'username')).toBe(
      '793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b',
    )
    expect(parameter(credentials, 'userhash')).toBe('true')
  })

  it('have a non-ASCII user name in the extended form if the device accepts UTF-8, otherwise as bytes', () => {
    const challenge = 'Digest realm="r", nonce="n", qop="auth"'
    const account = { user: "Jäsøn (it's*)", password: 'x' }
    expect(credentialsFor({ challenge: `${challenge}, charset=UTF-8`, ...account })).toMatch(
      /^Digest username\*=UTF-8''J%C3%A4s%C3%B8n%20%28it%27s%2a%29, /,
    )
    expect(credentialsFor({ challenge, ...account })).toContain(
      `username="${Buffer.from(account.user).toString('latin1')}"`,
    )
  })

  it('escape quotes in the target and the user name', () => {
    const credentials = credentialsFor({
      challenge: 'Digest realm="r\\"", nonce="n", qop="auth"',
      user: 'a"b\\c',
      password: 'x',
      target: '/?q="x", response="0',
    })
    expect(parameter(credentials, 'username')).toBe('a"b\\c')
    expect(parameter(credentials, 'uri')).toBe('/?q="x", response="0')
    expect(parameter(credentials, 'realm')).toBe('r"')
  })

  it('have the nonce count in eight hexadecimal digits', () => {
    const challenge = 'Digest realm="r", nonce="n", qop="auth"'
    expect(parameter(credentialsFor({ challenge, user: 'a', password: 'b', count: 255 }), 'nc')).toBe(
      '000000ff',
    )
  })
})
