import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { readBody, startDevice } from '../support/device.ts'
import { startCannedDevice, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { expectSame } from './compare.ts'

const ok = 'HTTP/1.1 200 OK\r\n'

/** Well-formed responses that a server cannot be configured to send. */
const responses: readonly { readonly name: string; readonly bytes: string; readonly method?: string }[] = [
  { name: 'no reason phrase', bytes: 'HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi' },
  {
    name: 'a reason phrase of its own',
    bytes: 'HTTP/1.1 200 Quite All Right\r\nContent-Length: 2\r\n\r\nhi',
  },
  { name: 'a reason phrase in UTF-8', bytes: 'HTTP/1.1 200 Verf\xc3\xbcgbar\r\nContent-Length: 2\r\n\r\nhi' },
  { name: 'a space after a value', bytes: `${ok}X-A: b \t\r\nContent-Length: 2\r\n\r\nhi` },
  { name: 'a space after the length', bytes: `${ok}Content-Length: 2 \r\n\r\nhi` },
  { name: 'a status of its own', bytes: 'HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nhi' },
  { name: 'HTTP/1.0 without a length', bytes: 'HTTP/1.0 200 OK\r\nServer: old\r\n\r\nuntil the end' },
  {
    name: 'HTTP/1.0 kept alive',
    bytes: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi',
  },
  { name: 'no fields at all', bytes: `${ok}\r\nuntil the end` },
  { name: 'field names in mixed case', bytes: `${ok}x-LoWeR: 1\r\nCONTENT-LENGTH: 2\r\n\r\nhi` },
  { name: 'fields without values', bytes: `${ok}X-Empty:\r\nX-Blank: \t \r\nContent-Length: 2\r\n\r\nhi` },
  { name: 'non-ASCII values', bytes: `${ok}X-A: caf\xe9 \xc3\xa9\r\nContent-Length: 2\r\n\r\nhi` },
  { name: 'repeated fields', bytes: `${ok}X-A: 1\r\nX-A: 2\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nhi` },
  {
    name: 'a repeated content type',
    bytes: `${ok}Content-Type: a/b\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nhi`,
  },
  {
    name: 'ten cookies',
    bytes: `${ok}${'Set-Cookie: a=b; Path=/\r\n'.repeat(10)}Content-Length: 2\r\n\r\nhi`,
  },
  {
    name: 'a value of 20 KB',
    bytes: `${ok}X-LONG: ${'A'.repeat(20_000)}\r\nContent-Length: 2\r\n\r\nhi`,
  },
  { name: 'a hundred fields', bytes: `${ok}${'X-Many: y\r\n'.repeat(100)}Content-Length: 2\r\n\r\nhi` },
  {
    name: 'chunks and a trailer',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n01\r\ni\r\n0\r\nX-Trailer: t\r\n\r\n`,
  },
  {
    name: 'a challenge of its own',
    bytes:
      'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm="device", qop="auth"\r\nContent-Length: 2\r\n\r\nno',
  },
  {
    name: 'its own limits',
    bytes: 'HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nX-RateLimit-Limit: 5\r\nContent-Length: 2\r\n\r\nno',
  },
  { name: '304 with a length', bytes: 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 2\r\n\r\n' },
  { name: 'HEAD with a length', bytes: `${ok}Content-Length: 1234\r\nETag: "x"\r\n\r\n`, method: 'HEAD' },
  { name: 'HEAD with chunks', bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n`, method: 'HEAD' },
  {
    name: 'a relative redirect',
    bytes: 'HTTP/1.1 302 Found\r\nLocation: ../login?next=%2F\r\nContent-Length: 0\r\n\r\n',
  },
  {
    name: 'a redirect elsewhere',
    bytes: 'HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/x\r\nContent-Length: 0\r\n\r\n',
  },
  {
    name: 'an unknown content coding',
    bytes: `${ok}Content-Encoding: lzss\r\nContent-Length: 2\r\n\r\n\x00\xff`,
  },
]

it('C21 a status that Node cannot send over HTTP/2 is unchanged over HTTP/1', async () => {
  const device = await startCannedDevice('HTTP/1.1 799 Odder\r\nContent-Length: 2\r\n\r\nhi')
  const sidecar = await startSidecar({ device })
  await expectSame(device.url, sidecar, await sidecar.token(), {})
})

describe.each(['http1', 'h2'] as const)('A response of a scripted device over %s', (transport) => {
  it.each(responses)('C21 is unchanged with $name', async ({ bytes, method }) => {
    const device = await startCannedDevice(bytes)
    const sidecar = await startSidecar({ transport, device })
    await expectSame(device.url, sidecar, await sidecar.token(), method === undefined ? {} : { method })
  })

  it('C21 is unchanged if it arrives one byte at a time', async () => {
    // Without a reason phrase: undici keeps only the last segment of it.
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      for (const byte of `HTTP/1.1 200 \r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`) {
        peer.write(byte)
        await nextTurn()
      }
    })
    const sidecar = await startSidecar({ transport, device })
    await expectSame(device.url, sidecar, await sidecar.token(), {})
  })

  it.each([
    ['no body', {}],
    ['a length of zero', { method: 'POST', fields: ['Content-Length', '0'] }],
    ['a length', { method: 'PUT', body: 'x'.repeat(100_000) }],
    ['chunks', { method: 'PATCH', body: ['one, ', 'two, ', 'three'] }],
    ['a length, by DELETE', { method: 'DELETE', body: 'which' }],
    ['chunks, by GET', { method: 'GET', body: ['what ', 'exactly'] }],
    [
      'a form on another path than that of the token endpoint',
      { path: '/oauth/token/', body: 'grant_type=password' },
    ],
  ] as const)('C21 is unchanged, and so is its request with %s', async (_name, request) => {
    const device = await startDevice(async (incoming, response) => {
      const body = await readBody(incoming)
      response.setHeader('X-Digest', createHash('sha256').update(body).digest('hex'))
      response.setHeader('X-Asked', `${incoming.method} ${incoming.url} ${incoming.headers['content-type']}`)
      response.end(body)
    })
    const sidecar = await startSidecar({
      transport,
      device,
      config: { upstream: { buffer_uploads: 'off' } },
    })
    await expectSame(device.url, sidecar, await sidecar.token(), request)
    const [direct, through] = device.requests
    expect(through?.body).toEqual(direct?.body)
    // An empty body may have a Content-Length or none.
    expect(through?.header('Content-Length') ?? '0').toBe(direct?.header('Content-Length') ?? '0')
  })
})
