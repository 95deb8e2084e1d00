import { expect, it } from 'vitest'
import { startDevice, startRawDevice } from '../support/device.ts'
import type { Response } from '../support/message.ts'
import { type ApiRequest, startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

/** A raw device that answers every request on a kept-alive connection with the same head. */
function answering(...lines: string[]) {
  return startRawDevice(async (peer) => {
    for (;;) {
      await peer.waitFor('\r\n\r\n', 60_000)
      peer.forget()
      peer.write(`HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nContent-Length: 2\r\n\r\nok`)
    }
  })
}

describeTransports('C22', (transport) => {
  const scheme = transport === 'http1' ? 'http' : 'https'

  it('C22 hop-by-hop fields of the device end here, and those that its Connection names', async () => {
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
    const answer = await sidecar.request({ token: await sidecar.token() })
    expect([answer.status, answer.text, answer.header('X-Public')]).toEqual([200, 'ok', '3'])
    for (const name of [
      'X-Private',
      'X-Other',
      'Proxy-Authenticate',
      'Proxy-Connection',
      'Upgrade',
      'Trailer',
      'TE',
    ]) {
      expect(answer.values(name), name).toEqual([])
    }
    expect(answer.fields.join()).not.toContain('timeout=77')
    expect(answer.values('Connection').join()).not.toMatch(/private|other/i)
    if (transport === 'h2') expect(answer.values('Connection')).toEqual([])
  })

  it("C22 a device that closes its connection does not close the client's", async () => {
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

  it('C22 naming its own length or the limits in Connection gains a device nothing', async () => {
    const device = await answering('Connection: X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset')
    const sidecar = await startSidecar({ transport, device })
    const answer = await sidecar.request({ token: await sidecar.token() })
    expect(answer.header('X-RateLimit-Limit')).toBe('1000000')
    expect(answer.header('X-RateLimit-Remaining')).toBeDefined()
    expect(answer.header('X-RateLimit-Reset')).toBeDefined()
  })

  describeLocations()

  function describeLocations(): void {
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

    it.each(['Location', 'Content-Location'])(
      "C22 a %s that names the device's own address becomes the public one",
      async (field) => {
        const answer = await redirected((host) => `http://${host}/a%2fb//?c#d`, {}, {}, field)
        expect(answer.header(field)).toBe(`${scheme}://public.example:8443/a%2fb//?c#d`)
      },
    )

    it('C22 a Location with the Host that the device was asked for, in its own scheme, likewise', async () => {
      const answer = await redirected(() => 'http://public.example:8443/next')
      expect(answer.header('Location')).toBe(`${scheme}://public.example:8443/next`)
    })

    it('C22 a Location with the Host of upstream.host likewise', async () => {
      const answer = await redirected(
        () => 'http://inside.local/next',
        {},
        { upstream: { host: 'inside.local' } },
      )
      expect(answer.header('Location')).toBe(`${scheme}://public.example:8443/next`)
    })

    it('C22 a Location without a path, or in capitals, likewise', async () => {
      expect((await redirected((host) => `HTTP://${host.toUpperCase()}`)).header('Location')).toBe(
        `${scheme}://public.example:8443`,
      )
    })

    it('C22 any other Location is kept as it is', async () => {
      const locations = [
        '/next?x=http://127.0.0.1/',
        'next',
        '//other.example/x',
        '?only=query',
        'http://other.example/x',
        'https://login.example/?back=x',
        'http://127.0.0.1.evil.example/',
        'ftp://public.example:8443/x',
        'http://public.example:9999/x',
        'urn:x:y',
        '',
        'http://[half',
      ]
      const device = await startDevice((request, response) => {
        response.writeHead(302, ['Location', locations[Number(request.url?.slice(1))] ?? ''])
        response.end()
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      for (const [i, location] of locations.entries()) {
        const answer = await sidecar.request({ token, path: `/${i}`, authority: 'public.example:8443' })
        expect([answer.status, answer.header('Location')]).toEqual([302, location])
      }
    })

    it('C22 behind a trusted proxy the public address is the one that the proxy tells', async () => {
      const answer = await redirected(
        (host) => `http://${host}/next`,
        { fields: ['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'outside.example'] },
        { listen: { trusted_proxies: ['127.0.0.1'] } },
      )
      expect(answer.header('Location')).toBe('https://outside.example/next')
    })

    it('C22 an untrusted client cannot steer a redirect', async () => {
      const answer = await redirected((host) => `http://${host}/next`, {
        fields: ['X-Forwarded-Proto', 'gopher', 'X-Forwarded-Host', 'evil.example'],
      })
      expect(answer.header('Location')).toBe(`${scheme}://public.example:8443/next`)
    })
  }
})
