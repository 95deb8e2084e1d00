import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { servicesOf } from '../../src/config/upstream-fields.ts'
import { prepareSite } from '../process/serve.ts'
import { startDigestDevice } from '../sign-in/devices.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { expectError, expectUnharmed } from '../support/expectations.ts'
import { headOf, responsesIn } from '../support/http1-reader.ts'
import { FLAG, FRAME, frame, headers, requestFields } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { rawConnection } from '../support/raw.ts'
import { brokenBy, nextRequest, startRawDevice } from '../support/raw-device.ts'
import { accessLines, explained } from '../support/records.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'

const MOST = 1000
/** A character that stands in no head, so its count at a device is that of bytes of bodies. */
const MARK = '~'
const body = (size: number): string => MARK.repeat(size)
const bodyBytesAt = ({ bytes }: Pick<Device, 'bytes'>): number =>
  bytes.toString('latin1').split(MARK).length - 1

async function start(transport: Transport, upstream: YamlPart = {}, config: YamlPart = {}) {
  /** Of each request that is over at the device, whether it was whole; if not, its connection has closed. */
  const whole: boolean[] = []
  const device = await startDevice(async (request, response) => {
    request.once('close', () => whole.push(request.complete))
    await readBody(request)
    response.end('from the device')
  })
  const sidecar = await startSidecar({
    transport,
    device,
    config: { status_codes: 'http', ...config, upstream: { max_body: MOST, ...upstream } },
  })
  const token = await sidecar.token()
  return { device, whole, sidecar, token, fields: ['Authorization', `Bearer ${token}`] }
}

describeProtocols('upstream.max_body', (transport) => {
  it('H303 a body of the bound passes, and one that its head calls longer is refused before a byte or a 100', async () => {
    for (const [codes, status] of [
      ['contract', 400],
      ['http', 413],
    ] as const) {
      const { device, sidecar, token, fields } = await start(transport, {}, { status_codes: codes })
      expect((await passUntil(sidecar.clock, sidecar.request({ token, body: body(MOST) }))).status).toBe(200)
      expect(bodyBytesAt(device)).toBe(MOST)
      const before = device.byteCount
      for (const method of ['POST', 'PUT', 'GET', 'DELETE'])
        expectError(
          await passUntil(sidecar.clock, sidecar.request({ token, method, body: body(MOST + 1) })),
          status,
          'invalid_request',
        )
      const connection = await sidecar.connect()
      const asking = [...fields, 'Expect', '100-continue', 'Content-Length', '9007199254740']
      const exchange = connection.start({ method: 'POST', fields: asking, open: true })
      expect((await exchange.head).status).toBe(status)
      expect(exchange.informational).toEqual([])
      connection.close()
      expect(device.byteCount).toBe(before)
      expect(await sidecar.metric('postern_refusals_total', { reason: 'body_too_large' })).toBe(5)
      await expectUnharmed(sidecar, token)
    }
  })

  it.each(['strict', 'tolerant'])(
    'H304 a body without a length is cut off before it passes the bound, and its connection to the device closes (parser: %s)',
    async (parser) => {
      const { device, whole, sidecar, token } = await start(transport, { parser, buffer_uploads: 'off' })
      const exactly = [...Array<string>(MOST - 1).fill(MARK), MARK]
      expect((await passUntil(sidecar.clock, sidecar.request({ token, body: exactly }))).status).toBe(200)
      expect(device.requests[0]?.body).toHaveLength(MOST)
      expect(device.requests[0]?.header('Transfer-Encoding')).toBe('chunked')
      const refused = await passUntil(
        sidecar.clock,
        sidecar.request({ token, path: '/longer', body: [...exactly, MARK] }),
      )
      expectError(refused, 413, 'invalid_request')
      expect(bodyBytesAt(device)).toBeLessThanOrEqual(2 * MOST)
      await expect.poll(() => whole).toEqual([true, false])
      await expectUnharmed(sidecar, token)
    },
  )

  it('H304 nothing reaches the device of a body that passes the bound while it is collected', async () => {
    for (const buffering of [{}, { buffer_uploads: '1MiB' }, { version: '1.0' }]) {
      const { device, sidecar, token, fields } = await start(transport, buffering)
      expect(
        (await passUntil(sidecar.clock, sidecar.request({ token, body: [body(MOST - 1), MARK] }))).status,
      ).toBe(200)
      expect(device.requests[0]?.header('Content-Length')).toBe(String(MOST))
      const before = device.byteCount
      expectError(
        await passUntil(sidecar.clock, sidecar.request({ token, body: [body(MOST), MARK] })),
        413,
        'invalid_request',
      )
      // The client has not ended its body.
      const connection = await sidecar.connect()
      const exchange = connection.start({ method: 'POST', fields, open: true })
      exchange.write(body(MOST + 1))
      expect((await exchange.head).status).toBe(413)
      connection.close()
      expect(device.byteCount).toBe(before)
      await expectUnharmed(sidecar, token)
    }
  })

  it('H304 above what buffer_uploads: auto collects, the rest is cut off at the bound', async () => {
    const most = 1024 ** 2 + 256 * 1024
    const { device, whole, sidecar, token } = await start(transport, { max_body: most })
    const pieces = [Buffer.alloc(1024 ** 2, MARK), Buffer.alloc(256 * 1024, MARK)]
    expect((await passUntil(sidecar.clock, sidecar.request({ token, body: pieces }))).status).toBe(200)
    expect(device.requests[0]?.body).toHaveLength(most)
    expectError(
      await passUntil(sidecar.clock, sidecar.request({ token, body: [...pieces, MARK] })),
      413,
      'invalid_request',
    )
    await expect.poll(() => whole).toEqual([true, false])
    expect(bodyBytesAt(device)).toBeLessThanOrEqual(2 * most)
  })
})

