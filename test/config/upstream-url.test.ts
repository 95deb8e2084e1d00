import { describe, expect, it } from 'vitest'
import { formatUpstreamUrl, parseUpstreamUrl } from '../../src/config/address.ts'

const SHAPES =
  "must be the device's address, such as http://127.0.0.1:8080, https://device or http+unix:/run/device.sock"

describe('the URL of the device', () => {
  it.each([
    ['http://127.0.0.1:8080', 'http', '127.0.0.1', 8080, 'http://127.0.0.1:8080'],
    ['http://device', 'http', 'device', 80, 'http://device'],
    ['https://device/', 'https', 'device', 443, 'https://device'],
    ['https://Device.Local:443', 'https', 'device.local', 443, 'https://device.local'],
    ['http://[::1]:8080', 'http', '::1', 8080, 'http://[::1]:8080'],
    ['http://[fe80::1%eth0]:8080', 'http', 'fe80::1%eth0', 8080, 'http://[fe80::1]:8080'],
    ['http://[fe80::1%25eth0]:8080', 'http', 'fe80::1%eth0', 8080, 'http://[fe80::1]:8080'],
    ['https://[FE80::1%25]/', 'https', 'fe80::1%25', 443, 'https://[fe80::1]'],
  ])('%s is parsed', (text, protocol, host, port, origin) => {
    const parsed = parseUpstreamUrl(text)
    expect(parsed).toEqual({ value: { kind: 'tcp', protocol, host, port, origin } })
    if ('value' in parsed) expect(parseUpstreamUrl(formatUpstreamUrl(parsed.value))).toEqual(parsed)
  })

  it.each(['http+unix:/run/device.sock', 'http+unix:///run/device.sock'])('%s is a Unix socket', (text) => {
    const value = { kind: 'unix', path: '/run/device.sock', origin: 'http://localhost' } as const
    expect(parseUpstreamUrl(text)).toEqual({ value })
    expect(formatUpstreamUrl(value)).toBe('http+unix:/run/device.sock')
  })

  it.each([
    '',
    'device:80',
    '127.0.0.1',
    'ftp://device',
    'http:device',
    'http:/device',
    'http:///device',
    'http://',
    'http://a b',
    'http://[fe80::1%]:80',
    'http://[fe80::1%a/b]:80',
    'http://[fe80%eth0]:80',
    'http://device%eth0',
    'http://de\nvice',
    'http:\\\\device',
    'http+unix://host/x',
  ])('%j is refused with examples of URLs', (text) => {
    expect(parseUpstreamUrl(text)).toEqual({ problem: SHAPES })
  })

  it.each([
    'http://device/api',
    'http://device/?',
    'http://device?a=b',
    'http://device#x',
    'http://device/#',
  ])('%s is refused, because path and query come from the client', (text) => {
    expect(parseUpstreamUrl(text)).toEqual({
      problem: "must end after the port: the client's own path and query are used; write http://device",
    })
  })

  it.each(['http://user:secret@device', 'http://user@device', 'http://@device'])(
    '%s is refused, because credentials belong in a header from a file',
    (text) => {
      expect(parseUpstreamUrl(text)).toEqual({
        problem: 'must not contain a user or password; set Authorization under upstream.headers, from a file',
      })
    },
  )

  it('must not have port 0, where no service can listen', () => {
    expect(parseUpstreamUrl('http://device:0')).toEqual({
      problem: 'must have a port from 1 to 65535, not 0',
    })
  })

  it('must not have a relative socket path', () => {
    expect(parseUpstreamUrl('http+unix:run/device.sock')).toEqual({
      problem: 'must name the socket by an absolute path, such as /run/postern.sock',
    })
  })
})
