import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { beforeAll, expect, it } from 'vitest'
import { connect } from '../support/client.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { headOf as request, responsesIn } from '../support/http1-reader.ts'
import { frame, PREFACE, settings } from '../support/http2-frames.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

/** One of each kind. Of the others, `test/gate/garbage.test.ts` says that they are refused. */
const garbage: readonly (readonly [string, string | Buffer])[] = [
  ['random bytes', Buffer.concat([Buffer.from([0xff, 0x00, 0x80]), randomBytes(2000)])],
  ['a TLS greeting', Buffer.from('16030100f8010000f40303', 'hex')],
  ['HTTP/0.9', 'GET /\r\n\r\n'],
  ['a folded field', request('GET / HTTP/1.1', 'Host: x', 'A: b', ' c')],
  ['two hosts', request('GET / HTTP/1.1', 'Host: x', 'Host: y')],
  [
    'Content-Length and chunked',
    `${request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  ],
  ['a line of 200,000 bytes', 'A'.repeat(200_000)],
  ['20,000 fields', request('GET / HTTP/1.1', 'Host: x', ...Array(20_000).fill('A: b'))],
]

describeTransports(
  'C20 Garbage in HTTP/1',
  (transport) => {
    let sidecar: TestSidecar
    let token: string
    beforeAll(async () => {
      sidecar = await startSidecar({ transport })
      token = await sidecar.token()
    })

    it.each(garbage)('C20 %s: 400 and close, and the next client is served', async (_name, bytes) => {
      const before = sidecar.device.byteCount
      const raw = await rawConnection(sidecar.url)
      raw.write(bytes)
      // The FIN tells the parser that no more bytes come, so an incomplete request is garbage too.
      if (bytes.length < 100) raw.end()
      const responses = responsesIn(await raw.closed)
      expect(responses).toHaveLength(1)
      const [response] = responses
      if (response !== undefined) expectError(response, 400, 'invalid_request')
      expect(response?.header('Connection')).toBe('close')
      expect(sidecar.device.byteCount).toBe(before)
      expect((await sidecar.request({ token })).status).toBe(200)
    })

    it('C20 a request behind garbage is not read', async () => {
      const inner = request('GET /smuggled HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`)
      const before = sidecar.device.byteCount
      for (const [name, bytes] of garbage) {
        const raw = await rawConnection(sidecar.url)
        raw.write(bytes)
        raw.write(inner)
        const all = await raw.closed
        expect(all.match(/HTTP\/1\.1 2/g), name).toBeNull()
      }
      expect(sidecar.device.byteCount).toBe(before)
    })

    it('C20 a good request in front of garbage gets its response', async () => {
      const raw = await rawConnection(sidecar.url)
      raw.write(request('GET /first HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`))
      raw.write('\x00\x01 garbage \r\n\r\n')
      const responses = responsesIn(await raw.closed)
      expect(responses.map((response) => response.status)).toEqual([200, 400])
      expect(responses[0]?.text).toBe('from the device')
    })

    it.each([
      ['a chunk size that is no number', 'zz\r\n'],
      ['a chunk longer than its size', '2\r\nabcd\r\n0\r\n\r\n'],
      ['an overflowing chunk size', 'fffffffffffffffff\r\n'],
    ])('C20 garbage in a body on its way to the device gets 400 or a close: %s', async (_name, body) => {
      const raw = await rawConnection(sidecar.url)
      const fields = ['Host: x', `Authorization: Bearer ${token}`, 'Transfer-Encoding: chunked']
      raw.write(request('POST /upload HTTP/1.1', ...fields) + body)
      const responses = responsesIn(await raw.closed)
      expect(responses.map((response) => response.status).filter((status) => status !== 400)).toEqual([])
      expect((await sidecar.request({ token })).status).toBe(200)
    })

    it('C20 a header over the configured size is 431 in http mode', async () => {
      const precise = await startSidecar({ transport, config: { status_codes: 'http' } })
      const response = await precise.request({ fields: ['X-Long', 'x'.repeat(100_000)] })
      expectError(response, 431, 'invalid_request')
    })

    it('C20 the 400 for garbage carries no rate-limit fields, and garbage does not count as a request', async () => {
      const limited = await startSidecar({ transport, config: { limits: { api: { requests: 1 } } } })
      for (let i = 0; i < 5; i += 1) {
        const raw = await rawConnection(limited.url)
        raw.end('garbage\r\n\r\n')
        const [response] = responsesIn(await raw.closed)
        expect(response?.status).toBe(400)
        expect(response?.values('X-RateLimit-Limit')).toEqual([])
      }
      expect((await limited.request()).status).toBe(401)
    })
  },
  ['http1', 'tls'],
)

