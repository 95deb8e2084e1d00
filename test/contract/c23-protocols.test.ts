import { once } from 'node:events'
import http2 from 'node:http2'
import tls from 'node:tls'
import { describe, expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { readBody, startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { rawConnection } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports, rowsOver } from '../support/transports.ts'

describe('C23 ALPN', () => {
  async function negotiated(
    url: string,
    offered: readonly string[] | undefined,
  ): Promise<string | false | null> {
    const { port } = new URL(url)
    const socket = tls.connect({
      host: '127.0.0.1',
      port: Number(port),
      rejectUnauthorized: false,
      ...(offered === undefined ? {} : { ALPNProtocols: [...offered] }),
    })
    closeLater(() => {
      socket.destroy()
    })
    await once(socket, 'secureConnect')
    return socket.alpnProtocol
  }

  it('C23 HTTP/2 and HTTP/1.1 share one port: ALPN prefers HTTP/2, and without ALPN it is HTTP/1.1', async () => {
    const sidecar = await startSidecar({ transport: 'tls' })
    expect(await negotiated(sidecar.url, ['h2', 'http/1.1'])).toBe('h2')
    expect(await negotiated(sidecar.url, ['http/1.1', 'h2'])).toBe('h2')
    expect(await negotiated(sidecar.url, ['http/1.1'])).toBe('http/1.1')
    expect(await negotiated(sidecar.url, ['http/1.0', 'http/1.1'])).toBe('http/1.1')
    expect(await negotiated(sidecar.url, undefined)).toBe(false)
    const raw = await rawConnection(sidecar.url, { alpn: [] })
    raw.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    expect(await raw.closed).toMatch(/^HTTP\/1\.1 401 /)
  })

  it('C23 a client that offers only ALPN http/1.0 is served, whether it sends HTTP/1.0 or HTTP/1.1', async () => {
    const sidecar = await startSidecar({ transport: 'tls' })
    expect(await negotiated(sidecar.url, ['http/1.0'])).toBe('http/1.0')
    expect(await negotiated(sidecar.url, ['http/0.9', 'http/1.0'])).toBe('http/1.0')
    const bearer = `Authorization: Bearer ${await sidecar.token()}`
    const old = await rawConnection(sidecar.url, { alpn: ['http/1.0'] })
    old.write(`GET / HTTP/1.0\r\n${bearer}\r\n\r\n`)
    expect(await old.closed).toMatch(/^HTTP\/1\.[01] 200 .*from the device$/s)
    const newer = await rawConnection(sidecar.url, { alpn: ['http/1.0'] })
    newer.write(`GET / HTTP/1.1\r\nHost: x\r\n${bearer}\r\n\r\n`.repeat(2))
    newer.end()
    expect((await newer.closed).match(/HTTP\/1\.1 200 /g)).toHaveLength(2)
    expect(sidecar.device.requests).toHaveLength(3)
  })

  it('C23 a client that offers only other protocols is refused in the handshake', async () => {
    const sidecar = await startSidecar({ transport: 'tls' })
    for (const offered of [['spdy/3'], ['http/0.9', 'acme-tls/1'], ['http/1'], ['h2c']]) {
      await expect(negotiated(sidecar.url, offered)).rejects.toThrow(/no application protocol/i)
    }
    expect((await sidecar.request()).status).toBe(401)
  })

  it('C23 TLS 1.0 and 1.1 are refused', async () => {
    const sidecar = await startSidecar({ transport: 'tls' })
    const { port } = new URL(sidecar.url)
    const socket = tls.connect({
      host: '127.0.0.1',
      port: Number(port),
      rejectUnauthorized: false,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    })
    closeLater(() => {
      socket.destroy()
    })
    await expect(once(socket, 'secureConnect')).rejects.toThrow()
  })

  it('C23 each of 150 concurrent requests on one HTTP/2 connection gets its own response', async () => {
    // The device has six requests at once, and answers the last of them first.
    const held: (() => void)[] = []
    const device = await startDevice(async (request, response) => {
      await readBody(request)
      if (held.push(() => response.end(request.url)) < 6) return
      for (const respond of held.splice(0).reverse()) respond()
    })
    const upstream = { max_in_flight: 6 }
    const sidecar = await startSidecar({ transport: 'h2', device, config: { upstream } })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const connection = await sidecar.connect()
    const paths = Array.from({ length: 150 }, (_, i) => `/${i}`)
    const responses = await Promise.all(paths.map((path) => connection.send({ path, fields })))
    expect(responses.map((response) => [response.status, response.text])).toEqual(
      paths.map((path) => [200, path]),
    )
  })

  it('C23 extended CONNECT (RFC 8441) is not offered, and one that comes anyway does not reach the device', async () => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const token = await sidecar.token()
    const session = http2.connect(sidecar.url, { rejectUnauthorized: false })
    closeLater(() => session.destroy())
    const [settings] = await once(session, 'remoteSettings')
    expect(settings.enableConnectProtocol ?? false).toBe(false)
    const stream = session.request({
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':path': '/',
      ':scheme': 'https',
      ':authority': 'x',
      authorization: `Bearer ${token}`,
    })
    stream.on('error', () => {})
    const answered = Promise.withResolvers<number | undefined>()
    stream.once('response', (headers) => answered.resolve(headers[':status']))
    stream.once('close', () => answered.resolve(undefined))
    expect(await answered.promise).not.toBe(200)
    expect(sidecar.device.requests).toHaveLength(0)
  })
})

