import { describe, expect, it } from 'vitest'
import { requestFields } from '../../src/forward/request-fields.ts'
import { responseHead } from '../../src/forward/response-fields.ts'
import { fieldValues } from '../../src/http/fields.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { requestHead } from '../support/exchange.ts'

const PROXIES = ['192.0.2.1', '10.0.0.0/8']
const DEVICE = '127.0.0.1:8080'

const headWith = (fields: readonly string[]) =>
  requestHead({ fields: ['Host', 'public.example:8443', ...fields] })

/** The values of a field that the device gets of a request with these fields. */
function got(name: string, fields: readonly string[], trusted = PROXIES): readonly string[] {
  return fieldValues(requestFields(admitted(headWith(fields), trusted), null, PLAIN), name)
}

/** The `Location` that a client gets of a redirect, if it sent these fields. */
function redirected(
  location: string,
  { fields = [] as readonly string[], trusted = PROXIES, host = undefined as string | undefined } = {},
): string | undefined {
  const device = { status: 302, reason: '', fields: ['Location', location], remembered: false }
  const settings = {
    ...{ origin: `http://${DEVICE}`, host, names: [], rewrite: false, replaced: [] },
    ...{ passes: undefined, added: undefined },
  }
  return responseHead(device, admitted(headWith(fields), trusted), settings).fields[1]
}

describe('C22 What a trusted proxy says of its client', () => {
  it.each([
    ['ftp', 'http'],
    ['https://', 'http'],
    ['javascript', 'http'],
    ['HTTPS', 'https'],
    ['http', 'http'],
    // Traefik writes the schemes of WebSockets.
    ['wss', 'https'],
    ['ws', 'http'],
  ])('C22 X-Forwarded-Proto: %s reaches the device as a scheme of HTTP, or not at all', (given, scheme) => {
    expect(got('x-forwarded-proto', ['X-Forwarded-Proto', given])).toEqual([scheme])
  })

  it.each(['0', '00000', '', 'https', '-1', '65536', '8080a', '0x50'])(
    'C22 X-Forwarded-Port: "%s" is no port, and left aside',
    (given) => {
      expect(got('x-forwarded-port', ['X-Forwarded-Port', given])).toEqual(['8443'])
    },
  )

  it.each(['a b', 'x'.repeat(500), '', '<script>', 'a"b', 'caf\xe9'])(
    'C22 a malformed X-Request-Id is replaced: %.20j',
    (id) => {
      expect(got('x-request-id', ['X-Request-Id', id])).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)])
    },
  )

  it('C22 of a list the device gets the member that is about the client', () => {
    const claims = [
      ...['X-Forwarded-Proto', 'gopher, https, http', 'X-Forwarded-Host', 'evil.example, Public.example'],
      ...['x-forwarded-host', 'inside.example:8080', 'X-Forwarded-Port', '66,443,8080'],
    ]
    const through = (hops: string): readonly string[] =>
      ['Proto', 'Host', 'Port'].flatMap((name) =>
        got(`x-forwarded-${name.toLowerCase()}`, ['X-Forwarded-For', hops, ...claims]),
      )
    expect(through('192.0.2.9, 10.0.0.2')).toEqual(['https', 'Public.example', '443'])
    expect(through('192.0.2.9')).toEqual(['http', 'inside.example:8080', '8080'])
    // What is no scheme of HTTP is left aside.
    expect(through('192.0.2.9, 10.0.0.2, 10.0.0.3, 10.0.0.4')).toEqual(['http', 'evil.example', '66'])
  })
})

describe('C22 The address of a redirect', () => {
  it.each([
    [
      'with the own address of the device',
      `http://${DEVICE}/a%2fb//?c#d`,
      'http://public.example:8443/a%2fb//?c#d',
    ],
    [
      "with the forwarded Host and the device's scheme",
      'http://public.example:8443/next',
      'http://public.example:8443/next',
    ],
    ['without a path and in capitals', `HTTP://${DEVICE}`, 'http://public.example:8443'],
  ])('C22 %s becomes the public one', (_name, location, expected) => {
    expect(redirected(location)).toBe(expected)
  })

  it('C22 with the host of upstream.host becomes the public one', () => {
    expect(redirected('http://Inside.local/next', { host: 'inside.local' })).toBe(
      'http://public.example:8443/next',
    )
  })

  it.each([
    ...['/next?x=http://127.0.0.1/', 'next', '//other.example/x', '?only=query', 'http://other.example/x'],
    ...['https://login.example/?back=x', 'http://127.0.0.1.evil.example/', 'ftp://public.example:8443/x'],
    ...['http://public.example:9999/x', 'urn:x:y', '', 'http://[half'],
  ])('C22 any other is kept: %j', (location) => {
    expect(redirected(location)).toBe(location)
  })

  it('C22 is not that which an untrusted client names', () => {
    const fields = ['X-Forwarded-Proto', 'gopher', 'X-Forwarded-Host', 'evil.example']
    expect(redirected(`http://${DEVICE}/next`, { fields, trusted: [] })).toBe(
      'http://public.example:8443/next',
    )
  })

  /** The fields of the last proxy, which is trusted as 10.0.0.0/8 is. */
  it.each([
    ['one proxy that appends', [], 'http, https', 'evil.example, outside.example'],
    ['one proxy in front of an unknown one', ['192.0.2.9'], 'gopher, https', 'evil.example, outside.example'],
    ['two proxies', ['192.0.2.9, 10.0.0.2'], 'https, http', 'outside.example, 127.0.0.1:21871'],
    [
      'two proxies behind a client that claims',
      ['192.0.2.9, 192.0.2.8, 10.0.0.2:4711'],
      'http, https, http',
      'evil.example, outside.example, 127.0.0.1',
    ],
    ['two proxies, one of which writes the fields', ['192.0.2.9, 10.0.0.2'], 'https', 'outside.example'],
    ['three, of which two write', ['192.0.2.9, 10.0.0.2, 10.0.0.3'], 'https, http', 'outside.example, x'],
    ['a client that is a trusted proxy itself', ['10.0.0.2'], 'https, http', 'outside.example, x'],
    ['a list without an address at its end', ['192.0.2.9, unknown'], 'http, https', 'x, outside.example'],
    ['blanks and empty members', ['192.0.2.9, 10.0.0.2'], ',\thttps , ,http,', ' , outside.example,x ,'],
    ['fields that repeat', ['192.0.2.9', '10.0.0.2'], 'https\nhttp', 'outside.example\nx'],
    ['a scheme in capitals', [], 'HTTPS', 'outside.example'],
    ['the scheme of a WebSocket', [], 'wss', 'outside.example'],
    ['an empty field beside', [], 'https', 'outside.example\n'],
  ])('C22 is the one that a list of trusted proxies names: %s', (_name, hops, proto, host) => {
    const lines = (name: string, values: readonly string[]) => values.flatMap((value) => [name, value])
    const fields = [
      ...lines('X-Forwarded-For', hops),
      ...lines('X-Forwarded-Proto', proto.split('\n')),
      ...lines('x-forwarded-host', host.split('\n')),
    ]
    expect(redirected(`http://${DEVICE}/next`, { fields })).toBe('https://outside.example/next')
  })

  it.each(['a b', 'evil.example/path', 'user@evil.example', '[::1', '"evil.example"', 'evil.example?'])(
    'C22 is not an X-Forwarded-Host that is no host: %s',
    (named) => {
      const fields = ['X-Forwarded-Host', named, 'X-Forwarded-Proto', 'https']
      expect(redirected(`http://${DEVICE}/next`, { fields })).toBe('https://public.example:8443/next')
    },
  )
})
