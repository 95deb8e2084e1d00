import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAddress } from '../../src/config/address.ts'
import { formatAddress } from '../../src/system/listen-address.ts'

const SHAPES = 'must be host:port, [IPv6]:port, unix:/path or fd:3'

describe('an address', () => {
  it.each([
    ['0.0.0.0:8443', { kind: 'tcp', host: '0.0.0.0', port: 8443 }],
    ['localhost:0', { kind: 'tcp', host: 'localhost', port: 0 }],
    ['device_1.example:65535', { kind: 'tcp', host: 'device_1.example', port: 65_535 }],
    ['[::1]:443', { kind: 'tcp', host: '::1', port: 443 }],
    ['[fe80::1%eth0]:443', { kind: 'tcp', host: 'fe80::1%eth0', port: 443 }],
    ['unix:/run/postern.sock', { kind: 'unix', path: '/run/postern.sock' }],
    ['fd:3', { kind: 'fd', fd: 3 }],
  ])('%s is parsed, and formatted as the same text', (text, value) => {
    const parsed = parseAddress(text)
    expect(parsed).toEqual({ value })
    if ('value' in parsed) expect(formatAddress(parsed.value)).toBe(text)
  })

  it.each([
    ['8443', `${SHAPES}; for a port on every interface write 0.0.0.0:8443`],
    [':8443', 'must name the host too: 0.0.0.0:8443 is every interface'],
    ['', SHAPES],
    ['localhost', SHAPES],
    ['::1:443', `${SHAPES}; an IPv6 address needs brackets and a port, such as "[::1]:8443"`],
    ['::', `${SHAPES}; an IPv6 address needs brackets and a port, such as "[::1]:8443"`],
    ['http://localhost:80', SHAPES],
    ['localhost:http', SHAPES],
    ['local host:80', `${SHAPES}; the host is neither a name nor an address`],
    ['1.2.3:80', `${SHAPES}; the host is neither a name nor an address`],
    ['[1.2.3.4]:80', `${SHAPES}; the host is neither a name nor an address`],
    ['-a:80', `${SHAPES}; the host is neither a name nor an address`],
    ['localhost:65536', 'must have a port from 0 to 65535, not 65536'],
    ['unix:run.sock', 'must name the socket by an absolute path, such as /run/postern.sock'],
    ['unix:/a\0b', 'must not contain control characters'],
    ['unix:/a\nb', 'must not contain control characters'],
    [`unix:/${'ä'.repeat(54)}`, 'must be a socket path of at most 107 bytes'],
    ['fd:2', 'must be fd: and a descriptor from 3 on, as socket activation passes them'],
    ['fd:x', 'must be fd: and a descriptor from 3 on, as socket activation passes them'],
  ])('%j is refused', (text, problem) => {
    expect(parseAddress(text)).toEqual({ problem })
  })

  it('survives formatting and parsing', () => {
    const port = fc.integer({ min: 0, max: 65_535 })
    const hosts = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain())
    fc.assert(
      fc.property(hosts, port, (host, chosen) => {
        const value = { kind: 'tcp', host, port: chosen } as const
        expect(parseAddress(formatAddress(value))).toEqual({ value })
      }),
    )
  })
})
