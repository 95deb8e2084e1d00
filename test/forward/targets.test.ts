import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

async function secureDevice(): Promise<{ device: Device; caFile: string }> {
  const certificate = await makeCertificate()
  return { device: await startDevice(undefined, { tls: certificate }), caFile: certificate.certFile }
}

/** Sends a request through a sidecar; `echoed` sends a message through a WebSocket. */
async function tryBoth(
  device: Device,
  upstream: YamlPart,
): Promise<{ sidecar: TestSidecar; response: Response; echoed: () => Promise<string> }> {
  const sidecar = await startSidecar({
    device,
    config: { upstream: { ...upstream, response_timeout: '5s' } },
  })
  const token = await sidecar.token()
  return {
    sidecar,
    response: await sidecar.request({ token, path: '/a%2fb', body: 'up' }),
    async echoed() {
      const { socket } = await openWebSocket(sidecar.url, { token })
      const message = new Promise<string>((resolve) =>
        socket.once('message', (data) => resolve(String(data))),
      )
      socket.send('hello')
      return message
    },
  }
}

const faultOf = (fields: readonly string[]): string | undefined => fields[fields.indexOf('Proxy-Status') + 1]

describe('a device that speaks HTTPS', () => {
  it('is trusted with a certificate of the configured CA, for requests and WebSockets', async () => {
    const { device, caFile } = await secureDevice()
    acceptWebSockets(device)
    const { response, echoed } = await tryBoth(device, { tls: { ca: caFile } })
    expect([response.status, response.text]).toEqual([200, 'from the device'])
    expect(device.requests[0]).toMatchObject({ target: '/a%2fb', version: '1.1' })
    expect(device.requests[0]?.body?.toString()).toBe('up')
    expect(await echoed()).toBe('hello')
  })

  it('is trusted with any certificate if insecure is set, for requests and WebSockets', async () => {
    const { device } = await secureDevice()
    acceptWebSockets(device)
    const { response, echoed } = await tryBoth(device, { tls: { insecure: true } })
    expect(response.status).toBe(200)
    expect(await echoed()).toBe('hello')
  })

  it.each([
    ['its certificate is self-signed', async () => ({})],
    [
      'its certificate is from another CA than the configured one',
      async () => ({ tls: { ca: (await makeCertificate()).certFile } }),
    ],
  ])('H353 gets no request and no upgrade when %s', async (_name, upstream) => {
    const { device } = await secureDevice()
    const { upgrades } = acceptWebSockets(device)
    const { sidecar, response } = await tryBoth(device, await upstream())
    expectError(response, 500, 'upstream_unavailable')
    expect(response.header('Proxy-Status')).toBe('postern; error=tls_certificate_error')
    const refused = await refusedWebSocket(sidecar.url, { token: await sidecar.token() })
    expect([refused.status, faultOf(refused.fields)]).toEqual([500, 'postern; error=tls_certificate_error'])
    expect(device.requests).toHaveLength(0)
    expect(upgrades).toHaveLength(0)
    expect(device.byteCount).toBe(0)
  })

  it('H353 gets no request when its certificate is for another name', async () => {
    const { device, caFile } = await secureDevice()
    // The certificate names 127.0.0.1 and localhost. Another notation of 127.0.0.1 matches neither.
    const other = { url: device.url.replace('127.0.0.1', '[::ffff:127.0.0.1]') }
    const sidecar = await startSidecar({ device: other, config: { upstream: { tls: { ca: caFile } } } })
    const response = await sidecar.request({ token: await sidecar.token() })
    expectError(response, 500, 'upstream_unavailable')
    expect(response.header('Proxy-Status')).toBe('postern; error=tls_certificate_error')
    expect(device.requests).toHaveLength(0)
  })

  it('C23 H353 is verified against `upstream.url`, not against the Host of a WebSocket client', async () => {
    const { device, caFile } = await secureDevice()
    const { upgrades } = acceptWebSockets(device)
    const config = { upstream: { tls: { ca: caFile } } }
    const right = await startSidecar({ device, config })
    const headers = { Host: 'not.in.the.certificate' }
    const { response } = await openWebSocket(right.url, { token: await right.token(), headers })
    expect([response.statusCode, upgrades[0]?.headers.host]).toEqual([101, 'not.in.the.certificate'])

    const wrong = await startSidecar({
      device: { url: device.url.replace('127.0.0.1', '[::ffff:127.0.0.1]') },
      config,
    })
    const refused = await refusedWebSocket(wrong.url, {
      token: await wrong.token(),
      headers: { Host: 'localhost' },
    })
    expect([refused.status, faultOf(refused.fields)]).toEqual([500, 'postern; error=tls_certificate_error'])
    expect(upgrades).toHaveLength(1)
  })

  it.each<[string, (pem: string) => string, string]>([
    ['no bytes', () => '', 'is empty'],
    ['a truncated second certificate', (pem) => pem + pem.slice(0, 300), 'is incomplete'],
    ['a damaged second certificate', (pem) => pem + pem.replace(/\n..../, '\n@@@@'), '2 of 2'],
    ['other text', () => 'no certificate', 'holds no certificate in PEM'],
    ['DER', (pem) => String(Buffer.from(pem.replace(/-----.*-----/g, ''), 'base64')), 'must be PEM'],
  ])(
    'with %s in `upstream.tls.ca` prevents the start, with the key and the file in the message',
    async (_what, spoil, says) => {
      const { cert, certFile } = await makeCertificate()
      writeFileSync(certFile, spoil(cert))
      const config = { upstream: { tls: { ca: certFile } } }
      const message = startSidecar({ device: { url: 'https://127.0.0.1:9' }, config }).then(
        () => 'it started',
        (error: Error) => error.message,
      )
      expect(await message).toMatch(/^upstream\.tls\.ca: /)
      expect(await message).toContain(certFile)
      expect(await message).toContain(says)
    },
  )

  it.each(['strict', 'tolerant'])(
    'gets the host name of `upstream.url` as SNI, but no address, with parser: %s',
    async (parser) => {
      const certificate = await makeCertificate()
      const names: string[] = []
      const SNICallback = (name: string, done: (error: null) => void): void => {
        names.push(name)
        done(null)
      }
      const notes = { ...certificate, SNICallback }
      const device = await startDevice(undefined, { tls: notes })
      acceptWebSockets(device)
      const tls = { ca: certificate.certFile }
      await (await tryBoth(device, { parser, tls })).echoed()
      expect(names).toEqual([])
      const { response, echoed } = await tryBoth(device, {
        parser,
        tls,
        url: device.url.replace('127.0.0.1', 'localhost'),
      })
      expect([response.status, await echoed()]).toEqual([200, 'hello'])
      // The upgrade resumes the TLS session of the request, for which a server does not ask again.
      expect(new Set(names)).toEqual(new Set(['localhost']))
    },
  )

  it.each(['strict', 'tolerant'])(
    'gets HTTP/1.1 even if it offers HTTP/2, with parser: %s',
    async (parser) => {
      const certificate = await makeCertificate()
      const offers = { ...certificate, ALPNProtocols: ['h2', 'http/1.1'] }
      const device = await startDevice(undefined, { tls: offers })
      const { response } = await tryBoth(device, { parser, tls: { ca: certificate.certFile } })
      expect([response.status, device.requests[0]?.version]).toEqual([200, '1.1'])
    },
  )

  it('is unavailable if it speaks cleartext', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ device: { url: device.url.replace('http:', 'https:') } })
    const token = await sidecar.token()
    // It may reset the connection before its words are read. A device that does so is asked again after a pause.
    const response = await passUntil(sidecar.clock, sidecar.request({ token }))
    expectError(response, 500, 'upstream_unavailable')
    expect(response.header('Proxy-Status')).toMatch(
      /^postern; error=(?:tls_protocol_error|connection_terminated)$/,
    )
    const refused = await passUntil(sidecar.clock, refusedWebSocket(sidecar.url, { token }))
    expect(refused.status).toBe(500)
    expect(device.requests).toHaveLength(0)
  })

  it('has its redirects rewritten to the public origin', async () => {
    const { device, caFile } = await secureDevice()
    device.handle((_request, response) => {
      response.writeHead(302, { Location: `${device.url}/next` })
      response.end()
    })
    const { response, sidecar } = await tryBoth(device, { tls: { ca: caFile } })
    expect(response.header('Location')).toBe(`${sidecar.url}/next`)
  })

  it('prevents the start with a message if the CA file cannot be read', async () => {
    const { device } = await secureDevice()
    for (const [name, content] of [
      ['missing.pem', undefined],
      ['garbage.pem', 'not a certificate'],
    ] as const) {
      const ca = join(temporaryDirectory(), name)
      if (content !== undefined) writeFileSync(ca, content)
      const outcome = await startSidecar({ device, config: { upstream: { tls: { ca } } } }).then(
        () => 'started',
        (error: Error) => error.message,
      )
      expect(outcome).toContain(ca)
    }
  })
})