describeProtocols('upstream.max_body, what follows from it', (transport) => {
  it('H304 cuts the response that the device has begun, and says why', async () => {
    const { device, whole, sidecar, fields } = await start(transport, { buffer_uploads: 'off' })
    device.handle((request, response) => {
      request.on('data', (piece: Buffer) => response.write(piece)).on('error', () => {})
      request.once('close', () => whole.push(request.complete))
    })
    const exchange = (await sidecar.connect()).start({ method: 'POST', path: '/echo', fields, open: true })
    exchange.write(body(MOST))
    await passUntil(sidecar.clock, exchange.waitFor(body(MOST)))
    exchange.write(MARK)
    await brokenBy(exchange)
    await expect.poll(() => whole).toEqual([false])
    expect(bodyBytesAt(device)).toBe(MOST)
    await expect.poll(() => accessLines(sidecar).filter(({ path }) => path === '/echo')).toHaveLength(1)
    expect(accessLines(sidecar).find(({ path }) => path === '/echo')).toMatchObject({
      status: 200,
      ended_for: 'body-too-large',
    })
    expect((await explained(sidecar, '/echo')).Response).toMatch(/the body passed upstream\.max_body/)
    expect(await sidecar.metric('postern_requests_ended_total', { reason: 'body_too_large' })).toBe(1)
  })

  it('H305 with enforce: false both go on, counted and logged as what would be refused', async () => {
    const { device, sidecar, token } = await start(transport, { buffer_uploads: 'off' }, { enforce: false })
    const pieces = [body(MOST), MARK, MARK]
    for (const [path, sent] of [
      ['/length', body(MOST + 2)],
      ['/pieces', pieces],
    ] as const)
      expect((await passUntil(sidecar.clock, sidecar.request({ token, path, body: sent }))).status).toBe(200)
    expect(device.requests.map((request) => request.body?.length)).toEqual([MOST + 2, MOST + 2])
    expect(await sidecar.metric('postern_refusals_total', { reason: 'body_too_large' })).toBe(2)
    for (const path of ['/length', '/pieces']) {
      expect(accessLines(sidecar).find((line) => line.path === path)).toMatchObject({
        status: 200,
        would_refuse: 'body-too-large',
      })
      expect((await explained(sidecar, path)).Decision).toMatch(
        /With enforce: true the refusal would be "body-too-large": The body is longer than upstream\.max_body/,
      )
    }
  })

  it('H303 each service has its own bound, whatever the spelling of the path', async () => {
    const other = await startDevice()
    const routes = {
      '/cam/': { url: other.url, max_body: '1MiB' },
      '/small/': { url: other.url, max_body: '10B' },
    }
    const { sidecar, token } = await start(transport, { routes })
    const status = async (path: string, size: number): Promise<number> =>
      (await passUntil(sidecar.clock, sidecar.request({ token, path, body: body(size) }))).status
    expect(await status('/cam/x', 5000)).toBe(200)
    expect([await status('/small/x', 10), await status('/small/x', 11)]).toEqual([200, 413])
    for (const path of ['/sm%61ll/x', '/cam/../small/x', '//small/x', '/cam/..%2fsmall/x'])
      expect([path, await status(path, 11)]).toEqual([path, 400])
    expect(await status('/', MOST + 1)).toBe(413)
    expect((await explained(sidecar, '/small/x')).Decision).toMatch(
      /Then refused with 413, body-too-large\. /,
    )
  })

  it('H304 with the login of Postern, a body below the bound is sent again, and a longer one is cut off', async () => {
    const locked = await startDigestDevice()
    const file = join(temporaryDirectory(), 'device-password')
    writeFileSync(file, locked.password, { mode: 0o600 })
    const auth = { kind: 'digest', user: locked.user, password: { file } }
    const upstream = { max_body: MOST, buffer_uploads: 'off', auth }
    const sidecar = await startSidecar({
      ...{ transport, device: locked.device },
      config: { status_codes: 'http', upstream },
    })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    locked.nonce = 'another'
    expect(
      (
        await passUntil(
          sidecar.clock,
          sidecar.request({ token, path: '/short', body: [body(MOST - 1), MARK] }),
        )
      ).status,
    ).toBe(200)
    expect(locked.device.requests.filter(({ target }) => target === '/short')).toHaveLength(2)
    expect(
      (await passUntil(sidecar.clock, sidecar.request({ token, body: [body(MOST), MARK] }))).status,
    ).toBe(413)
    expect((await sidecar.request({ token })).status).toBe(200)
  })
})

