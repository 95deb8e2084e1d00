import { once } from 'node:events'
import http from 'node:http'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { windowKey } from '../../src/gate/admit.ts'
import { createClientAddress } from '../../src/gate/client-address.ts'
import type { Identity } from '../../src/http/admission.ts'
import { matchesAny, normalizeAddress, parseCidr } from '../../src/http/ip.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'

const trusted = ['10.0.0.0/8', 'fd00::/8'].map(parseCidr).filter((cidr) => cidr !== undefined)

const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4().map((ip) => `::ffff:${ip}`),
  fc.ipV4().map((ip) => ip.replace(/^\d+/, '10')),
  fc.integer({ min: 1, max: 9 }).map((n) => `fd00::${n}`),
)

const noAddress = fc.constantFrom(
  'unknown',
  '_x',
  '1.2.3',
  '0x7f.1',
  '300.1.1.1',
  '999.1.1.1',
  '1.2.3.4.5',
  'a b',
  '[::1',
  '"1.2.3.4"',
)

it('C17 the client is the peer if the peer is untrusted, regardless of X-Forwarded-For', () => {
  fc.assert(
    fc.property(
      address.filter((ip) => !matchesAny(ip, trusted)),
      fc.array(fc.oneof(address, noAddress, fc.string()), { maxLength: 5 }),
      (peer, claims) => {
        const clientOf = createClientAddress(trusted)
        expect(clientOf(peer, claims)).toEqual(clientOf(peer, []))
        expect(clientOf(peer, claims).address).toBe(normalizeAddress(peer))
      },
    ),
  )
})

it('C17 the client of a trusted peer is the first untrusted address from the right', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(address, noAddress), { maxLength: 6 }), (hops) => {
      const {
        address: found,
        peerTrusted,
        hops: further,
      } = createClientAddress(trusted)('10.0.0.1', [hops.join(', ')])
      let expected = '10.0.0.1'
      let proxies = 0
      for (const hop of [...hops].reverse()) {
        const normal = normalizeAddress(hop)
        if (normal === undefined) break
        expected = normal
        if (!matchesAny(normal, trusted)) break
        proxies += 1
      }
      expect([found, peerTrusted, further]).toEqual([expected, true, proxies])
    }),
    { numRuns: 1000 },
  )
})

it('C17 the client does not depend on how the list is split over fields, on spaces, or on ports', () => {
  fc.assert(
    fc.property(
      fc.array(address, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 65_535 }),
      (hops, port) => {
        const clientOf = createClientAddress(trusted)
        const plain = clientOf('10.0.0.1', [hops.join(',')])
        const ported = hops.map((hop) => (hop.includes(':') ? `[${hop}]:${port}` : `${hop}:${port}`))
        expect(clientOf('10.0.0.1', hops)).toEqual(plain)
        expect(clientOf('10.0.0.1', [` ${hops.join(' ,\t')} `])).toEqual(plain)
        expect(clientOf('10.0.0.1', ported)).toEqual(plain)
      },
    ),
  )
})

it('the last 4096 peers are remembered, so that an address is parsed once for many requests', () => {
  const clientOf = createClientAddress([])
  const of = (i: number) => clientOf(`10.0.${i >> 8}.${i & 255}`, [])
  const first = of(0)
  for (let i = 1; i < 4096; i += 1) of(i)
  expect(of(0)).toBe(first)
  of(4096)
  expect(of(0)).not.toBe(first)
})

it('C17 two addresses share a window exactly if they are the same IPv4 address or in the same IPv6 /64', () => {
  const clientOf = createClientAddress([])
  const key = (ip: string) => clientOf(ip, []).key
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 }),
      fc.nat(7),
      (parts, changed) => {
        fc.pre(parts.slice(0, 5).some((part) => part !== 0))
        const one = parts.map((part) => part.toString(16)).join(':')
        const other = parts.map((part, i) => (i === changed ? part ^ 1 : part).toString(16)).join(':')
        fc.pre(
          other
            .split(':')
            .slice(0, 5)
            .some((part) => part !== '0'),
        )
        expect(key(one) === key(other)).toBe(changed >= 4)
      },
    ),
  )
  fc.assert(
    fc.property(fc.ipV4(), fc.ipV4(), (one, other) => {
      expect(key(`::ffff:${one}`)).toBe(key(one))
      expect(key(one) === key(other)).toBe(one === other)
    }),
  )
})

it('C17 all peers of a Unix socket are one client, and may name other clients only if `unix` is trusted', () => {
  const clientOf = createClientAddress(trusted)
  expect(clientOf('', ['192.0.2.1'])).toEqual({
    address: 'unix',
    key: 'unix',
    peerTrusted: false,
    hops: 0,
    admitted: true,
  })
  const trusting = createClientAddress([], true)
  expect(trusting('', [])).toEqual({
    address: 'unix',
    key: 'unix',
    peerTrusted: true,
    hops: 0,
    admitted: true,
  })
  expect(trusting('', ['192.0.2.9, 192.0.2.1'])).toEqual({
    address: '192.0.2.1',
    key: '192.0.2.1',
    peerTrusted: true,
    hops: 0,
    admitted: true,
  })
})

it('C17 the window is that of the device, of the client, or with a valid token of its grant or name', () => {
  const client = createClientAddress([])('192.0.2.1', [])
  const keys = (identity: Identity | undefined) =>
    (['device', 'client', 'grant', 'name'] as const).map((per) => windowKey(per, client, identity))
  const valid: Identity = { kind: 'valid', grant: 'laboratory.id' }
  expect(keys(valid)).toEqual(['*', '192.0.2.1', 'grant laboratory.id', 'name laboratory'])
  for (const other of [undefined, { kind: 'refused', cause: 'unknown' } as const])
    expect(keys(other)).toEqual(['*', '192.0.2.1', '192.0.2.1', '192.0.2.1'])
})

it('C22 a proxy on a Unix socket may name the client if `unix` is trusted', async () => {
  const device = await startDevice()
  const socketPath = join(temporaryDirectory(), 'in')
  const config = { listen: { address: `unix:${socketPath}`, trusted_proxies: ['unix'] }, public_paths: ['/'] }
  await startSidecar({ device, config })
  const request = http.get({ socketPath, path: '/', headers: { 'X-Forwarded-For': '192.0.2.1' } })
  const [response] = await once(request, 'response')
  response.resume()
  expect(device.requests[0]?.header('x-forwarded-for')).toBe('192.0.2.1, unix')
})
