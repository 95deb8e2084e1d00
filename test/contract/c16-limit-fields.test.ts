import { once } from 'node:events'
import http2 from 'node:http2'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice, startHoldingDevice } from '../support/device.ts'
import { type Limits, limitsOf } from '../support/expectations.ts'
import { rawConnection, unusedPort } from '../support/raw.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

const limits100 = { limits: { api: { requests: 100 }, oauth: { requests: 100 } } }

describeProtocols('C16 The rate-limit fields', (transport) => {
  it('C16 a forwarded response of any status carries the three X-RateLimit fields', async () => {
    const device = await startDevice((request, response) => {
      response.statusCode = Number(request.url?.slice(1))
      response.end()
    })
    const sidecar = await startSidecar({ clock: stillClock(), transport, device, config: limits100 })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const connection = await sidecar.connect()
    let remaining = 100
    for (const status of [200, 201, 204, 206, 301, 304, 400, 401, 404, 429, 500, 503]) {
      for (const method of ['GET', 'HEAD', 'POST']) {
        remaining -= 1
        const response = await connection.send({ fields, method, path: `/${status}` })
        expect([response.status, limitsOf(response)]).toEqual([
          status,
          { limit: 100, remaining, reset: expect.any(Number) },
        ])
      }
    }
  })

  it('C16 X-RateLimit-Reset is Unix time in whole seconds, rounded up', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ transport, clock })
    // Milliseconds within the second at which the window opens.
    for (const within of [345, 0, 1, 999]) {
      await clock.advance(60_000 + ((within - (clock.wall() % 1000) + 1000) % 1000))
      const closes = clock.wall() + 60_000
      expect(limitsOf(await sidecar.request()).reset).toBe(Math.ceil(closes / 1000))
      await clock.advance(30_000)
      expect(limitsOf(await sidecar.request()).reset).toBe(Math.ceil(closes / 1000))
    }
  })

  it('C16 a client that waits until the reset is not refused', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ transport, clock, config: { limits: { api: { requests: 1 } } } })
    for (let i = 0; i < 6; i += 1) {
      const { reset } = limitsOf(await sidecar.request())
      expect((await sidecar.request()).status).toBe(429)
      await clock.advance(reset * 1000 - clock.wall())
      expect((await sidecar.request()).status, `window ${i}`).toBe(401)
      await clock.advance(60_000 + 137)
    }
  })

  it('C16 a refusal by the API carries the three fields, and none is negative: 400, 401, 429 and 500', async () => {
    const device = { url: `http://127.0.0.1:${await unusedPort()}` }
    const sidecar = await startSidecar({
      clock: stillClock(),
      transport,
      device,
      config: { limits: { api: { requests: 4 } } },
    })
    const token = await sidecar.token()
    const responses = [
      await sidecar.request({ token }),
      await sidecar.request(),
      await sidecar.request({ token: 'unknown' }),
      await sidecar.request({ method: 'OPTIONS', path: '*' }),
      await sidecar.request({ token }),
      await sidecar.request({ token }),
    ]
    expect(responses.map((response) => [response.status, limitsOf(response).remaining])).toEqual([
      [500, 3],
      [401, 2],
      [401, 1],
      [400, 0],
      [429, 0],
      [429, 0],
    ])
  })

  it('C16 the refusals for an overloaded and for a slow device carry the three fields', async () => {
    const { device, held } = await startHoldingDevice()
    const start = (upstream: YamlPart) =>
      startSidecar({ transport, device, config: { ...limits100, upstream } })
    const busy = await start({ max_in_flight: 1, queue: { size: 0 } })
    const token = await busy.token()
    const first = busy.request({ token })
    await device.waitForRequests(1)
    const overloaded = await busy.request({ token })
    expect([overloaded.status, overloaded.json().error]).toEqual([500, 'overloaded'])
    expect(limitsOf(overloaded).remaining).toBe(98)
    held[0]?.end()
    expect(limitsOf(await first).remaining).toBe(99)
    const impatient = await start({})
    const late = impatient.request({ token: await impatient.token() })
    await device.waitForRequests(2)
    await impatient.clock.advance(30_000)
    const slow = await late
    expect([slow.status, slow.json().error]).toEqual([500, 'upstream_timeout'])
    expect(limitsOf(slow).remaining).toBe(99)
  })

  it("C16 the device's own fields of these names are replaced, whatever their case and number", async () => {
    const device = await startDevice((_request, response) => {
      response.writeHead(200, [
        'x-ratelimit-limit',
        '9999',
        'X-RATELIMIT-REMAINING',
        '-5',
        'X-RateLimit-Remaining',
        '7',
        'X-RateLimit-Reset',
        'tomorrow',
        'X-RateLimit-Policy',
        'kept',
        'RateLimit',
        'kept too',
      ])
      response.end()
    })
    const sidecar = await startSidecar({ transport, device, config: limits100 })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect(limitsOf(response)).toMatchObject({ limit: 100, remaining: 99 })
    expect(response.header('X-RateLimit-Policy')).toBe('kept')
    expect(response.header('RateLimit')).toBe('kept too')
    expect(response.fields.join()).not.toMatch(/\b9999\b|tomorrow/)
  })

  it('C16 ietf_headers adds RateLimit-Policy and RateLimit to forwarded responses and refusals', async () => {
    const clock = stillClock()
    const device = await startDevice((_request, response) => {
      response.writeHead(200, { RateLimit: 'the device', 'RateLimit-Policy': 'the device' })
      response.end()
    })
    const sidecar = await startSidecar({
      transport,
      device,
      clock,
      config: { limits: { api: { requests: 2 }, oauth: { requests: 7, window: '90s' }, ietf_headers: true } },
    })
    const token = await sidecar.token()
    const forwarded = await sidecar.request({ token })
    await clock.advance(10_500)
    const refused = await sidecar.request()
    const limited = await sidecar.request()
    const read = (response: typeof forwarded) => [
      response.status,
      response.header('RateLimit-Policy'),
      response.header('RateLimit'),
    ]
    expect([forwarded, refused, limited].map(read)).toEqual([
      [200, '"api";q=2;w=60', '"api";r=1;t=60'],
      [401, '"api";q=2;w=60', '"api";r=0;t=50'],
      [429, '"api";q=2;w=60', '"api";r=0;t=50'],
    ])
    expect(read(await sidecar.postToken({}))).toEqual([400, '"oauth";q=7;w=90', '"oauth";r=5;t=80'])
    limitsOf(forwarded)
  })

  it('C16 without ietf_headers there is no RateLimit-Policy and no RateLimit', async () => {
    const sidecar = await startSidecar({ transport })
    const response = await sidecar.request()
    expect(response.values('RateLimit')).toEqual([])
    expect(response.values('RateLimit-Policy')).toEqual([])
  })
})

