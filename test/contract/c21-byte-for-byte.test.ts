import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { readBody, startDevice } from '../support/device.ts'
import { rawConnection } from '../support/raw.ts'
import { startCannedDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'

const targets = [
  '/',
  '/?',
  '/??a=?&&=&b',
  '/a%2Fb%2fb//c',
  '//double//slashes',
  '//device.example/not-an-authority',
  '/./a/../b/.',
  '/%2e%2E/%2e',
  '/%zz/%/%4',
  '/%00/%0d%0a/%ff',
  '/a;b=c;d/e;',
  '/back\\slash\\..\\x',
  '/quotes\'"`<>|^{}[]',
  '/~user:pass@host:80/',
  '/http://other.example/x',
  '/a+b%20c?x=1&x=2&y=%3D;z#'.replace('#', '%23'),
  '/.well-known/*',
  `/${'long'.repeat(1000)}?${'q=v&'.repeat(500)}`,
  '/Oauth/Token',
  '/oauth/token/../../x',
]

const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'PROPFIND',
  'MKCOL',
  'REPORT',
  'PURGE',
]

describeProtocols('C21 Forwarding', (transport) => {
  it('C21 path and query reach the device byte for byte', async () => {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    const connection = await sidecar.connect()
    for (const path of targets) {
      const response = await connection.send({ path, fields: ['Authorization', `Bearer ${token}`] })
      expect(response.status, path).toBe(200)
      expect(sidecar.device.requests.at(-1)?.target).toBe(path)
    }
    expect(sidecar.device.requests).toHaveLength(targets.length)
  })

  it('C21 the method reaches the device byte for byte', async () => {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    for (const method of methods) {
      expect((await sidecar.request({ method, token, path: '/x' })).status, method).toBe(200)
      expect(sidecar.device.requests.at(-1)).toMatchObject({ method, target: '/x', version: '1.1' })
    }
  })

  it('C21 a request without a body reaches the device without one', async () => {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    for (const method of methods) {
      await sidecar.request({ method, token })
      const seen = sidecar.device.requests.at(-1)
      expect(seen?.body, method).toHaveLength(0)
      expect(seen?.header('Transfer-Encoding'), method).toBeUndefined()
      expect(['0', undefined], method).toContain(seen?.header('Content-Length'))
    }
  })

  it.each(['GET', 'POST'])(
    'C21 a request body is forwarded unchanged, with its length or in chunks: %s',
    async (method) => {
      const sidecar = await startSidecar({ transport, config: { upstream: { buffer_uploads: 'off' } } })
      const token = await sidecar.token()
      const connection = await sidecar.connect()
      const body = Buffer.from([0, 255, 13, 10, 13, 10, ...Buffer.from('0\r\n\r\nGET / HTTP/1.1\r\n\r\n')])
      const fields = ['Authorization', `Bearer ${token}`, 'Content-Type', 'application/x-odd']
      const ask = async (whole: Buffer | Buffer[]) => {
        // The head of a body in chunks is sent a moment before the body.
        const response = await passUntil(sidecar.clock, connection.send({ method, fields, body: whole }))
        expect(response.status).toBe(200)
        return sidecar.device.requests.at(-1)
      }
      const measured = await ask(body)
      expect(measured?.body).toEqual(body)
      expect(measured?.header('Content-Length')).toBe(String(body.length))
      expect(measured?.header('Transfer-Encoding')).toBeUndefined()
      const chunked = await ask([body, Buffer.from('second'), Buffer.from('third')])
      expect(chunked?.body?.toString('latin1')).toBe(`${body.toString('latin1')}secondthird`)
      expect(chunked?.header('Content-Length')).toBeUndefined()
      expect(chunked?.header('Transfer-Encoding')).toBe('chunked')
      const empty = await ask(Buffer.alloc(0))
      expect(empty?.body).toHaveLength(0)
      // No leftover byte on either connection was read as a request.
      expect(sidecar.device.requests).toHaveLength(3)
    },
  )

  it('C21 an empty body in chunks is forwarded with correct framing', async () => {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      fields: ['Authorization', `Bearer ${token}`],
      open: true,
    })
    exchange.end()
    expect((await exchange.response).status).toBe(200)
    expect(sidecar.device.requests[0]?.body).toHaveLength(0)
    expect((await sidecar.request({ token })).status).toBe(200)
    expect(sidecar.device.requests).toHaveLength(2)
  })

  it('C21 a response body of any framing comes back unchanged', async () => {
    const body = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    const device = await startDevice((request, response) => {
      if (request.url === '/length') response.writeHead(200, { 'Content-Length': body.length })
      if (request.url === '/until-close') response.removeHeader('Transfer-Encoding')
      if (request.url === '/until-close') response.shouldKeepAlive = false
      if (request.url === '/empty') response.end()
      else {
        response.write(body.subarray(0, 100))
        response.end(body.subarray(100))
      }
    })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    const connection = await sidecar.connect()
    const ask = (path: string, method = 'GET') =>
      connection.send({ path, method, fields: ['Authorization', `Bearer ${token}`] })
    const measured = await ask('/length')
    expect([measured.header('Content-Length'), measured.body]).toEqual(['256', body])
    expect((await ask('/chunked')).body).toEqual(body)
    expect((await ask('/until-close')).body).toEqual(body)
    expect((await ask('/empty')).body).toHaveLength(0)
    const head = await ask('/length', 'HEAD')
    expect([head.header('Content-Length'), head.body.length]).toEqual(['256', 0])
  })

  it.each([
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: "x"\r\n\r\n', 304],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: "x"\r\n\r\n', 200],
  ])('C21 a response without a body ends with its head: %s, %j', async (method, bytes, status) => {
    const device = await startCannedDevice(bytes)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (let i = 0; i < 2; i += 1) {
      const response = await sidecar.request({ method, token })
      expect([response.status, response.header('ETag'), response.body.length]).toEqual([status, '"x"', 0])
    }
  })

  it('C21 the order of repeated fields is kept, in responses and requests', async () => {
    const answered = [
      ...[
        'X-Second',
        'b',
        'Set-Cookie',
        'one=1; Path=/',
        'X-First',
        'a',
        'Set-Cookie',
        'two=2',
        'x-second',
        'B',
      ],
      ...[
        'Link',
        '</a>',
        'Link',
        '</b>',
        'WWW-Authenticate',
        'Basic',
        'WWW-Authenticate',
        'Digest',
        'X-Empty',
        '',
      ],
      ...['X-Latin', 'caf\xe9', '__proto__', 'harmless', 'constructor', 'as well'],
    ]
    const device = await startDevice(async (request, response) => {
      await readBody(request)
      response.writeHead(200, answered)
      response.end()
    })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    const sent = [
      'X-Odd',
      '1',
      'Accept',
      'a/b',
      'x-odd',
      '2',
      'X-OTHER',
      'q',
      'Accept',
      'c/d',
      'X-Odd',
      '3',
      'X-Empty',
      '',
      '__proto__',
      'up',
    ]
    const response = await sidecar.request({ token, fields: sent })
    expect(response.values('Set-Cookie')).toEqual(['one=1; Path=/', 'two=2'])
    expect(response.values('X-Second')).toEqual(['b', 'B'])
    expect(response.values('Link')).toEqual(['</a>', '</b>'])
    expect(response.values('WWW-Authenticate')).toEqual(['Basic', 'Digest'])
    expect(response.values('X-Empty')).toEqual([''])
    expect(response.values('X-Latin')).toEqual(['caf\xe9'])
    expect(response.values('__proto__')).toEqual(['harmless'])
    expect(response.values('constructor')).toEqual(['as well'])
    const seen = sidecar.device.requests[0]
    expect(seen?.values('X-Odd')).toEqual(['1', '2', '3'])
    expect(seen?.values('Accept')).toEqual(['a/b', 'c/d'])
    expect(seen?.values('X-Empty')).toEqual([''])
    expect(seen?.values('__proto__')).toEqual(['up'])
  })

  it('C21 unusual statuses are kept, and in HTTP/1 the reason phrase', async () => {
    const device = await startDevice((request, response) => {
      response.writeHead(Number(request.url?.slice(1)), 'So Be It')
      response.end('x')
    })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    for (const status of [200, 207, 299, 418, 499, 599]) {
      const response = await sidecar.request({ token, path: `/${status}` })
      expect([response.status, response.reason]).toEqual([status, transport === 'h2' ? '' : 'So Be It'])
    }
  })
})

