import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import { type Device, startDevice } from '../support/device.ts'
import { expectUnharmed } from '../support/expectations.ts'
import { rawConnection } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports, rowsOver } from '../support/transports.ts'
import { passServing } from '../support/waiting.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const SWITCHED =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'

interface Upgrade {
  readonly token?: string
  readonly target?: string
  readonly method?: string
  readonly protocol?: string
  readonly fields?: readonly string[]
}

/** The head of an upgrade. */
function upgrade({
  token,
  target = '/ws',
  method = 'GET',
  protocol = 'websocket',
  fields = [],
}: Upgrade): string {
  return [
    `${method} ${target} HTTP/1.1`,
    'Host: device',
    'Connection: Upgrade',
    `Upgrade: ${protocol}`,
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...fields,
    '\r\n',
  ].join('\r\n')
}

const statuses = (all: string): string[] => all.match(/HTTP\/1\.1 \d+/g) ?? []

describeTransports(
  'Upgrades',
  (transport) => {
    // Shared by the tests whose requests must not reach the device.
    let device: Device
    let sidecar: TestSidecar
    let token: string
    beforeAll(async () => {
      device = await startDevice()
      sidecar = await startSidecar({ transport, device })
      token = await sidecar.token()
    })

    /** Sends bytes that must not reach the device, and returns the statuses of the responses. */
    async function refused(bytes: string): Promise<string[]> {
      const before = device.byteCount
      const raw = await rawConnection(sidecar.url)
      raw.write(bytes)
      const responses = statuses(await raw.closed)
      expect(device.byteCount).toBe(before)
      return responses
    }

    it.each(
      rowsOver(transport, [
        ['another request', 'GET /smuggled HTTP/1.1\r\nHost: device\r\nAUTH\r\n'],
        ['another upgrade', upgrade({ target: '/smuggled' })],
        ['frames', '\x81\x85\x00\x00\x00\x00smugg'],
        ['64 KiB', 'smuggled'.repeat(8192)],
      ]),
    )(
      'C23 H60 an upgrade without a token is 401 and close, and %s behind it does not reach the device',
      async (_name, behind) => {
        const bytes = upgrade({}) + behind.replace('AUTH', `Authorization: Bearer ${token}\r\n`)
        expect(await refused(bytes)).toEqual(['HTTP/1.1 401'])
        await expectUnharmed(sidecar, token)
      },
    )

    it.each(
      rowsOver(transport, [
        ['a length', ['Content-Length: 4'], 'evil'],
        ['chunks', ['Transfer-Encoding: chunked'], '4\r\nevil\r\n0\r\n\r\n'],
        ['an unknown coding', ['Transfer-Encoding: identity'], ''],
        ['a length and chunks', ['Content-Length: 4', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
        ['two different lengths', ['Content-Length: 4', 'Content-Length: 0'], 'evil'],
        ['two lengths of 0', ['Content-Length: 0', 'Content-Length: 0'], ''],
        ['a length of 0 and chunks', ['Content-Length: 0', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
        ['a length, beside another offer', ['Upgrade: h2c', 'Content-Length: 4'], 'evil'],
      ]),
    )(
      'C23 H61 an upgrade with %s: 400 and close, and no byte reaches the device',
      async (_name, fields, body) => {
        const behind = `GET /smuggled HTTP/1.1\r\nHost: device\r\nAuthorization: Bearer ${token}\r\n\r\n`
        expect(await refused(upgrade({ token, fields }) + body + behind)).toEqual(['HTTP/1.1 400'])
        await expectUnharmed(sidecar, token)
      },
    )

    it.each(
      rowsOver(transport, [
        '/a%2Fb/../c//d?x=%zz&y',
        '//ws',
        '/ws/%2e%2e/',
        '/ws;a=b',
        '/%00',
        '/ws?q=a\'b"c',
      ]),
    )('C23 H62 the path of an upgrade reaches the device byte for byte: %s', async (target) => {
      const device = await startDevice()
      const { upgrades } = acceptWebSockets(device)
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token(), target }))
      await raw.waitFor('101 Switching')
      expect(upgrades[0]?.url).toBe(target)
      raw.reset()
    })

    it.each(
      rowsOver(transport, [
        ['a fragment', { target: '/ws#a' }],
        ['no slash', { target: 'ws' }],
        ['an asterisk', { target: '*' }],
        ['8-bit bytes', { target: '/\xe9' }],
        ['two hosts', { fields: ['Host: other'] }],
        ['a look-alike of a guarded field', { fields: ['X_Forwarded_For: 192.0.2.1'] }],
        ['an expectation', { fields: ['Expect: the-unexpected'] }],
      ]),
    )('C23 H62 an upgrade with %s: 400 and close, and no byte reaches the device', async (_name, odd) => {
      expect(await refused(upgrade({ token, ...odd }))).toEqual(['HTTP/1.1 400'])
      await expectUnharmed(sidecar, token)
    })

    it('C23 H62 an upgrade loses hop-by-hop fields and those that Connection names, but not the guarded ones', async () => {
      const device = await startDevice()
      const { upgrades } = acceptWebSockets(device)
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      const fields = [
        'Connection: Upgrade, X-Mine, X-Forwarded-For, Host, Via',
        'X-Mine: 1',
        'Keep-Alive: timeout=9',
        'TE: trailers',
        'Proxy-Connection: keep-alive',
        'X-Forwarded-For: 192.0.2.66',
        'X-Real-IP: 192.0.2.66',
        'Forwarded: for=192.0.2.66',
        'Sec-WebSocket-Protocol: chat',
      ]
      raw.write(upgrade({ token: await sidecar.token(), fields }))
      await raw.waitFor('101 Switching')
      const seen = upgrades[0]?.headers ?? {}
      for (const dropped of [
        'x-mine',
        'keep-alive',
        'te',
        'proxy-connection',
        'forwarded',
        'authorization',
      ]) {
        expect(seen[dropped], dropped).toBeUndefined()
      }
      expect(JSON.stringify(seen)).not.toContain('192.0.2.66')
      expect(seen).toMatchObject({
        host: 'device',
        'x-forwarded-for': '127.0.0.1',
        'sec-websocket-protocol': 'chat',
      })
      raw.reset()
    })

    // A client that only closes its sending side gets its response: see `c23-half-closed-upgrades.test.ts`.
    it('C23 H63 a client that resets before the 101 closes the connection to the device', async () => {
      const device = await startRawDevice(async () => {})
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token() }))
      const peer = await device.waitForConnection(1)
      await peer.waitFor('\r\n\r\n')
      raw.reset()
      await Promise.race([peer.closed, once(peer.socket, 'end')])
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
      expect(await sidecar.metric('postern_tunnels')).toBe(0)
    })

    it('C23 H63 a client that sends 1 MiB before the 101 is cut off', async () => {
      const device = await startRawDevice(async () => {})
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token() }))
      await device.waitForConnection(1)
      raw.write(Buffer.alloc(1 << 20))
      await raw.closed
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    })

    it.each(
      rowsOver(transport, [
        ['nothing', ''],
        ['half a head', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upg'],
        ['interim responses alone', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'],
      ]),
    )('C23 H64 an upgrade to which the device sends %s is 504 at the deadline', async (_name, bytes) => {
      const device = await startRawDevice((peer) => {
        peer.write(bytes)
      })
      const sidecar = await startSidecar({ transport, device, config: { status_codes: 'http' } })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token() }))
      const peer = await device.waitForConnection(1)
      await peer.waitFor('\r\n\r\n')
      // Meanwhile the sidecar reads what the device has sent, which restarts the deadline of its own time alone.
      await sidecar.metrics()
      await sidecar.clock.advance(29_999)
      expect(await sidecar.metric('postern_refusals_total')).toBe(0)
      await sidecar.clock.advance(1)
      expect(statuses(await raw.closed).at(-1)).toBe('HTTP/1.1 504')
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    })

    it('C23 H64 a tunnel outlives the deadline of its handshake', async () => {
      const device = await startRawDevice(async (peer) => {
        if (!(await peer.waitFor('\r\n\r\n')).startsWith('GET /ws')) return
        peer.write(SWITCHED)
        await peer.waitFor('frames')
        peer.end('more frames')
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token }))
      await raw.waitFor('101 Switching')
      // It began after the upgrade, so its deadline is later.
      const silent = sidecar.request({ token, path: '/silent' })
      await (await device.waitForConnection(2)).waitFor('/silent')
      await sidecar.clock.advance(30_000)
      expect((await silent).status).toBe(500)
      raw.write('frames')
      expect(await raw.closed).toMatch(/more frames$/)
    })

    it.each(
      rowsOver(transport, [
        ['a refusal with its body', 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno', '403'],
        [
          'a refusal in chunks',
          'HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n',
          '403',
        ],
        [
          'a refusal that ends with the connection',
          'HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\nno',
          '403',
        ],
        ['200', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', '200'],
        ['a refusal without a body', 'HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n', '426'],
        ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n', '304'],
        ['garbage', 'garbage\r\n\r\n', '502'],
        ['two lengths', 'HTTP/1.1 403 No\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nno', '502'],
        ['a head of 300,000 bytes', `HTTP/1.1 403 No\r\nX: ${'x'.repeat(300_000)}\r\n\r\n`, '502'],
      ]),
    )(
      'C23 H65 an upgrade to which the device sends %s gets that response or 502, and all connections close',
      async (_name, bytes, status) => {
        const device = await startRawDevice(async (peer) => {
          await peer.waitFor('\r\n\r\n')
          peer.end(bytes)
        })
        const sidecar = await startSidecar({ transport, device, config: { status_codes: 'http' } })
        const raw = await rawConnection(sidecar.url)
        raw.write(upgrade({ token: await sidecar.token() }))
        const all = await raw.closed
        expect(statuses(all)).toEqual([`HTTP/1.1 ${status}`])
        await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
        for (const peer of device.peers) await peer.closed
      },
    )

    it('H65 C24 a refusal without a length that the device resets does not look whole', async () => {
      const heard = Promise.withResolvers<void>()
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.write('HTTP/1.1 403 Forbidden\r\n\r\nonly this')
        await heard.promise
        peer.reset()
      })
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token() }))
      await raw.waitFor('only this')
      heard.resolve()
      const all = await raw.closed
      expect(all).toMatch(/Transfer-Encoding: chunked[\s\S]+9\r\nonly this\r\n$/)
      const reason = { reason: 'http_response_incomplete' }
      expect(await sidecar.metric('postern_upstream_errors_total', reason)).toBe(1)
    })

    it('C23 H65 a refusal whose body stalls is broken off at the deadline', async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nno')
      })
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token() }))
      await raw.waitFor('\r\n\r\nno')
      await sidecar.clock.advance(59_999)
      expect(await sidecar.metric('postern_connections')).toBe(1)
      await sidecar.clock.advance(1)
      expect(statuses(await raw.closed)).toEqual(['HTTP/1.1 403'])
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    })

    it.each(
      rowsOver(transport, [
        ['another protocol', SWITCHED.replace('Upgrade: websocket', 'Upgrade: h2c')],
        ['no protocol', SWITCHED.replace('Upgrade: websocket\r\n', '')],
        ['a body', SWITCHED.replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\nhello')],
      ]),
    )('C23 H65 a 101 with %s is a tunnel or a 502, and all connections close', async (_name, bytes) => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.end(bytes)
      })
      const sidecar = await startSidecar({ transport, device, config: { status_codes: 'http' } })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token() }))
      expect(['HTTP/1.1 101', 'HTTP/1.1 502']).toContain(statuses(await raw.closed)[0])
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
      expect(await sidecar.metric('postern_tunnels')).toBe(0)
    })

    it.each(
      rowsOver(transport, [
        ['alone', []],
        [
          'before another offer',
          ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABk'],
        ],
        ['with a length of 0', ['Content-Length: 0']],
      ]),
    )(
      'C23 H66 an offer of websocket, %s, opens a tunnel, and the device gets the offer of websocket alone',
      async (_name, fields) => {
        const device = await startRawDevice(async (peer) => {
          await peer.waitFor('\r\n\r\n')
          peer.write(SWITCHED)
          await peer.waitFor('frames')
          peer.end('more frames')
        })
        const sidecar = await startSidecar({ transport, device })
        const token = await sidecar.token()
        for (const protocol of [
          'websocket',
          'WebSocket',
          'websocket, h2c',
          'h2c,\twebsocket',
          ',websocket,, TLS/1.2',
        ]) {
          const raw = await rawConnection(sidecar.url)
          raw.write(`${upgrade({ token, protocol, fields })}frames`)
          expect(await raw.closed).toMatch(/^HTTP\/1\.1 101 .*\r\n\r\nmore frames$/s)
        }
        for (const { received } of device.peers) {
          const lines = received.slice(0, received.indexOf('\r\n\r\n')).split('\r\n')
          const named = (name: string) => lines.filter((line) => line.toLowerCase().startsWith(`${name}:`))
          expect(named('upgrade')).toEqual(['Upgrade: websocket'])
          expect(named('connection')).toEqual(['Connection: Upgrade'])
          expect(named('http2-settings')).toEqual([])
          expect(named('transfer-encoding')).toEqual([])
          expect(received).toMatch(/\r\n\r\nframes$/)
        }
      },
    )

    it.each(rowsOver(transport, ['POST', 'HEAD', 'CONNECT', 'DELETE']))(
      'C23 H66 a WebSocket handshake with %s instead of GET is refused (RFC 6455 §4.1)',
      async (method) => {
        const target = method === 'CONNECT' ? 'device:80' : '/ws'
        for (const protocol of ['websocket', 'h2c, websocket']) {
          expect(await refused(upgrade({ token, method, target, protocol }))).toEqual(['HTTP/1.1 400'])
        }
      },
    )

    it('C23 H67 a password change closes a tunnel within a second on both sides', async () => {
      const device = await startDevice()
      const taken = acceptWebSockets(device)
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const [atDevice] = taken.sockets
      const both = Promise.all([
        once(socket, 'close'),
        atDevice === undefined ? undefined : once(atDevice, 'close'),
      ])
      writeFileSync(sidecar.passwordFile, 'another password altogether\n')
      const { clock } = sidecar
      const changed = clock.monotonic()
      await passServing(sidecar, both, 5)
      expect(clock.monotonic() - changed).toBeLessThan(1_000)
      await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
    })

    it('C23 H67 a password change during an upgrade leaves no tunnel', async () => {
      const answered = Promise.withResolvers<void>()
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        await answered.promise
        peer.write(SWITCHED)
      })
      const sidecar = await startSidecar({ transport, device })
      const raw = await rawConnection(sidecar.url)
      raw.write(upgrade({ token: await sidecar.token() }))
      await device.waitForConnection(1)
      writeFileSync(sidecar.passwordFile, 'another password altogether\n')
      expect(await passServing(sidecar, raw.closed, 5)).not.toContain('HTTP/1.1 101')
      answered.resolve()
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
      expect(await sidecar.metric('postern_tunnels')).toBe(0)
    })
  },
  ['http1', 'tls'],
)