describeTransports(
  'C20 Bytes that are not TLS',
  (transport) => {
    it('C20 bytes that are not TLS close the connection, and the next one is served', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      for (const bytes of [request('GET / HTTP/1.1', 'Host: x'), randomBytes(2000), Buffer.alloc(100)]) {
        const raw = await rawConnection(sidecar.url.replace('https:', 'http:'))
        raw.end(bytes)
        expect(await raw.closed).not.toContain('HTTP/1.1 200')
      }
      expect((await sidecar.request({ token })).status).toBe(200)
    })
  },
  ['tls', 'h2'],
)

describeTransports(
  'C20 Garbage in HTTP/2',
  (transport) => {
    it.each([
      ['random bytes instead of the preface', randomBytes(500)],
      ['HTTP/1.1 instead of the preface', Buffer.from(request('GET / HTTP/1.1', 'Host: x'))],
      ['random bytes behind the preface', Buffer.concat([PREFACE, settings(), randomBytes(50_000)])],
      ['DATA on stream 0', Buffer.concat([PREFACE, settings(), frame(0, 0, 0)])],
      ['an even stream number', Buffer.concat([PREFACE, settings(), frame(1, 5, 2, Buffer.from([0x82]))])],
      ['broken HPACK', Buffer.concat([PREFACE, settings(), frame(1, 5, 1, Buffer.alloc(40, 0xff))])],
      ['an oversized frame', Buffer.concat([PREFACE, settings(), frame(0, 0, 1, Buffer.alloc(100_000))])],
      [
        'a window that overflows',
        Buffer.concat([PREFACE, settings(), frame(8, 0, 0, Buffer.from('7fffffff', 'hex'))]),
      ],
    ])('C20 %s ends the session, and the next one is served', async (_name, bytes) => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url, { alpn: ['h2'] })
      raw.write(bytes)
      await raw.closed
      expect(sidecar.device.byteCount).toBe(0)
      expect((await sidecar.request({ token })).status).toBe(200)
    })

    it('C20 a client that opens and resets eighty streams at once keeps no other client from the device', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const connection = await sidecar.connect()
      for (let i = 0; i < 80; i += 1) {
        connection.start({ path: '/x', fields: ['authorization', `Bearer ${token}`] }).abort()
      }
      await sidecar.request({ token })
      expect((await sidecar.request({ token })).status).toBe(200)
    })
  },
  ['h2'],
)

describeTransports('C20 Clients that leave', (transport) => {
  it('C20 the process survives clients that leave at any point', async () => {
    const device = await startDevice((_request, response) => {
      response.write('begun')
    })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    const target = { transport, url: sidecar.url }
    const fields = ['authorization', `Bearer ${token}`]

    const silent = await connect(target)
    silent.close()
    const early = await connect(target)
    early.start({ path: '/x', fields })
    early.close()
    const withinUpload = await connect(target)
    withinUpload.start({ method: 'POST', path: '/x', fields, open: true }).write('x'.repeat(100_000))
    withinUpload.close()
    const withinToken = await connect(target)
    const form = ['content-type', 'application/x-www-form-urlencoded']
    withinToken.start({ method: 'POST', path: '/oauth/token', fields: form, open: true }).write('grant_')
    withinToken.close()
    const withinResponse = await connect(target)
    const exchange = withinResponse.start({ path: '/x', fields })
    await exchange.waitFor('begun')
    exchange.abort()

    const client = await connect(target)
    const cut = client.start({ path: '/x', fields })
    await cut.waitFor('begun')
    device.closeConnections()
    await expect(cut.response).rejects.toThrow()
    await sidecar.grant()
  })

  it('C20 the process survives a connection that is reset within a request line or a TLS record', async () => {
    const sidecar = await startSidecar({ transport })
    const { hostname, port } = new URL(sidecar.url)
    for (let i = 0; i < 5; i += 1) {
      const socket = net.connect(Number(port), hostname)
      await new Promise<void>((resolve) => {
        socket.once('connect', () => {
          socket.write(i % 2 === 0 ? 'GET / HT' : '\x16\x03\x01')
          socket.resetAndDestroy()
          resolve()
        })
      })
    }
    await sidecar.grant()
  })
})