describeTransports(
  'C21 Forwarding in HTTP/1',
  (transport) => {
    it('C21 an HTTP/1 header keeps its order and casing, in responses and requests', async () => {
      const answered = [
        'X-b',
        '1',
        'x-A',
        '2',
        'SET-COOKIE',
        'a',
        'X-B',
        '3',
        'set-cookie',
        'b',
        'ETag',
        'x',
        'Content-Length',
        '0',
        'Date',
        'today',
      ]
      const device = await startDevice((_request, response) => {
        response.sendDate = false
        response.writeHead(200, answered)
        response.end()
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const sent = [
        'X-b',
        '1',
        'x-A',
        '2',
        'ACCEPT',
        '*/*',
        'X-B',
        '3',
        'cookie',
        'a=b',
        'uSER-aGENT',
        'old/1.0',
      ]
      const response = await sidecar.request({ token, fields: sent })
      expect(response.fields.slice(0, answered.length)).toEqual(answered)
      const fields = sidecar.device.requests[0]?.fields ?? []
      const first = fields.indexOf('X-b')
      expect(fields.slice(first, first + sent.length)).toEqual(sent)
    })

    it('C21 an absolute-form target reaches the device in origin form', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(
        `GET http://device.example/a%2fb?c HTTP/1.1\r\nHost: device.example\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
      )
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 200 /)
      expect(sidecar.device.requests[0]).toMatchObject({ target: '/a%2fb?c' })
      expect(sidecar.device.requests[0]?.values('Host')).toEqual(['device.example'])
    })

    it('C21 an HTTP/1.0 client gets a response without chunks', async () => {
      const device = await startDevice((_request, response) => {
        response.write('one ')
        response.end('two')
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(`GET / HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      const [head, body] = (await raw.closed).split('\r\n\r\n')
      expect(head).toMatch(/^HTTP\/1\.[01] 200 /)
      expect(head).not.toMatch(/Transfer-Encoding/i)
      expect(body).toBe('one two')
    })

    it('C21 pipelined requests get their own responses, in order', async () => {
      const device = await startDevice(async (request, response) => {
        // The sidecar has all other requests when the device answers the first one.
        if (request.url === '/0') await sidecar.metrics()
        response.end(request.url)
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const connection = await sidecar.connect()
      const responses = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          connection.send({ path: `/${i}`, fields: ['Authorization', `Bearer ${token}`] }),
        ),
      )
      expect(responses.map((response) => response.text)).toEqual(
        Array.from({ length: 10 }, (_, i) => `/${i}`),
      )
    })
  },
  ['http1', 'tls'],
)
