import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import type { Response } from '../support/message.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { type ApiRequest, startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

/** A raw device that answers every request on a kept-alive connection with the same head. */
function answering(...lines: string[]) {
  return startRawDevice(async (peer) => {
    for (;;) {
      await peer.waitFor('\r\n\r\n')
      peer.forget()
      peer.write(`HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nContent-Length: 2\r\n\r\nok`)
    }
  })
}

describeProtocols('C22 Response fields', (transport) => {
  const scheme = transport === 'http1' ? 'http' : 'https'

  it("C22 the device's hop-by-hop fields and those that its Connection names do not reach the client", async () => {
    const device = await answering(
      'Connection: keep-alive, X-Private',
      'Connection: x-other',
      'Keep-Alive: timeout=77, max=3',
      'Proxy-Authenticate: Basic realm="x"',
      'Proxy-Connection: keep-alive',
      'Upgrade: h2c',
      'Trailer: X-Sum',
      'TE: gzip',
      'X-Private: 1',
      'X-Other: 2',
      'X-Public: 3',
    )
    const sidecar = await startSidecar({ transport, device })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect([response.status, response.text, response.header('X-Public')]).toEqual([200, 'ok', '3'])
    for (const name of [
      'X-Private',
      'X-Other',
      'Proxy-Authenticate',
      'Proxy-Connection',
      'Upgrade',
      'Trailer',
      'TE',
    ]) {
      expect(response.values(name), name).toEqual([])
    }
    expect(response.fields.join()).not.toContain('timeout=77')
    expect(response.values('Connection').join()).not.toMatch(/private|other/i)
    if (transport === 'h2') expect(response.values('Connection')).toEqual([])
  })

  it('C22 what the device says about its own address and network does not reach the client', async () => {
    const device = await answering(
      'Alt-Svc: h3=":443"; ma=86400',
      'aLT-sVC: h2="192.0.2.7:443"',
      'Alternate-Protocol: 443:npn-spdy/2',
      'NEL: {"report_to":"all","max_age":86400}',
      'Report-To: {"group":"all","max_age":86400,"endpoints":[{"url":"https://reports.example/"}]}',
      'Reporting-Endpoints: all="https://reports.example/"',
      'Server-Timing: db;dur=53',
      'Strict-Transport-Security: max-age=60',
    )
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    // The second head is a remembered one.
    for (let i = 0; i < 2; i += 1) {
      const response = await sidecar.request({ token })
      expect([response.status, response.text]).toEqual([200, 'ok'])
      for (const name of ['Alt-Svc', 'Alternate-Protocol', 'NEL'])
        expect(response.values(name), name).toEqual([])
      // Pages may report to the device's maker, and the others are about the device alone, or protect its users.
      for (const name of ['Report-To', 'Reporting-Endpoints', 'Server-Timing', 'Strict-Transport-Security'])
        expect(response.values(name), name).toHaveLength(1)
    }
  })

  it('C22 nor does it with an interim response', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      const hint = 'HTTP/1.1 103 Early Hints\r\nAlt-Svc: h3=":443"\r\nLink: </a>\r\n\r\n'
      peer.end(`${hint}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
    })
    const sidecar = await startSidecar({ transport, device })
    const { informational } = await sidecar.request({ token: await sidecar.token() })
    expect(informational.map(({ status }) => status)).toEqual([103])
    expect(informational[0]?.fields.join('\n')).toMatch(/^link$/im)
    expect(informational[0]?.fields.join('\n')).not.toMatch(/alt-svc/i)
  })

  it("C22 the client's connection stays open when the device closes its own", async () => {
    const device = await startDevice((_request, response) => {
      response.setHeader('Connection', 'close')
      response.end('x')
    })
    const sidecar = await startSidecar({ transport, device })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const connection = await sidecar.connect()
    for (let i = 0; i < 3; i += 1) expect((await connection.send({ fields })).text).toBe('x')
    expect(device.connections).toBe(3)
  })

  it('C22 the rate-limit fields reach the client although the device names them in Connection', async () => {
    const device = await answering('Connection: X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset')
    const sidecar = await startSidecar({ transport, device })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect(response.header('X-RateLimit-Limit')).toBe('1000000')
    expect(response.header('X-RateLimit-Remaining')).toBeDefined()
    expect(response.header('X-RateLimit-Reset')).toBeDefined()
  })

  /** Sends a request that the device redirects to `location`, and returns the response. */
  async function redirected(
    location: (deviceHost: string) => string,
    request: ApiRequest = {},
    config: YamlPart = {},
    field = 'Location',
  ): Promise<Response> {
    const device = await startDevice((_request, response) => {
      response.writeHead(302, [field, location(new URL(device.url).host)])
      response.end()
    })
    const sidecar = await startSidecar({ transport, device, config })
    return sidecar.request({ token: await sidecar.token(), authority: 'public.example:8443', ...request })
  }

  // Other addresses, and what a list of proxies names: `test/forward/public-address.test.ts`.
  it.each(['Location', 'Content-Location'])(
    "C22 a %s with the device's own address gets the public address",
    async (field) => {
      const response = await redirected((host) => `http://${host}/a%2fb//?c#d`, {}, {}, field)
      expect(response.header(field)).toBe(`${scheme}://public.example:8443/a%2fb//?c#d`)
    },
  )

  it('C22 behind a trusted proxy the public address is that of X-Forwarded-Proto and X-Forwarded-Host', async () => {
    const response = await redirected(
      (host) => `http://${host}/next`,
      { fields: ['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'outside.example'] },
      { listen: { trusted_proxies: ['127.0.0.1'] } },
    )
    expect(response.header('Location')).toBe('https://outside.example/next')
  })

  it("C22 an untrusted client's X-Forwarded fields do not change a redirect", async () => {
    const response = await redirected((host) => `http://${host}/next`, {
      fields: ['X-Forwarded-Proto', 'gopher', 'X-Forwarded-Host', 'evil.example'],
    })
    expect(response.header('Location')).toBe(`${scheme}://public.example:8443/next`)
  })
})
