import { beforeAll, describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { deviceTags, publicLinks, publicRefresh, publicUrl } from '../../src/forward/origins.ts'
import type { Addressed } from '../../src/http/browsers.ts'
import { makeCertificate } from '../support/certificate.ts'
import { type Device, startDevice } from '../support/device.ts'
import { growth, LINEAR } from '../support/lived-time.ts'
import { type ApiRequest, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { openWebSocket, refusedWebSocket } from '../support/websocket.ts'

const DEFAULT = {}
const TARGET = { upstream: { host: 'target' } }
const TRUSTING = { ...TARGET, listen: { trusted_proxies: ['127.0.0.1'] } }

/** The scheme that a client uses, and what Postern adds to a cookie for it: the device speaks http. */
const clientSide = (transport: Transport) =>
  transport === 'http1' ? { scheme: 'http', secure: '' } : { scheme: 'https', secure: '; Secure' }

/** A device that refuses a request of a page of another origin, as cockpit, cups and syncthing do. */
async function startWary(): Promise<Device> {
  const device = await startDevice((request, response) => {
    const { host, origin, referer } = request.headers
    const own = `http://${host}`
    const foreign = (origin ?? own) !== own || !(referer ?? own).startsWith(own)
    response.writeHead(host !== new URL(device.url).host ? 421 : foreign ? 403 : 200).end()
  })
  return device
}

/** A sidecar and a token for it. The tests of a block share them. */
interface Shared {
  readonly sidecar: TestSidecar
  readonly token: string
}

describeProtocols('host: target', (transport) => {
  const { scheme } = clientSide(transport)
  const shared = new Map<YamlPart, Shared>()

  beforeAll(async () => {
    for (const config of [TARGET, TRUSTING, DEFAULT]) {
      const sidecar = await startSidecar({ transport, device: await startWary(), config })
      shared.set(config, { sidecar, token: await sidecar.token() })
    }
  })

  async function statusOf(request: ApiRequest, config: YamlPart = TARGET): Promise<number> {
    const { sidecar, token } = shared.get(config) ?? expect.unreachable()
    // The second head is a remembered one.
    const first = await sidecar.request({ token, ...request })
    expect((await sidecar.request({ token, ...request })).status).toBe(first.status)
    return first.status
  }
  const authority = 'Postern.example:8443'
  const own = `${scheme}://postern.example:8443`

  it.each([
    ['Origin', own],
    ['origin', own.toUpperCase().replace(/^HTTPS?/, scheme)],
    ['Referer', `${own}/page?a=1`],
    ['Referer', own],
  ])("H175 Postern's own origin becomes the device's: %s: %s", async (name, value) => {
    expect(await statusOf({ authority, fields: [name, value] })).toBe(200)
    expect(await statusOf({ authority, fields: [name, value] }, DEFAULT)).toBe(421)
  })

  it.each([
    ['Origin', 'https://evil.example'],
    ['Origin', 'null'],
    ['Origin', `${scheme}://postern.example`],
    ['Origin', `${scheme === 'http' ? 'https' : 'http'}://postern.example:8443`],
    ['Origin', `${scheme}://postern.example:8443@evil.example`],
    ['Origin', `${scheme}://postern.example:8443\\@evil.example`],
    ['Origin', `${scheme}://postern.example:8443.evil.example`],
    ['Referer', `https://evil.example/${own}`],
    ['Referer', ` ${own}`],
  ])('H175 any other stays foreign: %s: %s', async (name, value) => {
    if (transport === 'h2' && value.startsWith(' ')) return
    const fields = [name, value]
    const expected = value.startsWith(' ') ? 200 : 403
    expect(await statusOf({ authority, fields })).toBe(expected)
  })

  it('H175 a trusted proxy in front says by which origin the client sees Postern; another peer does not', async () => {
    const claims = ['X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'front.example']
    const fields = ['Origin', 'https://front.example', ...claims]
    expect(await statusOf({ authority, fields }, TRUSTING)).toBe(200)
    expect(await statusOf({ authority, fields })).toBe(403)
    expect(await statusOf({ authority, fields: ['Origin', own, ...claims] }, TRUSTING)).toBe(403)
  })

  it('H175 a list of trusted proxies names the origin that the client used', async () => {
    const claims = ['X-Forwarded-Proto', 'http, https', 'X-Forwarded-Host', 'evil.example, front.example']
    expect(
      await statusOf({ authority, fields: ['Origin', 'https://front.example', ...claims] }, TRUSTING),
    ).toBe(200)
    expect(
      await statusOf({ authority, fields: ['Origin', 'http://evil.example', ...claims] }, TRUSTING),
    ).toBe(403)
  })
})

describeProtocols('WebDAV', (transport) => {
  const authority = 'Postern.example:8443'
  const shared = new Map<string, Shared>()

  beforeAll(async () => {
    const device = await startDevice()
    for (const host of ['preserve', 'target', 'device.local:81']) {
      const config = { upstream: { host }, listen: { trusted_proxies: ['127.0.0.1'] } }
      const sidecar = await startSidecar({ transport, device, config })
      shared.set(host, { sidecar, token: await sidecar.token() })
    }
  })

  /** What the device gets of a field; `DEVICE` stands for its scheme and the `Host` that it gets. */
  async function sent(
    host: string,
    name: string,
    value: string,
    claims: readonly string[] = [],
  ): Promise<string> {
    const { sidecar, token } = shared.get(host) ?? expect.unreachable()
    const fields = [name, value, ...claims]
    const { status } = await sidecar.request({ method: 'MOVE', path: '/a', token, authority, fields })
    const seen = sidecar.device.requests.at(-1)
    expect([status, seen?.values(name).length]).toEqual([200, 1])
    return (seen?.header(name) ?? '').replaceAll(`http://${seen?.header('host')}`, 'DEVICE')
  }

  describe.each(['preserve', 'target', 'device.local:81'])('with host: %s', (host) => {
    it.each([
      ['Destination', 'https://postern.example:8443/a%2Fb//c?d', 'DEVICE/a%2Fb//c?d'],
      // A proxy in front may terminate TLS, or begin it.
      ['Destination', 'http://postern.example:8443/a', 'DEVICE/a'],
      ['destination', 'HTTPS://POSTERN.EXAMPLE:8443', 'DEVICE'],
      ['If', '<https://postern.example:8443/a> (<urn:uuid:1>)', '<DEVICE/a> (<urn:uuid:1>)'],
      [
        'If',
        '<https://postern.example:8443/a>(<urn:uuid:1> ["b"])(Not <DAV:no-lock>) <https://postern.example:8443/b> (["c"])',
        '<DEVICE/a>(<urn:uuid:1> ["b"])(Not <DAV:no-lock>) <DEVICE/b> (["c"])',
      ],
      [
        'If',
        '<https://postern.example:8443/a> ([W/"<)(\\"]) <https://postern.example:8443/b> (["c"])',
        '<DEVICE/a> ([W/"<)(\\"]) <DEVICE/b> (["c"])',
      ],
    ])('H175 what names Postern names the device: %s: %s', async (name, value, expected) => {
      expect(await sent(host, name, value)).toBe(expected)
    })

    it.each([
      ['Destination', '/a'],
      ['Destination', 'https://other.example/a'],
      ['Destination', 'https://postern.example/a'],
      ['Destination', 'https://x@postern.example:8443/a'],
      ['Destination', 'https://postern.example:8443@other.example/a'],
      ['Destination', 'https://postern.example:8443\\@other.example/a'],
      ['Destination', '//postern.example:8443/a'],
      ['Destination', 'ftp://postern.example:8443/a'],
      ['If', '</a> (<urn:uuid:1>) <https://other.example/a> (["b"])'],
      // In a list, a URL is the name of a lock or of a state, which only the device knows.
      ['If', '(<https://postern.example:8443/a> ["<https://postern.example:8443/a>"])'],
      ['If', '</a> (["<https://postern.example:8443/a>") <https://postern.example:8443/a'],
      ['X-Destination', 'https://postern.example:8443/a'],
      ['If-Match', '"<https://postern.example:8443/a>"'],
    ])('H175 any other stays byte for byte: %s: %s', async (name, value) => {
      expect(await sent(host, name, value)).toBe(value)
    })

    it('H175 a trusted proxy in front says how the client names Postern', async () => {
      const claims = ['X-Forwarded-Host', 'evil.example, front.example', 'X-Forwarded-Proto', 'https']
      for (const port of ['', ':443']) {
        expect(await sent(host, 'Destination', `https://front.example${port}/a`, claims)).toBe('DEVICE/a')
      }
      const foreign = 'https://evil.example/a'
      expect(await sent(host, 'Destination', foreign, claims)).toBe(foreign)
    })
  })

  it('H175 a device that speaks TLS gets its own scheme', async () => {
    const device = await startDevice(undefined, { tls: await makeCertificate() })
    const sidecar = await startSidecar({
      transport,
      device,
      config: { upstream: { tls: { insecure: true } } },
    })
    const fields = ['Destination', 'http://postern.example:8443/a']
    await sidecar.request({ method: 'MOVE', token: await sidecar.token(), authority, fields })
    expect(device.requests[0]?.header('destination')).toBe('https://Postern.example:8443/a')
  })
})

describe('a field of the device', () => {
  it('H175 is rewritten in linear time', () => {
    // Proof of the cast: nothing else of the request is read.
    const request = {
      head: { secure: true },
      client: { peerTrusted: false, hops: 0 },
      classified: { host: 'postern.example' },
    } as Addressed
    const names = { origin: 'http://192.0.2.7', host: undefined, names: ['fritz.box'] }
    const grown = growth(4_000, (size) => {
      const fields: [typeof publicUrl, string][] = [
        [publicRefresh, `1${' '.repeat(size)}x`],
        [publicRefresh, `1;${'/'.repeat(size)}@`],
        [publicUrl, `//${'@'.repeat(size)}`],
        [publicLinks, '<'.repeat(size)],
        [publicLinks, `"${'\\"'.repeat(size / 2)}`],
      ]
      for (const [rewrite, value] of fields) expect(rewrite(value, request, names)).toBe(value)
      for (const value of [
        '<'.repeat(size),
        '("'.repeat(size / 2),
        '<>'.repeat(size / 2),
        '()'.repeat(size / 2),
      ])
        expect(deviceTags(value, request, names.origin)).toBe(value)
    })
    expect(grown).toBeLessThan(LINEAR)
  })
})

describe('host: target and WebSockets', () => {
  it('H175 the handshake of an own page passes a device that compares Origin and Host, a foreign one does not', async () => {
    const device = await startDevice()
    const server = new WebSocketServer({ noServer: true })
    device.server.on('upgrade', (request, socket, early) => {
      if (request.headers.origin !== `http://${request.headers.host}`) {
        socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
      } else server.handleUpgrade(request, socket, early, () => {})
    })
    const sidecar = await startSidecar({ transport: 'tls', device, config: TARGET })
    const token = await sidecar.token()
    const { socket } = await openWebSocket(sidecar.url, { token, headers: { Origin: sidecar.url } })
    socket.close()
    const foreign = { token, headers: { Origin: 'https://evil.example' } }
    expect((await refusedWebSocket(sidecar.url, foreign)).status).toBe(403)
    const kept = await startSidecar({ transport: 'tls', device })
    const own = { token: await kept.token(), headers: { Origin: kept.url } }
    expect((await refusedWebSocket(kept.url, own)).status).toBe(403)
  })
})

describeProtocols('upstream.rewrite', (transport) => {
  const { scheme, secure } = clientSide(transport)

  const shared = new Map<string, Shared>()
  let device: Device

  beforeAll(async () => {
    device = await startDevice()
    for (const [rewrite, host] of [
      ['on', 'preserve'],
      ['on', 'target'],
      ['off', 'preserve'],
    ]) {
      const sidecar = await startSidecar({ transport, device, config: { upstream: { rewrite, host } } })
      shared.set(`${rewrite} ${host}`, { sidecar, token: await sidecar.token() })
    }
  })

  /** What a client gets of a value; `DEVICE` and `POSTERN` stand for both origins. */
  async function received(name: string, value: string, rewrite: string, host = 'preserve'): Promise<string> {
    const { sidecar, token } = shared.get(`${rewrite} ${host}`) ?? expect.unreachable()
    device.handle((_request, response) => {
      const { port } = new URL(device.url)
      const host = `127.0.0.1:${port}`
      response.setHeader(name, value.replaceAll('DEVICE', `http://${host}`).replaceAll('HOST', host)).end()
    })
    const response = await sidecar.request({ token, authority: 'postern.example:8443' })
    return (response.header(name) ?? '')
      .replaceAll(device.url, 'DEVICE')
      .replaceAll(`${scheme}://postern.example:8443`, 'POSTERN')
      .replaceAll('postern.example:8443', 'USED')
      .replaceAll(new URL(device.url).host, 'HOST')
  }

  it.each([
    ['Location', 'DEVICE/a', 'POSTERN/a'],
    ['Content-Location', 'DEVICE/a', 'POSTERN/a'],
    [
      'Link',
      '<DEVICE/a>; rel=next; title="<DEVICE/b>", </c>; rel=up, <DEVICE>',
      '<POSTERN/a>; rel=next; title="<DEVICE/b>", </c>; rel=up, <POSTERN>',
    ],
    ['Refresh', '5; url=DEVICE/a?b', '5; url=POSTERN/a?b'],
    ['Refresh', '0;URL="DEVICE"', '0;URL="POSTERN"'],
    ['Location', '//HOST/a?b', '//USED/a?b'],
    ['Location', '///HOST', '//USED'],
    ['Location', '\\\\HOST/a', '//USED/a'],
    ['Location', 'HTTP://HOST/a', 'POSTERN/a'],
    ['Location', 'http://admin@HOST/a', 'POSTERN/a'],
    ['Location', 'hTTp://admin:secret@HOST?b', 'POSTERN?b'],
    ['Location', '//admin:@HOST/a', '//USED/a'],
    ['Location', 'http://a:b@c@HOST/a', 'POSTERN/a'],
    ['Content-Location', '//HOST/a', '//USED/a'],
    ['Link', '<//HOST/a>; rel=next, <HTTP://a:b@HOST/b>', '<//USED/a>; rel=next, <POSTERN/b>'],
    ['Refresh', '5; url=//HOST/a?b', '5; url=//USED/a?b'],
    ['Refresh', "5, '//admin@HOST'", "5, '//USED'"],
    ['Refresh', '0;URL=hTTp://HOST', '0;URL=POSTERN'],
    [
      'Set-Cookie',
      'a=1; path=/;DOMAIN=127.0.0.1; HttpOnly',
      `a=1; path=/;DOMAIN=postern.example; HttpOnly${secure}`,
    ],
    ['Set-Cookie', 'a=DEVICE; Secure', 'a=DEVICE; Secure'],
  ])('H175 where %s names the device, it names Postern: %s', async (name, value, expected) => {
    const plain = transport === 'http1' && value.endsWith('Secure') ? value : expected
    expect(await received(name, value, 'on')).toBe(plain)
    expect(await received(name, value, 'on', 'target')).toBe(plain)
    if (!name.endsWith('Location')) expect(await received(name, value, 'off')).toBe(value)
  })

  it.each([
    ['Link', '<https://other.example/a>; rel=next, <a>'],
    ['Refresh', '5'],
    ['Refresh', '5; url=/a'],
    ['Refresh', '5; url=https://other.example/?DEVICE'],
    ['Refresh', '5; url=//other.example/'],
    ['Link', '<//other.example/HOST>, </HOST>'],
    ['Location', '//other.example/HOST'],
    ['Location', '/HOST/a'],
    ['Location', 'ftp://HOST/a'],
    ['Location', 'DEVICE@other.example/a'],
    ['Location', 'DEVICE\\@other.example/a'],
    ['Location', '//HOST.other.example/a'],
    ['X-Other', 'DEVICE/a'],
  ])('H175 any other value of %s stays byte for byte: %s', async (name, value) => {
    expect(await received(name, value, 'on')).toBe(value)
  })

  it.each(['http://USED/a', 'HTTP://admin:secret@USED/a', 'http://x@USED/a'])(
    'H175 a device that knows the Host of the request, and its own scheme, names Postern: %s',
    async (value) => {
      const location = value.replace('USED', 'postern.example:8443')
      expect(await received('Location', location, 'off')).toBe('POSTERN/a')
    },
  )

  it('H175 a cookie of another domain keeps it', async () => {
    expect(await received('Set-Cookie', 'a=1; Domain=example.com', 'on')).toBe(
      `a=1; Domain=example.com${secure}`,
    )
  })
})

/** The name in `upstream.names` has the device's port, or a port of its own. */
const NAMES = ['fritz.box', 'X.local:8090', '[2001:db8::7]', 'speedport.ip:80']

describeProtocols('upstream.names', (transport) => {
  const { scheme, secure } = clientSide(transport)
  const shared = new Map<string, Shared>()
  let device: Device

  beforeAll(async () => {
    device = await startDevice()
    for (const rewrite of ['on', 'off']) {
      const sidecar = await startSidecar({
        transport,
        device,
        config: { upstream: { rewrite, names: NAMES } },
      })
      shared.set(rewrite, { sidecar, token: await sidecar.token() })
    }
  })

  /** What a client gets of a value; `:PORT` stands for the port of the device. */
  async function received(name: string, value: string, rewrite: string): Promise<string> {
    const { sidecar, token } = shared.get(rewrite) ?? expect.unreachable()
    const sent = value.replaceAll(':PORT', `:${new URL(device.url).port}`)
    device.handle((_request, response) => response.setHeader(name, sent).end())
    const response = await sidecar.request({ token, authority: 'postern.example:8443' })
    return (response.header(name) ?? '')
      .replaceAll(`:${new URL(device.url).port}`, ':PORT')
      .replaceAll(`${scheme}://postern.example:8443`, 'POSTERN')
      .replaceAll('postern.example:8443', 'USED')
  }

  it.each([
    ['http://fritz.box:PORT/a', 'POSTERN/a'],
    ['http://fritz.box/a', 'POSTERN/a'],
    ['http://FRITZ.box', 'POSTERN'],
    ['http://x.local:8090/a?b', 'POSTERN/a?b'],
    ['http://x.local:PORT/a', 'POSTERN/a'],
    ['//fritz.box/a', '//USED/a'],
    ['http://admin@fritz.box/a', 'POSTERN/a'],
    ['http://[2001:db8::7]:PORT/a', 'POSTERN/a'],
    ['http://[2001:DB8:0::7]:PORT/a', 'POSTERN/a'],
    // The same names in other spellings.
    ['http://fritz.box:80/a', 'POSTERN/a'],
    ['//fritz.box:80/a', '//USED/a'],
    ['http://Fritz.Box./a', 'POSTERN/a'],
    ['http://fritz.box.:PORT/a', 'POSTERN/a'],
    ['http://fritz.box.:80/a', 'POSTERN/a'],
    ['http://X.LOCAL.:8090/a', 'POSTERN/a'],
    ['http://[2001:DB8:0::7]/a', 'POSTERN/a'],
    ['http://[2001:db8::7]:80/a', 'POSTERN/a'],
    ['http://speedport.ip/a', 'POSTERN/a'],
    ['http://127.0.0.1.:PORT/a', 'POSTERN/a'],
    ['http://postern.example.:8443/a', 'POSTERN/a'],
  ])('H363 a Location with a further name of the device names Postern: %s', async (value, expected) => {
    expect(await received('Location', value, 'off')).toBe(expected)
  })

  it.each([
    'https://fritz.box/a',
    'http://fritz.box:81/a',
    'http://fritz.box:443/a',
    'https://fritz.box:80/a',
    'http://fritz.box../a',
    'http://.fritz.box/a',
    'http://x.local/a',
    'http://a.fritz.box/a',
    'http://fritz.box.evil.example/a',
    'http://fritz.box@evil.example/a',
    'http://fritz.box\\@evil.example/a',
    'http://evil.example/?http://fritz.box/a',
  ])('H363 any other Location stays byte for byte: %s', async (value) => {
    expect(await received('Location', value, 'on')).toBe(value)
  })

  it.each([
    ['Set-Cookie', 'a=1; Domain=.Fritz.box', `a=1; Domain=.postern.example${secure}`],
    ['Set-Cookie', 'a=1; domain=x.local; Path=/', `a=1; domain=postern.example; Path=/${secure}`],
    ['Set-Cookie', 'a=1; Domain=.FRITZ.box.', `a=1; Domain=.postern.example${secure}`],
    ['Set-Cookie', 'a=1; Domain=fritz.box:80', `a=1; Domain=postern.example${secure}`],
    ['Set-Cookie', 'a=1; Domain=[2001:DB8:0::7]', `a=1; Domain=postern.example${secure}`],
    ['Link', '<http://fritz.box/a>; rel=next', '<POSTERN/a>; rel=next'],
    ['Link', '<http://fritz.box:80/a>, <//FRITZ.box./b>', '<POSTERN/a>, <//USED/b>'],
    ['Refresh', '0; url=http://fritz.box/a', '0; url=POSTERN/a'],
    ['Refresh', '0; url=http://fritz.box.:80/a', '0; url=POSTERN/a'],
  ])('H363 with rewrite, so does %s: %s', async (name, value, expected) => {
    expect(await received(name, value, 'on')).toBe(expected)
    expect(await received(name, value, 'off')).toBe(value)
  })

  it.each(['box', 'a.fritz.box', 'fritz.box/a', 'fritz.box@evil.example'])(
    'H363 a cookie of another domain keeps it: %s',
    async (domain) => {
      const value = `a=1; Domain=${domain}${secure}`
      expect(await received('Set-Cookie', value, 'on')).toBe(value)
    },
  )
})

describeProtocols('upstream.host that is one of upstream.names', (transport) => {
  it("H363 the device gets its own name in Origin and Referer in place of Postern's, and no other", async () => {
    const device = await startDevice()
    const authority = 'postern.example:8443'
    const own = `${clientSide(transport).scheme}://${authority}`
    for (const [host, names, origin] of [
      ['fritz.box', ['FRITZ.box', 'x.local'], 'http://fritz.box'],
      ['fritz.box:80', ['FRITZ.box'], 'http://fritz.box:80'],
      ['fritz.box', ['fritz.box:80'], 'http://fritz.box'],
      ['fritz.box', ['x.local'], own],
    ] as const) {
      const sidecar = await startSidecar({
        transport,
        device,
        config: { upstream: { host, names } },
      })
      const token = await sidecar.token()
      await sidecar.request({ token, authority, fields: ['Origin', own, 'Referer', `${own}/page`] })
      const seen = device.requests.at(-1)
      expect(seen?.header('host')).toBe(host)
      expect(seen?.header('origin')).toBe(origin)
      expect(seen?.header('referer')).toBe(`${origin}/page`)
      await sidecar.request({ token, authority, fields: ['Origin', 'https://evil.example'] })
      expect(device.requests.at(-1)?.header('origin')).toBe('https://evil.example')
    }
  })
})
