import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { type DeviceRequest, startDevice } from '../support/device.ts'
import type { Request } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { accessLines } from '../support/records.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'

const trusting = { listen: { trusted_proxies: ['127.0.0.1'] } }

/** Sends a request with a good token, and returns the request that reached the device. */
async function forwardedRequest(sidecar: TestSidecar, request: Request): Promise<DeviceRequest> {
  const before = sidecar.device.requests.length
  const response = await sidecar.request({ token: await sidecar.token(), ...request })
  expect(response.status, response.text).toBe(200)
  expect(sidecar.device.requests).toHaveLength(before + 1)
  return sidecar.device.requests[before] as DeviceRequest // `toHaveLength` has just checked that it is there
}

/** Waits until the log has `count` access lines, and returns them. */
async function waitForAccessLines(sidecar: TestSidecar, count: number): Promise<Record<string, unknown>[]> {
  await expect.poll(() => accessLines(sidecar).length).toBe(count)
  return accessLines(sidecar)
}

describeProtocols('C22 Request fields', (transport) => {
  const secure = transport !== 'http1'
  const version = transport === 'h2' ? '2' : '1.1'

  it('C22 the device gets the fields that were sent and exactly those that a proxy adds', async () => {
    const sidecar = await startSidecar({ transport })
    const seen = await forwardedRequest(sidecar, {
      fields: ['Accept', '*/*', 'X-Own', 'yes'],
      authority: 'device.example',
    })
    const names = seen.fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
    expect(names.sort()).toEqual([
      'accept',
      'connection',
      'host',
      'via',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-forwarded-port',
      'x-forwarded-proto',
      'x-own',
      'x-request-id',
    ])
    expect(seen.header('Connection')).toBe('keep-alive')
    expect(seen.header('Host')).toBe('device.example')
    expect(seen.header('X-Forwarded-For')).toBe('127.0.0.1')
    expect(seen.header('X-Forwarded-Proto')).toBe(secure ? 'https' : 'http')
    expect(seen.header('X-Forwarded-Host')).toBe('device.example')
    expect(seen.header('X-Forwarded-Port')).toBe(new URL(sidecar.url).port)
    expect(seen.header('Via')).toBe(`${version} postern`)
    expect(seen.header('X-Request-Id')).toMatch(/^[\w-]{16,128}$/)
  })

  it('C22 Authorization does not reach the device, in any casing and also if Connection names it', async () => {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    await sidecar.request({ fields: ['aUTHORIZATION', `bEARER   ${token}`] })
    if (transport !== 'h2') await sidecar.request({ token, fields: ['Connection', 'authorization'] })
    for (const seen of sidecar.device.requests) expect(seen.header('Authorization')).toBeUndefined()
    expect(sidecar.device.requests.length).toBeGreaterThan(0)
    expect(sidecar.device.bytes.includes(token)).toBe(false)
  })

  it('C22 Proxy-Authorization and the other Proxy fields do not reach the device', async () => {
    const sidecar = await startSidecar({ transport })
    const seen = await forwardedRequest(sidecar, {
      fields: [
        'Proxy-Authorization',
        'Basic eDp5',
        'Proxy-Authenticate',
        'Basic',
        'Proxy',
        'http://evil.example',
      ],
    })
    expect(seen.fields.join('\n')).not.toMatch(/^proxy/im)
  })

  it('C22 the forwarding fields of an untrusted peer are dropped and replaced', async () => {
    const sidecar = await startSidecar({ transport })
    const seen = await forwardedRequest(sidecar, {
      authority: 'device.example',
      fields: [
        ...['X-Forwarded-For', '192.0.2.66', 'x-forwarded-for', '192.0.2.67', 'X-Forwarded-Proto', 'gopher'],
        ...['X-Forwarded-Host', 'evil.example', 'X-Forwarded-Port', '66', 'X-Forwarded-Prefix', '/evil'],
        ...['X-Forwarded-Ssl', 'evil', 'X-Forwarded-Server', 'evil', 'X-Forwarded-User', 'admin-evil'],
        ...['Forwarded', 'for=192.0.2.68;host=evil.example', 'X-Real-IP', '192.0.2.69'],
        ...['X-Request-Id', 'chosen-by-evil'],
      ],
    })
    expect(seen.fields.join('\n')).not.toMatch(/evil|gopher|192\.0\.2\.|^66$/m)
    expect(seen.values('X-Forwarded-For')).toEqual(['127.0.0.1'])
    expect(seen.values('X-Forwarded-Proto')).toEqual([secure ? 'https' : 'http'])
    expect(seen.values('X-Forwarded-Host')).toEqual(['device.example'])
    expect(seen.values('X-Forwarded-Port')).toEqual([new URL(sidecar.url).port])
    expect(seen.values('Forwarded')).toEqual([])
    expect(seen.values('X-Real-IP')).toEqual([])
  })

  it('C22 the forwarding fields of a trusted peer are kept, and its address is appended to X-Forwarded-For', async () => {
    const sidecar = await startSidecar({ transport, config: trusting })
    const seen = await forwardedRequest(sidecar, {
      fields: [
        ...['X-Forwarded-For', '192.0.2.1', 'X-Forwarded-For', '192.0.2.2'],
        ...['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'public.example', 'X-Forwarded-Port', '443'],
        ...['X-Forwarded-Prefix', '/p', 'Forwarded', 'for=192.0.2.1', 'X-Request-Id', 'from-the-proxy_1'],
      ],
    })
    expect(seen.values('X-Forwarded-For')).toEqual(['192.0.2.1, 192.0.2.2, 127.0.0.1'])
    expect(seen.values('X-Forwarded-Proto')).toEqual(['https'])
    expect(seen.values('X-Forwarded-Host')).toEqual(['public.example'])
    expect(seen.values('X-Forwarded-Port')).toEqual(['443'])
    expect(seen.values('X-Forwarded-Prefix')).toEqual(['/p'])
    expect(seen.values('Forwarded')).toEqual(['for=192.0.2.1'])
    expect(seen.values('X-Request-Id')).toEqual(['from-the-proxy_1'])
  })

  it('C22 forwarding fields that a trusted peer does not send are added', async () => {
    const sidecar = await startSidecar({ transport, config: trusting })
    const seen = await forwardedRequest(sidecar, { authority: 'device.example' })
    expect(seen.values('X-Forwarded-For')).toEqual(['127.0.0.1'])
    expect(seen.values('X-Forwarded-Proto')).toEqual([secure ? 'https' : 'http'])
    expect(seen.values('X-Forwarded-Host')).toEqual(['device.example'])
    expect(seen.values('X-Forwarded-Port')).toEqual([new URL(sidecar.url).port])
  })

  it('C22 every request has its own X-Request-Id', async () => {
    const sidecar = await startSidecar({ transport })
    const token = await sidecar.token()
    for (let i = 0; i < 20; i += 1) await sidecar.request({ token })
    expect(new Set(sidecar.device.requests.map((seen) => seen.header('X-Request-Id'))).size).toBe(20)
  })

  it("C22 the access line, the forwarded request and the sidecar's own response have the same request id", async () => {
    const sidecar = await startSidecar({ transport })
    const { access_token: token } = await sidecar.grant()
    const sent = 'chosen-by-the-client'
    await sidecar.request({ token, path: '/forwarded', fields: ['X-Request-Id', sent] })
    const responses = [
      await sidecar.request({ path: '/refused', fields: ['X-Request-Id', sent] }),
      await sidecar.postToken({ grant_type: 'password', password: 'wrong' }, { path: '/oauth/token?wrong' }),
      await sidecar.postToken({ grant_type: 'password', password: PASSWORD }),
    ]
    const lines = await waitForAccessLines(sidecar, 5)
    const [granted, forwarded, ...own] = lines
    expect(forwarded).toMatchObject({ path: '/forwarded', grant: expect.stringMatching(/^[0-9a-f]{16}$/) })
    expect(forwarded?.request_id).toBe(sidecar.device.requests.at(-1)?.header('X-Request-Id'))
    expect(own.map((line) => line.request_id)).toEqual(
      responses.map((response) => response.header('X-Request-Id')),
    )
    expect(own.map((line) => line.grant)).toEqual([
      undefined,
      undefined,
      expect.stringMatching(/^[0-9a-f]{16}$/),
    ])
    const ids = lines.map((line) => String(line.request_id))
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set(ids).size).toBe(5)
    expect(granted?.path).toBe('/oauth/token')
  })

  it("C22 a trusted peer's request id is in the access line and on a refusal", async () => {
    const sidecar = await startSidecar({ transport, config: trusting })
    const response = await sidecar.request({ fields: ['X-Request-Id', 'from-the-proxy_1'] })
    expect([response.status, response.values('X-Request-Id')]).toEqual([401, ['from-the-proxy_1']])
    expect(await waitForAccessLines(sidecar, 1)).toMatchObject([
      { request_id: 'from-the-proxy_1', status: 401 },
    ])
  })

  it('C22 Via is appended behind the entries of earlier proxies', async () => {
    const sidecar = await startSidecar({ transport })
    const seen = await forwardedRequest(sidecar, { fields: ['Via', '1.0 first', 'via', '1.1 second (x)'] })
    expect(seen.values('Via').join(', ')).toBe(`1.0 first, 1.1 second (x), ${version} postern`)
  })

  it('C22 Host is kept by default', async () => {
    const sidecar = await startSidecar({ transport })
    for (const authority of ['Device.Example:8443', '[2001:db8::1]:99']) {
      const seen = await forwardedRequest(sidecar, { authority })
      expect(seen.values('Host')).toEqual([authority])
      expect(seen.values('X-Forwarded-Host')).toEqual([authority])
    }
  })

  it.each(transport === 'http1' ? ['target', 'a-name.local:8080'] : ['target'])(
    'C22 upstream.host replaces Host: %s',
    async (host) => {
      const sidecar = await startSidecar({ transport, config: { upstream: { host } } })
      const seen = await forwardedRequest(sidecar, { authority: 'device.example' })
      expect(seen.values('Host')).toEqual([host === 'target' ? new URL(sidecar.device.url).host : host])
      expect(seen.values('X-Forwarded-Host'), 'the Host of the client').toEqual(['device.example'])
    },
  )

  it("C22 upstream.headers replaces the client's fields of the same names", async () => {
    const file = join(temporaryDirectory(), 'secret')
    writeFileSync(file, 'Basic c2VjcmV0OnNlY3JldA==\n')
    const sidecar = await startSidecar({
      transport,
      config: {
        upstream: { headers: { Authorization: { file }, 'X-Gateway': 'postern', 'User-Agent': 'fixed/1' } },
      },
    })
    const seen = await forwardedRequest(sidecar, {
      fields: ['x-gateway', 'forged', 'X-GATEWAY', 'forged', 'User-Agent', 'mine', 'X-Kept', 'yes'],
    })
    expect(seen.values('Authorization')).toEqual(['Basic c2VjcmV0OnNlY3JldA=='])
    expect(seen.values('X-Gateway')).toEqual(['postern'])
    expect(seen.values('User-Agent')).toEqual(['fixed/1'])
    expect(seen.values('X-Kept')).toEqual(['yes'])
    expect(sidecar.logLines().join('\n')).not.toContain('c2VjcmV0')
  })

  it('C22 Cookie fields of HTTP/2 are joined into one, and those of HTTP/1 are kept', async () => {
    const sidecar = await startSidecar({ transport })
    const seen = await forwardedRequest(sidecar, {
      fields: ['Cookie', 'a=1; b=2', 'X-Between', 'x', 'cookie', 'c=3'],
    })
    expect(seen.values('Cookie')).toEqual(transport === 'h2' ? ['a=1; b=2; c=3'] : ['a=1; b=2', 'c=3'])
  })
})