describe('upstream.max_body', () => {
  const request = (token: string, ...lines: string[]): string =>
    headOf('POST /first HTTP/1.1', 'Host: d', `Authorization: Bearer ${token}`, ...lines)
  const second = headOf('POST /second HTTP/1.1', 'Host: d', 'Content-Length: 2')

  it('H304 counts what chunks hold, not their sizes, extensions and trailers', async () => {
    for (const buffer_uploads of ['off', 'auto']) {
      const { device, sidecar, token } = await start('http1', { max_body: '4B', buffer_uploads })
      const chunk = `1;${'x'.repeat(200)}\r\n${MARK}\r\n`
      const client = await rawConnection(sidecar.url)
      client.write(request(token, 'Transfer-Encoding: chunked'))
      client.write(`${chunk.repeat(4)}0000\r\nX-Trailer: ${'x'.repeat(200)}\r\n\r\n`)
      expect(await passUntil(sidecar.clock, client.waitFor('from the device'))).toMatch(/^HTTP\/1\.1 200 /)
      expect(device.requests[0]?.body?.toString()).toBe(body(4))
      client.forget()
      client.write(request(token, 'Transfer-Encoding: chunked') + chunk.repeat(5))
      expect(await passUntil(sidecar.clock, client.closed)).toMatch(/^HTTP\/1\.1 413 /)
      expect(bodyBytesAt(device)).toBeLessThanOrEqual(8)
    }
  })

  it('H303 what follows an unread body on its connection is never read as a request', async () => {
    const { device, sidecar, token } = await start('http1')
    const auth = `Authorization: Bearer ${token}`
    const smuggled = headOf('POST /smuggled HTTP/1.1', 'Host: d', auth, 'Content-Length: 0')
    // So many bytes do not arrive at once, and are too many to skip. A short body is skipped, and the next request is one.
    for (const [size, seen] of [
      [500_000, []],
      [2000, ['/next']],
    ] as const) {
      const client = await rawConnection(sidecar.url)
      client.write(request(token, `Content-Length: ${size}`) + smuggled.repeat(size).slice(0, size))
      client.write(headOf('GET /next HTTP/1.1', 'Host: d', auth, 'Connection: close'))
      const statuses = responsesIn(await client.closed).map(({ status }) => status)
      expect(statuses).toEqual([413, ...seen.map(() => 200)])
      expect(device.requests.map(({ target }) => target)).toEqual(seen)
    }
  })

  it('H303 a client that waits for 100 gets the refusal, and its connection closes', async () => {
    const { device, sidecar, token } = await start('http1')
    const client = await rawConnection(sidecar.url)
    client.write(request(token, `Content-Length: ${MOST + 1}`, 'Expect: 100-continue'))
    client.write(second)
    const [response, ...more] = responsesIn(await client.closed)
    expect([response?.status, response?.header('Connection'), more]).toEqual([413, 'close', []])
    expect(device.byteCount).toBe(0)
  })

  it('H304 a length over HTTP/2 that is not that of the body helps no one', async () => {
    const { device, sidecar, token } = await start('h2', { buffer_uploads: 'off' })
    const session = await rawSession(sidecar.url)
    const field = ['authorization', `Bearer ${token}`, 'content-length', '5']
    const head = requestFields(field, { ':method': 'PUT', ':path': '/lies' })
    session.send(headers(1, head, false), frame(FRAME.data, FLAG.endStream, 1, Buffer.alloc(MOST + 1, MARK)))
    expect(await session.outcome(1).catch(() => 'closed')).not.toBe('end')
    expect(bodyBytesAt(device)).toBeLessThanOrEqual(5)
    session.raw.socket.destroy()
    await expectUnharmed(sidecar, token)
  })

  it('H304 a device that reads nothing more gets no later request on the connection of a body that was cut', async () => {
    const heads: string[] = []
    const device = await startRawDevice(async (peer) => {
      for (;;) {
        heads.push(await nextRequest(peer))
        peer.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      }
    })
    const upstream = { max_body: '10B', buffer_uploads: 'off', max_in_flight: 1 }
    const sidecar = await startSidecar({ device, config: { upstream } })
    const token = await sidecar.token()
    // The device answers before the body is whole, so the client has its response, and the connection is not used again.
    await passUntil(sidecar.clock, sidecar.request({ token, body: ['12345', '67890', 'x'] })).catch(() => {})
    expect((await sidecar.request({ token, path: '/after' })).text).toBe('ok')
    expect(heads.at(-1)).toMatch(/^GET \/after /)
    expect(device.peers.length).toBe(2)
  })

  it("H303 leaves Postern's own endpoints and its own requests to the device alone", async () => {
    const { sidecar, token } = await start('http1', { max_body: '1B' })
    expect((await sidecar.grant()).token_type).toBe('Bearer')
    expect((await passUntil(sidecar.clock, sidecar.request({ token, body: '' }))).status).toBe(200)
    expect((await passUntil(sidecar.clock, sidecar.request({ token, body: [''] }))).status).toBe(200)
  })

  it('H303 a reload changes the bound of the main service', async () => {
    const site = await prepareSite()
    const served = await site.serve()
    const { access_token: token } = await served.grant()
    const upload = async (): Promise<number> =>
      (await served.request({ fields: ['Authorization', `Bearer ${token}`], body: body(2000) })).status
    expect(await upload()).toBe(200)
    site.configure({ upstream: { max_body: '1KiB' } })
    await expect.poll(upload).toBe(400)
  })

  it('H303 is off by default, and holds for each service that says no other', () => {
    const sets = ['upstream.url=http://d', 'password.file=p', 'upstream.max_body=64KiB']
    const { upstream } = loadConfig({ sets: [...sets, 'upstream.routes./a/.url=http://e'] })
    const bounds = servicesOf(upstream).map(({ service }) => service.maxBody)
    expect([loadConfig({ sets: sets.slice(0, 2) }).upstream.maxBody, ...bounds]).toEqual([
      'off',
      65_536,
      65_536,
    ])
  })
})
