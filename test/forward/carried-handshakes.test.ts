import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { ClientRequest } from 'node:http'
import net, { type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { numOpenSockets, ProxyServer } from 'http-proxy-3'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { passUntil } from '../support/clock.ts'
import { headOf } from '../support/http1-reader.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { type RawDevice, startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const OFFER = ['Connection: Upgrade', 'Upgrade: websocket'] as const
const SWITCHED = headOf('HTTP/1.1 101 Switching Protocols', ...OFFER)

const upgradeOf = (token: string): string =>
  headOf('GET /ws HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`, ...OFFER)

/** What the package says. The test may act on each event, when the listeners of the program have. */
let said: string[]
let act: (event: string, subjects: readonly unknown[]) => void

beforeEach(() => {
  said = []
  act = () => {}
  const { emit } = ProxyServer.prototype
  vi.spyOn(ProxyServer.prototype, 'emit').mockImplementation(function (this: ProxyServer, event, ...args) {
    said.push(String(event))
    const heard = emit.call(this, event, ...args)
    act(String(event), args)
    return heard
  })
})

afterEach(() => vi.restoreAllMocks())

interface Attempt {
  readonly sidecar: TestSidecar
  readonly client: RawPeer
  readonly device: RawDevice
}

async function attempt(answer: (peer: RawPeer, nth: number) => void): Promise<Attempt> {
  let connections = 0
  const device = await startRawDevice(async (peer) => {
    connections += 1
    const nth = connections
    await peer.waitFor('\r\n\r\n')
    answer(peer, nth)
  })
  const sidecar = await startSidecar({ device })
  const client = await rawConnection(sidecar.url)
  client.write(upgradeOf(await sidecar.token()))
  return { sidecar, client, device }
}

describe('http-proxy-3', () => {
  it('H254 writes the handshake to the device, and carries the bytes of both directions', async () => {
    act = (event, [subject]) => {
      // The casts hold by the types of these events.
      if (event === 'proxyReqWs') (subject as ClientRequest).setHeader('X-By', 'the package')
      if (event === 'open') (subject as Duplex).push('from the end that the package reads, ')
    }
    const { client, device } = await attempt((peer) => {
      peer.write(SWITCHED)
      peer.waitFor('frames').then(() => peer.end('goodbye'))
    })
    client.write('frames')
    expect(await client.closed).toMatch(/\r\n\r\nfrom the end that the package reads, goodbye$/)
    expect(device.peers[0]?.received).toMatch(/\r\nX-By: the package\r\n\r\nframes$/)
    expect(said).toEqual(['proxyReqWs', 'open', 'close'])
  })

  it.each([
    ['a refusal', (peer: RawPeer) => peer.end('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno'), 403],
    ['another protocol', (peer: RawPeer) => peer.end(SWITCHED.replace('websocket', 'h2c')), 500],
    ['no HTTP', (peer: RawPeer) => peer.end('SSH-2.0-dropbear\r\n\r\n'), 500],
    ['nothing', (peer: RawPeer) => peer.end(), 500],
    ['a reset', (peer: RawPeer) => peer.reset(), 500],
  ])('H255 sees and says nothing of a device that answers with %s', async (_name, answer, status) => {
    act = (event, [, , end]) => {
      // The cast holds by the type of this event: the client, as the package sees it.
      if (event === 'proxyReqWs')
        (end as Socket).write('what the package says', () => (end as Socket).destroySoon())
    }
    const { client, sidecar } = await attempt(answer)
    const all = await client.closed
    expect(all).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(all).not.toMatch(/HTTP[\s\S]+HTTP|the package/)
    expect(said).not.toContain('open')
    await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    await expect.poll(numOpenSockets).toBe(0)
  })

  it('H255 has no part in a connection that the device dropped, and gets the next one', async () => {
    const handshakes: RawPeer[] = []
    const device = await startRawDevice(async (peer) => {
      if (!(await peer.waitFor('\r\n\r\n')).startsWith('GET /ws')) {
        peer.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
      } else if (handshakes.push(peer) === 1) peer.reset()
      else peer.write(`${SWITCHED}hello`)
    })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    // Only a device that has just worked gets a dropped request once more.
    await sidecar.request({ token })
    const client = await rawConnection(sidecar.url)
    client.write(upgradeOf(token))
    await passUntil(sidecar.clock, client.waitFor('hello'))
    expect(client.received.match(/HTTP\/1\.1/g)).toHaveLength(1)
    const [first, second] = handshakes
    expect(second?.received).toBe(first?.received)
    expect(said.filter((event) => event !== 'error')).toEqual(['proxyReqWs', 'proxyReqWs', 'open'])
    expect(numOpenSockets()).toBe(2)
    client.reset()
    await expect.poll(numOpenSockets).toBe(0)
  })

  it('H255 leaves nothing of a client that leaves before the 101', async () => {
    const { client, device } = await attempt(() => {})
    const peer = await device.waitForConnection(1)
    await peer.waitFor('\r\n\r\n')
    expect(numOpenSockets()).toBe(1)
    client.reset()
    await expect.poll(numOpenSockets).toBe(0)
    expect(said).not.toContain('open')
  })

  it.each([
    ['its client', ({ client }: Attempt) => client.reset()],
    ['the device', ({ device }: Attempt) => device.peers[0]?.reset()],
    ['a FIN of its client', ({ client }: Attempt) => client.end()],
    ['a FIN of the device', ({ device }: Attempt) => device.peers[0]?.end()],
    ['another password', ({ sidecar }: Attempt) => writeFileSync(sidecar.passwordFile, 'another one\n')],
  ])('H255 leaves nothing of a tunnel that %s ends', async (_name, end) => {
    const tunnel = await attempt((peer) => {
      peer.write(`${SWITCHED}hello`)
      peer.socket.once('end', () => peer.end())
    })
    await tunnel.client.waitFor('hello')
    expect(numOpenSockets()).toBe(2)
    end(tunnel)
    // The end of a grant, and of a tunnel, takes a second.
    const closed = async (): Promise<boolean> => {
      await tunnel.sidecar.clock.advance(50)
      return tunnel.client.socket.closed && tunnel.device.peers[0]?.socket.closed === true
    }
    await expect.poll(closed).toBe(true)
    await expect.poll(numOpenSockets).toBe(0)
  })

  it('H255 leaves nothing of a tunnel whose device has closed, though its client does not end', async () => {
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.end(`${SWITCHED}goodbye`)
    })
    const sidecar = await startSidecar({ device })
    const { hostname, port } = new URL(sidecar.url)
    const client = net.connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    closeLater(() => {
      client.destroy()
    })
    client.on('error', () => {})
    client.resume().write(upgradeOf(await sidecar.token()))
    await once(client, 'end')
    const tunnels = async (): Promise<number> => {
      await sidecar.clock.advance(1_000)
      return sidecar.metric('postern_tunnels')
    }
    await expect.poll(tunnels).toBe(0)
    await expect.poll(numOpenSockets).toBe(0)
  })

  it('H256 hands on the fields of the 101 byte for byte', async () => {
    const fields = ['X-Latin: caf\xe9 \xff', 'x-lower: a', 'Set-Cookie: b=1', 'Set-Cookie: c=2', 'X-Empty: ']
    const { client } = await attempt((peer) => peer.end(headOf(SWITCHED.trimEnd(), ...fields)))
    const lines = (await client.closed).split('\r\n')
    expect(lines.slice(0, 3)).toEqual(['HTTP/1.1 101 Switching Protocols', ...OFFER])
    expect(lines.slice(3).filter((line) => !/^(?:x-ratelimit-|x-request-id)/i.test(line))).toEqual([
      ...fields,
      ...['', ''],
    ])
  })
})

