import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { limitsOf } from '../support/expectations.ts'
import { rawConnection } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import {
  acceptWebSockets,
  dial,
  openWebSocket,
  refusedWebSocket,
  type WebSocketDevice,
} from '../support/websocket.ts'

/** The default of `upstream.response_timeout` (ms). */
const RESPONSE_TIMEOUT = 30_000

/** Sends a message and resolves with the next one received. */
async function exchange(socket: WebSocket, message: string | Buffer): Promise<string | Buffer> {
  const echoed = once(socket, 'message')
  socket.send(message)
  const [data, binary]: unknown[] = await echoed
  return binary ? (data as Buffer) : String(data) // the default `binaryType` of `ws` is a Buffer
}

/** Waits for the close, and resolves with its code and reason. */
async function closeOf(socket: WebSocket): Promise<[number, string]> {
  const [code, reason]: unknown[] = await once(socket, 'close')
  return [Number(code), String(reason)]
}

describeTransports(
  'WebSocket',
  (transport) => {
    async function start(
      config: YamlPart = {},
      onSocket?: (socket: WebSocket) => void,
    ): Promise<{ sidecar: TestSidecar; device: Device; taken: WebSocketDevice; token: string }> {
      const device = await startDevice()
      const taken = acceptWebSockets(device, onSocket)
      const sidecar = await startSidecar({ transport, device, config })
      return { sidecar, device, taken, token: await sidecar.token() }
    }

    it('C23 text, binary and empty messages pass in both directions', async () => {
      const { sidecar, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      expect(await exchange(socket, 'näive ☕')).toBe('näive ☕')
      expect(await exchange(socket, Buffer.from([0, 1, 254, 255]))).toEqual(Buffer.from([0, 1, 254, 255]))
      expect(await exchange(socket, '')).toBe('')
      expect(await exchange(socket, Buffer.alloc(0))).toEqual(Buffer.alloc(0))
    })

    it.each<Record<string, string>>([
      { 'Content-Length': '0' },
      { Upgrade: 'websocket, h2c', Connection: 'Upgrade, HTTP2-Settings', 'HTTP2-Settings': 'AAMAAABk' },
      { Upgrade: 'h2c, WebSocket', Connection: 'keep-alive, upgrade' },
    ])('C23 a handshake with %j opens a WebSocket, and the device sees no other offer', async (handshake) => {
      const { sidecar, taken, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token, handshake })
      expect(await exchange(socket, 'hello')).toBe('hello')
      expect(taken.upgrades[0]?.headers).toMatchObject({ upgrade: 'websocket', connection: 'Upgrade' })
      expect(taken.upgrades[0]?.headers['http2-settings']).toBeUndefined()
    })

    it('C23 twenty concurrent frames of 1 MiB arrive unchanged', async () => {
      const { sidecar, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const frames = Array.from({ length: 20 }, () => randomBytes(1 << 20))
      const received: Buffer[] = []
      const all = new Promise<void>((resolve) => {
        socket.on('message', (data: Buffer) => {
          received.push(data)
          if (received.length === frames.length) resolve()
        })
      })
      for (const frame of frames) socket.send(frame)
      await all
      expect(received.every((data, i) => data.equals(frames[i] as Buffer))).toBe(true)
    })

    it('C23 a ping from either side gets its pong through the tunnel', async () => {
      const { sidecar, taken, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const ponged = once(socket, 'pong')
      socket.ping('up')
      expect(String((await ponged)[0])).toBe('up')
      const other = taken.sockets[0] as WebSocket // the device has accepted the upgrade
      const pongedDown = once(other, 'pong')
      other.ping('down')
      expect(String((await pongedDown)[0])).toBe('down')
    })

    it('C23 a close of the client reaches the device with its code and reason', async () => {
      const { sidecar, device, taken, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const heard = closeOf(taken.sockets[0] as WebSocket)
      const own = closeOf(socket)
      socket.close(4001, 'done here')
      expect(await heard).toEqual([4001, 'done here'])
      expect(await own).toEqual([4001, 'done here'])
      await device.waitForOpenConnections(0)
    })

    it('C23 a close of the device reaches the client with its code and reason', async () => {
      const { sidecar, device, taken, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const own = closeOf(socket)
      taken.sockets[0]?.close(4002, 'rebooting')
      expect(await own).toEqual([4002, 'rebooting'])
      await device.waitForOpenConnections(0)
    })

    it('C24 a client that disappears without a close frame takes its device connection along', async () => {
      const { sidecar, device, taken, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const heard = closeOf(taken.sockets[0] as WebSocket)
      socket.terminate()
      expect((await heard)[0]).toBe(1006)
      await device.waitForOpenConnections(0)
    })

    it('C24 a device that disappears without a close frame takes its client connection along', async () => {
      const { sidecar, taken, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      const own = closeOf(socket)
      taken.sockets[0]?.terminate()
      expect((await own)[0]).toBe(1006)
    })

    it('C23 a message right after the handshake arrives, from either side', async () => {
      const { sidecar, token } = await start({}, (socket) => {
        socket.send('hello from the device')
        socket.on('message', (data) => socket.send(`heard ${data}`))
      })
      const socket = dial(sidecar.url, { token })
      const received: string[] = []
      const both = new Promise<void>((resolve) => {
        socket.on('message', (data) => {
          received.push(String(data))
          if (received.length === 2) resolve()
        })
      })
      socket.once('open', () => socket.send('at once'))
      await both
      expect(received).toEqual(['hello from the device', 'heard at once'])
    })

    it('C23 path, subprotocol, cookies and origin reach the device, and its 101 reaches the client', async () => {
      const { sidecar, taken, token } = await start()
      const { socket, response } = await openWebSocket(sidecar.url, {
        token,
        path: '/a%2Fb//ws?x=%zz&x',
        protocols: ['v2.chat', 'v1.chat'],
        headers: { Cookie: 'a=1', Origin: 'https://app.example' },
      })
      expect(socket.protocol).toBe('v2.chat')
      expect(response.statusCode).toBe(101)
      expect(taken.upgrades[0]?.url).toBe('/a%2Fb//ws?x=%zz&x')
      expect(taken.upgrades[0]?.headers).toMatchObject({ cookie: 'a=1', origin: 'https://app.example' })
    })

    it('C22 an upgrade follows the header policy of requests', async () => {
      const { sidecar, taken, token } = await start({ upstream: { headers: { 'X-Gateway': 'postern' } } })
      await openWebSocket(sidecar.url, {
        token,
        headers: {
          'X-Forwarded-For': '192.0.2.66',
          Forwarded: 'for=192.0.2.66',
          'X-Gateway': 'forged',
          'Proxy-Authorization': 'Basic eDp5',
          'Keep-Alive': 'timeout=9',
        },
      })
      const headers = taken.upgrades[0]?.headers ?? {}
      expect(headers.authorization).toBeUndefined()
      expect(headers['proxy-authorization']).toBeUndefined()
      expect(headers['keep-alive']).toBeUndefined()
      expect(headers.forwarded).toBeUndefined()
      expect(headers['x-forwarded-for']).toBe('127.0.0.1')
      expect(headers['x-forwarded-proto']).toBe(transport === 'tls' ? 'https' : 'http')
      expect(headers['x-gateway']).toBe('postern')
      expect(headers.via).toBe('1.1 postern')
      expect(headers['x-request-id']).toMatch(/^[\w-]{16,}$/)
      expect(headers.host).toBe(new URL(sidecar.url).host)
      expect(headers.connection?.toLowerCase()).toBe('upgrade')
      expect(headers.upgrade).toBe('websocket')
    })

    it('C22 the 101 carries no hop-by-hop field of the device beyond the upgrade', async () => {
      const { sidecar, taken, token } = await start()
      taken.server.on('headers', (headers) =>
        headers.push('Keep-Alive: timeout=9', 'X-Kept: yes', 'Set-Cookie: a', 'Set-Cookie: b'),
      )
      const { response } = await openWebSocket(sidecar.url, { token })
      expect(response.headers['keep-alive']).toBeUndefined()
      expect(response.headers['x-kept']).toBe('yes')
      expect(response.headers['set-cookie']).toEqual(['a', 'b'])
    })

    it.each([
      ['no token', {}],
      ['an unknown token', { token: 'unknown' }],
      ['a token in the query', { path: '/?access_token=TOKEN' }],
    ])('C10 an upgrade with %s is refused with 401 and does not reach the device', async (_name, request) => {
      const { sidecar, device, taken, token } = await start()
      const path = 'path' in request ? request.path.replace('TOKEN', token) : '/'
      const refused = await refusedWebSocket(sidecar.url, { ...request, path })
      expect(refused.status).toBe(401)
      expect(JSON.parse(refused.text).error).toBe('invalid_token')
      limitsOf(refused)
      expect(taken.upgrades).toHaveLength(0)
      expect(device.connections).toBe(0)
    })

    it('C12 bytes after a refused upgrade are discarded', async () => {
      const { sidecar, device } = await start()
      const raw = await rawConnection(sidecar.url)
      raw.write(
        'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
          'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n' +
          'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n',
      )
      const all = await raw.closed
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401'])
      expect(device.connections).toBe(0)
    })

    it("C24 the device's refusal of an upgrade reaches the client with its body", async () => {
      const device = await startDevice((_request, response) => {
        response.writeHead(403, { 'X-Own': 'yes', 'Content-Type': 'text/plain' })
        response.end('not today')
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const refused = await refusedWebSocket(sidecar.url, { token })
      expect([refused.status, refused.text]).toEqual([403, 'not today'])
      expect(refused.fields).toContain('X-Own')
      limitsOf(refused)
      expect((await sidecar.request({ token })).status).toBe(403)
    })

    it("C24 the device's refusal of an upgrade with a cut body is a broken transfer", async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this')
      })
      const sidecar = await startSidecar({ transport, device })
      await expect(refusedWebSocket(sidecar.url, { token: await sidecar.token() })).rejects.toThrow()
    })

    it('C24 an upgrade to a device that is down or closes without a response gets 500', async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.end()
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const closed = await refusedWebSocket(sidecar.url, { token })
      await device.stop()
      const down = await passUntil(sidecar.clock, refusedWebSocket(sidecar.url, { token }))
      for (const refused of [closed, down]) {
        expect([refused.status, JSON.parse(refused.text).error]).toEqual([500, 'upstream_unavailable'])
      }
      expect(down.fields).toContain('postern; error=connection_refused')
    })

    it('C24 an upgrade that the device answers with an invalid status gets 500', async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.end('HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n')
      })
      const sidecar = await startSidecar({ transport, device })
      const refused = await refusedWebSocket(sidecar.url, { token: await sidecar.token() })
      expect([refused.status, JSON.parse(refused.text).error]).toEqual([500, 'upstream_unavailable'])
    })

    it('C24 an upgrade that the device never answers gets 500 at the deadline', async () => {
      const device = await startRawDevice(async () => {})
      const sidecar = await startSidecar({ transport, device })
      const response = refusedWebSocket(sidecar.url, { token: await sidecar.token() })
      const peer = await device.waitForConnection(1)
      await peer.waitFor('\r\n\r\n')
      await sidecar.clock.advance(RESPONSE_TIMEOUT - 1)
      expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
      await sidecar.clock.advance(1)
      expect(await sidecar.metric('postern_upstream_errors_total')).toBe(1)
      const refused = await response
      expect([refused.status, JSON.parse(refused.text).error]).toEqual([500, 'upstream_timeout'])
    })

    it('C24 the device connection of a client that closes before the 101 is closed at the deadline', async () => {
      const device = await startRawDevice(async () => {})
      const sidecar = await startSidecar({ transport, device })
      const socket = dial(sidecar.url, { token: await sidecar.token() })
      const peer = await device.waitForConnection(1)
      await peer.waitFor('\r\n\r\n')
      socket.terminate()
      // The scripted device never ends its side, so this is the end of the sidecar's side.
      await passUntil(sidecar.clock, Promise.race([peer.closed, once(peer.socket, 'end')]))
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    })

    it('C8 a tunnel is counted while it is open', async () => {
      const { sidecar, device, token } = await start()
      const { socket } = await openWebSocket(sidecar.url, { token })
      expect(await sidecar.metric('postern_tunnels')).toBe(1)
      socket.close()
      await device.waitForOpenConnections(0)
      await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
    })

    it('C24 a device that closes while its client still sends ends the tunnel', async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        await peer.waitFor('farewell')
        peer.end()
      })
      const sidecar = await startSidecar({ transport, device })
      const client = await rawConnection(sidecar.url)
      client.socket.allowHalfOpen = true
      client.write(
        `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await sidecar.token()}\r\n` +
          'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      )
      await client.waitFor('101 Switching Protocols')
      const ended = once(client.socket, 'end')
      client.write('farewell')
      await ended
      client.write(Buffer.alloc(1 << 20))
      await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
    })
  },
  ['http1', 'tls'],
)