describeTransports(
  'C22 Request fields in HTTP/1',
  (transport) => {
    /** Sends a hand-written head with a good token, and returns the request that reached the device. */
    async function forwardedHead(sidecar: TestSidecar, ...lines: string[]): Promise<DeviceRequest> {
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(
        `GET / HTTP/1.1\r\nHost: device.example\r\nAuthorization: Bearer ${token}\r\n${lines.join('\r\n')}\r\n\r\n`,
      )
      await raw.waitFor('\r\n\r\n')
      expect(raw.received).toMatch(/^HTTP\/1\.1 200 /)
      return sidecar.device.requests.at(-1) as DeviceRequest // the 200 proves that it is there
    }

    it('C22 hop-by-hop fields do not reach the device', async () => {
      const sidecar = await startSidecar({ transport })
      const seen = await forwardedHead(
        sidecar,
        'Keep-Alive: timeout=99',
        'TE: trailers, deflate',
        'Trailer: X-Checksum',
        'Proxy-Connection: keep-alive',
        'Proxy-Authorization: Basic eDp5',
        'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
        'Connection: keep-alive',
        'X-Kept: yes',
      )
      for (const name of [
        'Keep-Alive',
        'TE',
        'Trailer',
        'Proxy-Connection',
        'Proxy-Authorization',
        'HTTP2-Settings',
      ]) {
        expect(seen.values(name), name).toEqual([])
      }
      expect(seen.values('Upgrade')).toEqual([])
      expect(seen.header('X-Kept')).toBe('yes')
    })

    it('C22 a request with Upgrade but without Connection is an ordinary request', async () => {
      const sidecar = await startSidecar({ transport })
      const seen = await forwardedHead(sidecar, 'Upgrade: websocket', 'X-Kept: yes')
      expect(seen.values('Upgrade')).toEqual([])
      expect(seen.header('X-Kept')).toBe('yes')
    })

    it('C22 the fields that Connection names do not reach the device, in any casing and over several fields', async () => {
      const sidecar = await startSidecar({ transport })
      const seen = await forwardedHead(
        sidecar,
        'X-One: 1',
        'X-TWO: 2',
        'X-Three: 3',
        'X-Four: 4',
        'Connection: keep-alive, x-one,X-Two',
        'Connection: , X-THREE ,',
      )
      expect(seen.fields.join('\n')).not.toMatch(/^X-(?:One|Two|Three)$/im)
      expect(seen.header('X-Four')).toBe('4')
      expect(seen.header('Connection')).toBe('keep-alive')
    })

    it('C22 the fields that the sidecar adds reach the device although Connection names them', async () => {
      const sidecar = await startSidecar({ transport, config: trusting })
      const seen = await forwardedHead(
        sidecar,
        'X-Forwarded-For: 192.0.2.1',
        'Via: 1.0 before',
        'Connection: X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, X-Forwarded-Port, Via, X-Request-Id, Host, Authorization, Content-Length',
      )
      expect(seen.header('Host')).toBe('device.example')
      expect(seen.header('X-Forwarded-For')).toBe('192.0.2.1, 127.0.0.1')
      expect(seen.header('X-Forwarded-Proto')).toBe(transport === 'tls' ? 'https' : 'http')
      expect(seen.header('X-Forwarded-Host')).toBe('device.example')
      expect(seen.header('Via')).toBe('1.0 before, 1.1 postern')
      expect(seen.header('X-Request-Id')).toBeDefined()
      expect(seen.header('Authorization')).toBeUndefined()
    })

    it('C22 a body stays framed although Connection names Content-Length or Transfer-Encoding', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      for (const framing of ['Content-Length', 'Transfer-Encoding']) {
        const response = await sidecar.request({
          token,
          fields: ['Connection', framing],
          body: framing === 'Content-Length' ? 'the body' : ['the ', 'body'],
        })
        expect(response.status).toBe(200)
        expect(sidecar.device.requests.at(-1)?.body?.toString()).toBe('the body')
      }
      expect(sidecar.device.requests).toHaveLength(2)
    })

    it('C22 the trailers of a request never become header fields', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(
        `POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nTransfer-Encoding: chunked\r\nTrailer: X-Forwarded-For\r\n\r\n` +
          '3\r\nabc\r\n0\r\nX-Forwarded-For: 192.0.2.66\r\nX-Sum: 7\r\n\r\n',
      )
      await raw.waitFor('from the device')
      expect(sidecar.device.requests[0]?.body?.toString()).toBe('abc')
      expect(sidecar.device.requests[0]?.values('X-Forwarded-For')).toEqual(['127.0.0.1'])
    })
  },
  ['http1', 'tls'],
)

it('H18 a look-alike of a field in upstream.headers does not reach the device', async () => {
  const device = await startDevice()
  const config = { upstream: { headers: { 'X-Device-Key': 'right' } } }
  const sidecar = await startSidecar({ device, config })
  const fields = ['X_Device_Key', 'evil', 'x-device_key', 'evil']
  expect((await sidecar.request({ token: await sidecar.token(), fields })).status).toBe(200)
  expect(JSON.stringify(device.requests[0]?.fields)).not.toContain('evil')
})