describeTransports('C23 Events', (transport) => {
  it('C23 server-sent events arrive one by one, as the device sends them', async () => {
    const tick: (() => void)[] = []
    const device = await startDevice((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
      response.flushHeaders()
      let n = 0
      tick.push(() => {
        n += 1
        response.write(`data: ${n}\n\n`)
      })
      response.on('close', () => tick.splice(0))
    })
    const sidecar = await startSidecar({ transport, device })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`, 'Accept', 'text/event-stream']
    const connection = await sidecar.connect()
    const exchange = connection.start({ fields })
    // The head arrives before the device writes an event, and each event before the device writes the next.
    expect((await exchange.head).status).toBe(200)
    for (let n = 1; n <= 5; n += 1) {
      tick[0]?.()
      await exchange.waitFor(`data: ${n}\n\n`)
    }
    exchange.abort()
  })
})

describeProtocols('C23 Interim responses', (transport) => {
  it('C23 103 Early Hints come before the response and without hop-by-hop fields', async () => {
    const proceed = Promise.withResolvers<void>()
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.write(
        'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nLink: </b.css>\r\nKeep-Alive: timeout=9\r\n\r\n',
      )
      await proceed.promise
      peer.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
    const sidecar = await startSidecar({ transport, device })
    const connection = await sidecar.connect()
    const exchange = connection.start({ fields: ['Authorization', `Bearer ${await sidecar.token()}`] })
    const early = await exchange.waitForInformational(103)
    const links = early.fields.filter((_, i) => early.fields[i - 1]?.toLowerCase() === 'link')
    expect(links.join(', ')).toBe('</a.css>, </b.css>')
    expect(early.fields.join()).not.toContain('timeout=9')
    proceed.resolve()
    expect(await exchange.response).toMatchObject({ status: 200, text: 'ok' })
  })

  const processing = 'HTTP/1.1 102 Processing\r\n\r\n'
  it.each<readonly [string, string, number]>(
    rowsOver(transport, [
      ['a flood of 102', processing.repeat(5000), 500],
      ['a few 102', processing.repeat(3), 200],
    ]),
  )('C23 a device may send at most 16 interim responses: %s', async (_name, interim, status) => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.end(`${interim}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
    })
    const sidecar = await startSidecar({ transport, device })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect(response.status).toBe(status)
    expect(response.informational.length).toBeLessThanOrEqual(16)
    expect((await sidecar.request()).status).toBe(401)
  })

  it.each([['Content-Length', '4'], []].map((framing) => [framing]))(
    'C23 Expect: 100-continue is answered after admission and not forwarded: %j',
    async (framing) => {
      const sidecar = await startSidecar({ transport })
      const fields = [
        'Authorization',
        `Bearer ${await sidecar.token()}`,
        'Expect',
        '100-continue',
        ...framing,
      ]
      const connection = await sidecar.connect()
      const exchange = connection.start({ method: 'POST', fields, open: true })
      await exchange.waitForInformational(100)
      exchange.end('body')
      const response = await exchange.response
      expect([response.status, response.informational.map(({ status }) => status)]).toEqual([200, [100]])
      expect(sidecar.device.requests[0]?.body?.toString()).toBe('body')
      expect(sidecar.device.requests[0]?.values('Expect')).toEqual([])
    },
  )

  it('C23 a refused request with Expect: 100-continue gets no 100', async () => {
    const sidecar = await startSidecar({ transport, config: { limits: { api: { requests: 3 } } } })
    const expecting = ['Expect', '100-continue', 'Content-Length', '5']
    const refused: [number, string, string[]][] = [
      [401, 'invalid_token', []],
      [401, 'invalid_token', ['Authorization', 'Bearer unknown']],
      [400, 'invalid_request', ['X_Real_IP', '192.0.2.1']],
      [429, 'rate_limited', []],
    ]
    for (const [status, code, fields] of refused) {
      const connection = await sidecar.connect()
      const response = await connection.start({
        method: 'POST',
        fields: [...expecting, ...fields],
        open: true,
      }).response
      expectError(response, status, code as 'invalid_token')
      expect(response.informational).toEqual([])
    }
    expect(sidecar.device.connections).toBe(0)
  })

  it('C23 a request with Expect: 100-continue and no body gets its response', async () => {
    const sidecar = await startSidecar({ transport })
    const response = await sidecar.request({
      token: await sidecar.token(),
      fields: ['Expect', '100-continue'],
    })
    expect(response.status).toBe(200)
  })
})

describeTransports(
  'C23 Responses in HTTP/1',
  (transport) => {
    it('C23 an HTTP/1.0 client gets no interim response', async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.end(
          'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
        )
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(`GET / HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      const all = await raw.closed
      expect(all).toMatch(/^HTTP\/1\.[01] 200 /)
      expect(all).not.toContain('HTTP/1.1 103')
    })

    it('C23 the head and a small first piece of a response are not buffered', async () => {
      const proceed = Promise.withResolvers<void>()
      const device = await startDevice(async (_request, response) => {
        response.write('first')
        await proceed.promise
        response.end('last')
      })
      const sidecar = await startSidecar({ transport, device })
      const connection = await sidecar.connect()
      const exchange = connection.start({ fields: ['Authorization', `Bearer ${await sidecar.token()}`] })
      await exchange.waitFor('first')
      proceed.resolve()
      expect((await exchange.response).text).toBe('firstlast')
    })
  },
  ['http1', 'tls'],
)