describeTransports(
  'C16 The rate-limit fields in HTTP/1',
  (transport) => {
    it('C16 the 101 of an upgrade carries the three fields, and so does its refusal', async () => {
      const device = await startDevice()
      const { server } = acceptWebSockets(device)
      server.on('headers', (headers) => headers.push('x-ratelimit-limit: 9999'))
      const config = { limits: { api: { requests: 3 } } }
      const sidecar = await startSidecar({ transport, device, config })
      const token = await sidecar.token()
      const { response } = await openWebSocket(sidecar.url, { token })
      const seen: Limits[] = [limitsOf({ fields: response.rawHeaders })]
      const noToken = await refusedWebSocket(sidecar.url, {})
      await device.stop()
      const noDevice = await passUntil(sidecar.clock, refusedWebSocket(sidecar.url, { token }))
      const limited = await refusedWebSocket(sidecar.url, { token })
      expect([noToken.status, noDevice.status, limited.status]).toEqual([401, 500, 429])
      seen.push(limitsOf(noToken), limitsOf(noDevice), limitsOf(limited))
      expect(seen.map(({ limit, remaining }) => [limit, remaining])).toEqual([
        [3, 2],
        [3, 1],
        [3, 0],
        [3, 0],
      ])
    })

    it('C16 the 400 for a malformed chunked body carries the three fields', async () => {
      const sidecar = await startSidecar({ transport, config: limits100 })
      const token = await sidecar.token()
      for (const path of ['/oauth/token', '/x']) {
        const raw = await rawConnection(sidecar.url)
        raw.write(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nTransfer-Encoding: chunked\r\n` +
            'Content-Type: application/x-www-form-urlencoded\r\n\r\n3\r\nabc\r\nzz\r\n',
        )
        const all = await raw.closed
        expect(all, path).toMatch(/^HTTP\/1\.1 400 /)
        expect(all, path).toMatch(/\r\nX-RateLimit-Limit: 100\r\n/)
        expect(all, path).toMatch(/\r\nX-RateLimit-Remaining: \d+\r\n/)
        expect(all, path).toMatch(/\r\nX-RateLimit-Reset: \d{10}\r\n/)
      }
    })
  },
  ['http1'],
)

it('C16 the refusal of a CONNECT over HTTP/2 carries the three fields', async () => {
  const sidecar = await startSidecar({ transport: 'h2', config: limits100 })
  const session = http2.connect(sidecar.url, { rejectUnauthorized: false })
  closeLater(() => session.destroy())
  const stream = session.request({ ':method': 'CONNECT', ':authority': 'device.example:443' })
  const [, , raw] = await new Promise<[http2.IncomingHttpHeaders, number, string[]]>((resolve, reject) => {
    stream.once('response', (headers, flags, fields) => resolve([headers, flags, fields ?? []]))
    stream.once('error', reject)
  })
  expect(raw.slice(0, 2)).toEqual([':status', '400'])
  expect(limitsOf({ fields: raw })).toMatchObject({ limit: 100, remaining: 99 })
  stream.resume()
  await once(stream, 'close')
})
