import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { beforeAll, expect, it } from 'vitest'
import { connect } from '../support/client.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/errors.ts'
import { frame, PREFACE, settings } from '../support/http2-frames.ts'
import { rawConnection } from '../support/raw.ts'
import { answersIn, typed as request } from '../support/raw-answers.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const garbage: readonly (readonly [string, string | Buffer])[] = [
  ['random bytes', Buffer.concat([Buffer.from([0xff, 0x00, 0x80]), randomBytes(2000)])],
  ['zeros', Buffer.alloc(300)],
  ['a TLS greeting', Buffer.from('16030100f8010000f40303', 'hex')],
  ['an SSH greeting', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['a mail greeting', 'EHLO example.net\r\n'],
  ['a SOCKS greeting', Buffer.from([5, 1, 0])],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a response', request('HTTP/1.1 200 OK', 'Content-Length: 0')],
  ['HTTP/0.9', 'GET /\r\n\r\n'],
  ['a version that does not exist', request('GET / HTTP/9.9', 'Host: x')],
  ['another protocol whose request lines look the same', request('GET / RTSP/1.0', 'Host: x')],
  ['a method that is none', request('G@T / HTTP/1.1', 'Host: x')],
  ['no method', request('/ HTTP/1.1', 'Host: x')],
  ['a space within the path', request('GET /a b HTTP/1.1', 'Host: x')],
  ['a path without its slash', request('GET x HTTP/1.1', 'Host: x')],
  ['a field without a colon', request('GET / HTTP/1.1', 'Host: x', 'nothing')],
  ['a field without a name', request('GET / HTTP/1.1', 'Host: x', ': x')],
  ['a space before the colon', request('GET / HTTP/1.1', 'Host: x', 'A : b')],
  ['a folded field', request('GET / HTTP/1.1', 'Host: x', 'A: b', ' c')],
  ['a NUL in a field', request('GET / HTTP/1.1', 'Host: x', 'A: b\0c')],
  ['a bare CR in a field', request('GET / HTTP/1.1', 'Host: x', 'A: b\rB: c')],
  ['a control character in a name', request('GET / HTTP/1.1', 'Host: x', 'A\x01: b')],
  ['two hosts', request('GET / HTTP/1.1', 'Host: x', 'Host: y')],
  ['no host', request('GET / HTTP/1.1')],
  ['a host that is none', request('GET / HTTP/1.1', 'Host: a b/c@d')],
  ['a length that is no number', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: ten')],
  ['a negative length', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: -1')],
  ['a length with a sign', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: +1')],
  ['a hexadecimal length', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 0x1')],
  ['an overflowing length', request('POST / HTTP/1.1', 'Host: x', `Content-Length: ${'9'.repeat(30)}`)],
  ['two lengths', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 1', 'Content-Length: 2')],
  ['a list of lengths', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 1, 2')],
  [
    'a length and chunks',
    `${request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  ],
  ['a coding that is not known', request('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: gzip')],
  ['chunked not last', request('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked, gzip')],
  ['chunked twice', request('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked, chunked')],
  ['chunks in HTTP/1.0', `${request('POST / HTTP/1.0', 'Host: x', 'Transfer-Encoding: chunked')}0\r\n\r\n`],
  ['an endless line', 'A'.repeat(200_000)],
  ['an endless path', request(`GET /${'a'.repeat(200_000)} HTTP/1.1`, 'Host: x')],
  ['an endless field', request('GET / HTTP/1.1', 'Host: x', `A: ${'b'.repeat(200_000)}`)],
  ['endless fields', request('GET / HTTP/1.1', 'Host: x', ...Array(20_000).fill('A: b'))],
]

describeTransports(
  'C20',
  (transport) => {
    let sidecar: TestSidecar
    let token: string
    beforeAll(async () => {
      sidecar = await startSidecar({ transport })
      token = await sidecar.token()
    })

    it.each(garbage)('C20 %s: 400, closed, and the next client is served', async (_name, bytes) => {
      const before = sidecar.device.byteCount
      const raw = await rawConnection(sidecar.url)
      raw.write(bytes)
      // With the end of the input no parser can hope for more: what stops in the middle is garbage, too.
      if (bytes.length < 100) raw.end()
      const answers = answersIn(await raw.closed)
      expect(answers).toHaveLength(1)
      const [answer] = answers
      if (answer !== undefined) expectError(answer, 400, 'invalid_request')
      expect(answer?.header('Connection')).toBe('close')
      expect(sidecar.device.byteCount).toBe(before)
      expect((await sidecar.request({ token })).status).toBe(200)
    })

    it('C20 nothing behind garbage is taken for a request', async () => {
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

    it('C20 garbage behind a good request does not spoil its answer', async () => {
      const raw = await rawConnection(sidecar.url)
      raw.write(request('GET /first HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`))
      raw.write('\x00\x01 garbage \r\n\r\n')
      const answers = answersIn(await raw.closed)
      expect(answers.map((answer) => answer.status)).toEqual([200, 400])
      expect(answers[0]?.text).toBe('from the device')
    })

    it.each([
      ['a chunk size that is no number', 'zz\r\n'],
      ['a chunk longer than it says', '2\r\nabcd\r\n0\r\n\r\n'],
      ['an overflowing chunk size', 'fffffffffffffffff\r\n'],
    ])('C20 garbage within a body on its way to the device: %s', async (_name, body) => {
      const raw = await rawConnection(sidecar.url)
      const fields = ['Host: x', `Authorization: Bearer ${token}`, 'Transfer-Encoding: chunked']
      raw.write(request('POST /upload HTTP/1.1', ...fields) + body)
      const answers = answersIn(await raw.closed)
      expect(answers.map((answer) => answer.status).filter((status) => status !== 400)).toEqual([])
      expect((await sidecar.request({ token })).status).toBe(200)
    })

    it('C20 a header over the configured size is 431 in http mode', async () => {
      const precise = await startSidecar({ transport, config: { status_codes: 'http' } })
      const answer = await precise.request({ fields: ['X-Long', 'x'.repeat(100_000)] })
      expectError(answer, 431, 'invalid_request')
    })

    it('C20 the answer to garbage carries no rate-limit fields, and counts as no request', async () => {
      const limited = await startSidecar({ transport, config: { limits: { api: { requests: 1 } } } })
      for (let i = 0; i < 5; i += 1) {
        const raw = await rawConnection(limited.url)
        raw.end('garbage\r\n\r\n')
        const [answer] = answersIn(await raw.closed)
        expect(answer?.status).toBe(400)
        expect(answer?.values('X-RateLimit-Limit')).toEqual([])
      }
      expect((await limited.request()).status).toBe(401)
    })
  },
  ['http1', 'tls'],
)

describeTransports(
  'C20',
  (transport) => {
    it('C20 bytes that are no TLS close the connection and leave the next one alone', async () => {
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
  'C20',
  (transport) => {
    it.each([
      ['random bytes for a preface', randomBytes(500)],
      ['HTTP/1.1 for a preface', Buffer.from(request('GET / HTTP/1.1', 'Host: x'))],
      ['random bytes behind the preface', Buffer.concat([PREFACE, settings(), randomBytes(50_000)])],
      ['a frame for stream 0 that belongs to a stream', Buffer.concat([PREFACE, settings(), frame(0, 0, 0)])],
      ['an even stream', Buffer.concat([PREFACE, settings(), frame(1, 5, 2, Buffer.from([0x82]))])],
      ['broken HPACK', Buffer.concat([PREFACE, settings(), frame(1, 5, 1, Buffer.alloc(40, 0xff))])],
      ['an oversized frame', Buffer.concat([PREFACE, settings(), frame(0, 0, 1, Buffer.alloc(100_000))])],
      [
        'a window that overflows',
        Buffer.concat([PREFACE, settings(), frame(8, 0, 0, Buffer.from('7fffffff', 'hex'))]),
      ],
    ])('C20 %s ends the session and leaves the next one alone', async (_name, bytes) => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url, { alpn: ['h2'] })
      raw.write(bytes)
      await raw.closed
      expect(sidecar.device.byteCount).toBe(0)
      expect((await sidecar.request({ token })).status).toBe(200)
    })

    it('C20 requests that HTTP/2 does not allow reach nobody', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const attempts: readonly (readonly string[])[] = [
        ['transfer-encoding', 'chunked'],
        ['connection', 'close'],
        ['upgrade', 'websocket'],
        ['content-length', '5', 'content-length', '6'],
        ['host', 'elsewhere.example'],
      ]
      const { byteCount } = sidecar.device
      for (const fields of attempts) {
        const shown = ['authorization', `Bearer ${token}`, ...fields]
        // A client that refuses to send it, a reset stream and a 400 are all as good.
        const status = await sidecar
          .request({ path: '/x', fields: shown })
          .then((answer) => answer.status)
          .catch(() => 400)
        expect([fields, status]).toEqual([fields, 400])
      }
      for (const path of ['', 'x', '*', '/a b', '/a#b', 'http://x/']) {
        const status = await sidecar
          .request({ path, token })
          .then((answer) => answer.status)
          .catch(() => 400)
        expect([path, status]).toEqual([path, 400])
      }
      expect(sidecar.device.byteCount).toBe(byteCount)
      expect((await sidecar.request({ token })).status).toBe(200)
    })

    it('C20 streams that are opened and reset at once reach the limits of nobody else', async () => {
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

describeTransports('C20', (transport) => {
  it('C20 clients that leave at any point do not end the process', async () => {
    const device = await startDevice((_request, response) => {
      response.write('begun')
    })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    const target = { transport, url: sidecar.url }
    const fields = ['authorization', `Bearer ${token}`]

    const silent = await connect(target)
    silent.close()
    const unasked = await connect(target)
    unasked.start({ path: '/x', fields })
    unasked.close()
    const withinUpload = await connect(target)
    withinUpload.start({ method: 'POST', path: '/x', fields, open: true }).write('x'.repeat(100_000))
    withinUpload.close()
    const withinToken = await connect(target)
    const form = ['content-type', 'application/x-www-form-urlencoded']
    withinToken.start({ method: 'POST', path: '/oauth/token', fields: form, open: true }).write('grant_')
    withinToken.close()
    const withinAnswer = await connect(target)
    const exchange = withinAnswer.start({ path: '/x', fields })
    await exchange.waitFor('begun')
    exchange.abort()

    const half = await connect(target)
    const answer = half.start({ path: '/x', fields })
    await answer.waitFor('begun')
    device.closeConnections()
    await expect(answer.response).rejects.toThrow()
    await sidecar.grant()
  })

  it('C20 a connection that is reset is gone and no more', async () => {
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
