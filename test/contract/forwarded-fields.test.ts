import { describe, expect, it } from 'vitest'
import type { DeviceRequest } from '../support/device.ts'
import { describeTransports } from '../support/transports.ts'
import { get, post, sharedFront } from './front.ts'

/** Fields with which a proxy describes its client, with forged values. */
const SPOOFED = [
  ...['X-Forwarded-For: 192.0.2.66', 'X-Forwarded-Proto: gopher', 'X-Forwarded-Host: evil.example'],
  ...[
    'X-Forwarded-Port: 66',
    'X-Forwarded-Server: evil',
    'X-Forwarded-Prefix: /evil',
    'X-Forwarded-User: evil',
  ],
  ...['x-forwarded-: evil', 'FORWARDED: for=192.0.2.66', 'X-Real-IP: 192.0.2.66', 'X-Request-Id: evil'],
]

const HOP_BY_HOP = [
  ...['Keep-Alive: timeout=5', 'Upgrade: websocket', 'TE: trailers', 'TE: gzip;q=1', 'Trailer: X-Sum'],
  ...['Proxy-Connection: keep-alive', 'Proxy-Authorization: Basic eDp5', 'Proxy-Authenticate: Basic'],
  ...['Proxy-Anything: x', 'Proxy: http://evil.example', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
]

describeTransports(
  'Fields that are not forwarded, and those that are',
  (transport) => {
    const front = sharedFront(transport)

    /** Sends a request with these lines, and returns the request that reached the device. */
    async function forwarded(...lines: readonly string[]): Promise<DeviceRequest> {
      const { device } = front.sidecar
      const before = device.requests.length
      const raw = await front.send(get(...lines, 'Connection: close'))
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 200 /)
      expect(device.requests).toHaveLength(before + 1)
      return device.requests[before] as DeviceRequest // `toHaveLength` has just checked that it is there
    }

    it.each([
      ['another case', ['X-FOO: secret', 'Connection: close, x-foo']],
      [
        'a list with whitespace and empty members',
        ['X-Foo: secret', 'Connection: ,\t, X-Foo\t,, keep-alive'],
      ],
      [
        'two fields, one that comes twice',
        ['Connection: a', 'X-Foo: secret', 'connection: X-Foo', 'x-foo: secret'],
      ],
    ])('H15 a field that Connection names is dropped: %s', async (_name, lines) => {
      expect((await forwarded(...lines)).fields.join('\n')).not.toMatch(/secret|x-foo/i)
    })

    it('H15 the fields that the sidecar adds, and those that frame a message, stay although Connection names them', async () => {
      const names = ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port', 'Via']
      const framing = ['Content-Length', 'Transfer-Encoding', 'Connection']
      const own = ['Authorization', 'Host', 'X-Request-Id']
      const request = await forwarded(`Connection: ${[...names, ...framing, ...own].join(', ')}`)
      for (const name of [...names, 'X-Request-Id', 'Host'])
        expect(request.values(name), name).toHaveLength(1)
      expect(request.values('Host')).toEqual(['device'])
      expect(request.values('Authorization')).toEqual([])
    })

    it('H15 the body ends at the same byte although Connection names Content-Length', async () => {
      const { device } = front.sidecar
      const raw = await front.send(
        `${post('Connection: Content-Length', 'Content-Length: 5')}hello${get('Connection: close')}`,
      )
      expect((await raw.closed).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
      expect(device.requests.slice(-2).map(({ body }) => body?.toString())).toEqual(['hello', ''])
    })

    it('H16 no field of one hop reaches the device, and a coding of the body only as its length', async () => {
      const request = await forwarded(...HOP_BY_HOP)
      for (const line of HOP_BY_HOP) expect(request.values(line.split(':')[0] ?? ''), line).toEqual([])
      const raw = await front.send(
        `${get('Transfer-Encoding: chunked', 'Connection: close')}1\r\na\r\n0\r\n\r\n`,
      )
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 200 /)
      const upload = front.sidecar.device.requests.at(-1)
      expect([upload?.values('Transfer-Encoding'), upload?.values('Content-Length')]).toEqual([[], ['1']])
    })

    it('H17 what an untrusted peer says of its own client is dropped, in any case', async () => {
      const request = await forwarded(...SPOOFED, ...SPOOFED.map((line) => line.toLowerCase()))
      expect(request.fields.join('\n')).not.toMatch(/evil|gopher|192\.0\.2\.|^66$/m)
      expect(request.values('X-Forwarded-For')).toEqual(['127.0.0.1'])
    })
  },
  ['http1'],
)

describe.each(['strict', 'tolerant'])('With the %s parser', (parser) => {
  const front = sharedFront('http1', { upstream: { parser } })

  it('H21 fields with the names of properties of JavaScript are forwarded in requests and responses', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__', 'prototype']
    front.sidecar.device.handle((_request, response) => {
      response
        .writeHead(
          200,
          names.flatMap((name) => [name, 'back']),
        )
        .end('from the device')
    })
    const raw = await front.send(get(...names.map((name) => `${name}: there`), 'Connection: close'))
    const received = await raw.closed
    for (const name of names) {
      expect(received).toContain(`\r\n${name}: back\r\n`)
      expect(front.sidecar.device.requests.at(-1)?.values(name.toLowerCase())).toEqual(['there'])
    }
  })

  it('H23 repeated Set-Cookie fields are kept in order', async () => {
    const cookies = ['a=1; Path=/', 'b=2, c=3', 'a=4', 'a=1; Path=/']
    front.sidecar.device.handle((_request, response) => {
      response
        .writeHead(
          200,
          cookies.flatMap((cookie) => ['Set-Cookie', cookie]),
        )
        .end('from the device')
    })
    const response = await front.sidecar.request({ token: front.token })
    expect(response.values('Set-Cookie')).toEqual(cookies)
  })
})