describe('a device on a Unix socket', () => {
  it('serves requests and WebSockets, and gets the Host of the client', async () => {
    const device = await startDevice(undefined, { path: join(temporaryDirectory(), 'device.sock') })
    acceptWebSockets(device)
    const { sidecar, response, echoed } = await tryBoth(device, {})
    expect([response.status, response.text]).toEqual([200, 'from the device'])
    expect(device.requests[0]?.header('Host')).toBe(new URL(sidecar.url).host)
    expect(await echoed()).toBe('hello')
  })

  it('is unavailable if the socket does not exist or nothing listens on it', async () => {
    const path = join(temporaryDirectory(), 'device.sock')
    const sidecar = await startSidecar({ device: { url: `http+unix:${path}` } })
    const token = await sidecar.token()
    const missing = await sidecar.request({ token })
    expectError(missing, 500, 'upstream_unavailable')
    expect(missing.header('Proxy-Status')).toBe('postern; error=destination_unavailable')
    const refused = await refusedWebSocket(sidecar.url, { token })
    expect([refused.status, faultOf(refused.fields)]).toEqual([500, 'postern; error=destination_unavailable'])
    const device = await startDevice(undefined, { path })
    expect((await sidecar.request({ token })).status).toBe(200)
    await device.stop()
    // A device that has just worked is asked again after a pause.
    expectError(await passUntil(sidecar.clock, sidecar.request({ token })), 500, 'upstream_unavailable')
  })
})

it('C22 the zone of an IPv6 address is for this machine: the device does not see it in Host', async () => {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.host)
    response.end('ok')
  }).listen(0, '::1')
  closeLater(() => void server.close())
  await once(server, 'listening')
  // The cast holds because the server listens on TCP.
  const { port } = server.address() as AddressInfo
  const url = `http://[::1%25lo]:${port}`
  const sidecar = await startSidecar({ config: { upstream: { url, host: 'target' } } })
  expect((await sidecar.request({ token: await sidecar.token() })).text).toBe('ok')
  expect(seen).toEqual([`[::1]:${port}`])
})
