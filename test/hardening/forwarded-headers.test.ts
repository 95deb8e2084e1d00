import { describe, expect, it } from 'vitest'
import type { DeviceRequest } from '../support/device.ts'
import { describeTransports } from '../support/transports.ts'
import { get, post, sharedFront } from '../support/front.ts'

/** Fields with which a proxy describes its client, with forged values. */
const SPOOFED: readonly (readonly string[])[] = [
  ['X-Forwarded-For', '192.0.2.66'],
  ['X-Forwarded-Proto', 'gopher'],
  ['X-Forwarded-Host', 'evil.example'],
  ['X-Forwarded-Port', '66'],
  ['X-Forwarded-Server', 'evil'],
  ['X-Forwarded-Prefix', '/evil'],
  ['X-Forwarded-User', 'evil'],
  ['x-forwarded-', 'evil'],
  ['FORWARDED', 'for=192.0.2.66'],
  ['X-Real-IP', '192.0.2.66'],
  ['X-Request-Id', 'evil'],
]

describeTransports(
  'Forwarded headers',
  (transport) => {
    describe.each(['strict', 'tolerant'])('with the %s parser', (parser) => {
      const front = sharedFront(transport, { upstream: { parser } })

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
        ['X-Foo', ['Connection: X-Foo', 'X-Foo: secret']],
        ['another case', ['X-FOO: secret', 'Connection: close, x-foo']],
        [
          'a list with whitespace and empty members',
          ['X-Foo: secret', 'Connection: ,\t, X-Foo\t,, keep-alive'],
        ],
        ['two fields', ['Connection: a', 'X-Foo: secret', 'connection: X-Foo']],
        ['a field that comes twice', ['Connection: X-Foo', 'X-Foo: secret', 'x-foo: secret']],
      ])('H15 a field that Connection names is dropped: %s', async (_name, lines) => {
        expect((await forwarded(...lines)).fields.join('\n')).not.toMatch(/secret|x-foo/i)
      })

      it('H15 the fields that the sidecar adds, and those that frame a message, stay although Connection names them', async () => {
        const names = ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port', 'Via']
        const framing = [
          'Authorization',
          'Host',
          'Content-Length',
          'Transfer-Encoding',
          'X-Request-Id',
          'Connection',
        ]
        const request = await forwarded(`Connection: ${[...names, ...framing].join(', ')}`)
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

      it.each([
        'Keep-Alive: timeout=5',
        'Upgrade: websocket',
        'Upgrade: h2c',
        'TE: trailers',
        'TE: gzip;q=1',
        'Trailer: X-Sum',
        'Proxy-Connection: keep-alive',
        'Proxy-Authorization: Basic eDp5',
        'Proxy-Authenticate: Basic',
        'Proxy-Anything: x',
        'Proxy: http://evil.example',
        'HTTP2-Settings: AAMAAABkAAQAAP__',
        'Transfer-Encoding: chunked',
      ])('H16 "%s" does not reach the device', async (line) => {
        const { device } = front.sidecar
        const name = line.split(':')[0] ?? ''
        const raw = await front.send(
          get(line, 'Connection: close') + (name === 'Transfer-Encoding' ? '1\r\na\r\n0\r\n\r\n' : ''),
        )
        expect(await raw.closed).toMatch(/^HTTP\/1\.1 200 /)
        // The sidecar has collected the body, and sends it with its length.
        expect(device.requests.at(-1)?.values(name)).toEqual([])
      })

      it.each(SPOOFED)('H17 %s from an untrusted peer is dropped', async (name, value) => {
        const request = await forwarded(`${name}: ${value}`, `${name?.toLowerCase()}: ${value}`)
        expect(request.fields.join('\n')).not.toMatch(/evil|gopher|192\.0\.2\.|^66$/m)
        expect(request.values('X-Forwarded-For')).toEqual(['127.0.0.1'])
      })

      it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__', 'prototype'])(
        'H21 a field named %s is forwarded in requests and responses',
        async (name) => {
          front.sidecar.device.handle((_request, response) => {
            response.writeHead(200, ['X-Own', 'there', name, 'back']).end('from the device')
          })
          const raw = await front.send(get(`${name}: there`, 'Connection: close'))
          expect(await raw.closed).toContain(`${name}: back`)
          expect(front.sidecar.device.requests.at(-1)?.values(name.toLowerCase())).toEqual(['there'])
        },
      )

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
        const { values } = await front.sidecar.request({ token: front.token }).then((response) => ({
          values: response.values('Set-Cookie'),
        }))
        expect(values).toEqual(cookies)
      })
    })
  },
  ['http1'],
)