const PIECE = Buffer.alloc(256 * 1024, 'last bytes ')
const PIECES = 48

describeTransports(
  'The last bytes of a tunnel',
  (transport) => {
    it.each(['client', 'device'] as const)(
      'H257 from its %s, which ends, wait for a side that does not read yet',
      async (from) => {
        const device = await startRawDevice(async (peer) => {
          await peer.waitFor('\r\n\r\n')
          peer.write(`${SWITCHED}hello`)
        })
        const sidecar = await startSidecar({ transport, device })
        const client = await rawConnection(sidecar.url)
        client.write(upgradeOf(await sidecar.token()))
        await client.waitFor('hello')
        const peer = await device.waitForConnection(1)
        const [writer, reader] = from === 'client' ? [client, peer] : [peer, client]
        reader.forget()
        reader.socket.pause()
        let size = 0
        reader.socket.on('data', (bytes: Buffer) => {
          size += bytes.length
        })
        for (let i = 0; i < PIECES; i += 1) writer.write(PIECE)
        writer.end()
        // As much as fits between the two is under way when the reader begins.
        await expect
          .poll(async () => {
            const before = writer.socket.bytesWritten
            await sidecar.metric('postern_tunnels')
            return writer.socket.bytesWritten - before
          })
          .toBe(0)
        const ended = new Promise((resolve) => reader.socket.once('end', resolve))
        reader.socket.resume()
        await ended
        expect(size).toBe(PIECES * PIECE.length)
      },
    )
  },
  ['http1', 'tls'],
)
