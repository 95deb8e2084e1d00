import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Connection, type Connections, createConnections } from '../../src/device/connections.ts'
import type { DeviceRequest } from '../../src/device/device-connection.ts'
import { failureOf } from '../../src/device/failure.ts'
import type { ResponseHandler } from '../../src/device/response-handler.ts'
import type { UpstreamDeadlines, UpstreamTarget } from '../../src/device/target.ts'
import type { Clock } from '../../src/system/clock.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { movableClock, stillClock } from '../support/clock.ts'
import { startRawDevice } from '../support/device.ts'
import type { RawPeer } from '../support/raw.ts'
import { nextRequest, OK } from '../support/scripted.ts'

interface World {
  readonly deadlines?: Partial<UpstreamDeadlines>
  readonly target?: Partial<UpstreamTarget>
  readonly clock?: Clock
}

function open(url: string, { deadlines, target, clock = movableClock() }: World = {}): Connections {
  const connections = createConnections(
    {
      origin: url,
      socketPath: undefined,
      ca: undefined,
      insecure: false,
      reuse: 'shared',
      parser: 'strict',
      ...target,
    },
    { connect: 2000, response: 2000, idle: 2000, ...deadlines },
    clock,
  )
  closeLater(() => connections.close())
  return connections
}

interface Told {
  readonly said: readonly string[]
  readonly connection: Connection
}

/** Sends one request, and gives what was told of its answer, once that is over; the connection is given back. */
function ask(
  connections: Connections,
  request: Partial<DeviceRequest> = {},
  act: (event: string, connection: Connection) => void = () => {},
): Promise<Told> {
  return new Promise((resolve) => {
    const connection = connections.borrow(false)
    const said: string[] = []
    const tell = (event: string): void => {
      said.push(event)
      act(event, connection)
    }
    const over = (event: string, answered: boolean): void => {
      tell(event)
      connection.release(answered)
      resolve({ said, connection })
    }
    const handler: ResponseHandler = {
      inform: (status) => tell(`interim ${status}`),
      head: ({ status }) => tell(`head ${status}`),
      data: (chunk) => tell(chunk.toString()),
      end: (last) => over(`end ${last?.toString() ?? ''}`, true),
      failed: (error, silent) => over(`${failureOf(error)}${silent ? ', in silence' : ''}`, false),
    }
    connection.send(
      { method: 'GET', target: '/', fields: ['Host', 'd'], framing: null, body: undefined, ...request },
      handler,
    )
  })
}

async function* pieces(...texts: readonly string[]): AsyncGenerator<Buffer, void, void> {
  for (const text of texts) yield Buffer.from(text)
}

const upload = (framing: number | 'chunked', ...texts: readonly string[]): Partial<DeviceRequest> => ({
  method: 'POST',
  framing,
  fields: ['Host', 'd', ...(framing === 'chunked' ? [] : ['Content-Length', String(framing)])],
  body: pieces(...texts),
})

/** A device that answers every request in this way, on every connection. */
const answering = (act: (peer: RawPeer, head: string) => unknown) =>
  startRawDevice(async (peer) => {
    for (;;) await act(peer, await nextRequest(peer))
  })

const NEVER = new Promise<void>(() => {})

describe('A connection to the device', () => {
  it('carries one request after another, the answer in one go where it came in one', async () => {
    const device = await answering((peer) => peer.write(OK))
    const connections = open(device.url)
    for (let i = 0; i < 3; i += 1) expect((await ask(connections)).said).toEqual(['head 200', 'end ok'])
    expect(device.peers).toHaveLength(1)
  })

  it.each([
    ['that the device closes', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'],
    [
      'that the device closes, said with a tab',
      'HTTP/1.1 200 OK\r\nConnection: close\t\r\nContent-Length: 0\r\n\r\n',
    ],
    [
      'that the device closes, said with tabs in a list',
      'HTTP/1.1 200 OK\r\nConnection: x\t,\tclose\t, y\r\nContent-Length: 0\r\n\r\n',
    ],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n'],
    [
      'that the device keeps for two seconds only',
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 0\r\n\r\n',
    ],
    ['with a 204 that announces a body', 'HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n'],
    ['with an answer nobody asked for behind the first', `${OK}${OK}`],
  ])('H100 H48 is not used again: %s', async (_name, bytes) => {
    const device = await answering((peer) => peer.write(bytes))
    const connections = open(device.url)
    await ask(connections)
    await ask(connections)
    expect(device.peers).toHaveLength(2)
  })

  it('H100 is closed at a byte that answers no request', async () => {
    const device = await answering((peer) => peer.write(OK))
    const connections = open(device.url)
    await ask(connections)
    const peer = await device.waitForConnection(1)
    const closed = once(peer.socket, 'end')
    peer.write(OK.replace('ok', 'no'))
    await closed
    expect((await ask(connections)).said).toEqual(['head 200', 'end ok'])
    expect(device.peers).toHaveLength(2)
  })

  it('H57 is kept where a device of HTTP/1.0 says so, with a tab behind it', async () => {
    const device = await answering((peer) =>
      peer.write('HTTP/1.0 200 OK\r\nConnection: keep-alive\t\r\nContent-Length: 0\t\r\n\r\n'),
    )
    const connections = open(device.url)
    for (let i = 0; i < 3; i += 1) expect((await ask(connections)).said).toEqual(['head 200', 'end '])
    expect(device.peers).toHaveLength(1)
  })

  it('H57 is kept through a line end too many behind an answer', async () => {
    const device = await answering((peer) => peer.write(`${OK}\r\n`))
    const connections = open(device.url)
    for (let i = 0; i < 3; i += 1) expect((await ask(connections)).said.at(-1)).toBe('end ok')
    expect(device.peers).toHaveLength(1)
  })

  it('H100 is closed when nobody has used it for four seconds, however long it is in use', async () => {
    const device = await answering((peer) => peer.write(OK))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const clock = stillClock()
    const pass = (time: number): void => {
      for (let passed = 0; passed < time; passed += 50) {
        clock.advance(50)
        vi.advanceTimersByTime(50)
      }
    }
    const connections = open(device.url, { clock })
    for (let i = 0; i < 30; i += 1) {
      await ask(connections)
      pass(150)
    }
    const { socket } = await device.waitForConnection(1)
    const closed = once(socket, 'end')
    pass(3800)
    await ask({ ...connections, borrow: () => connections.borrow(true) })
    pass(4050)
    expect(device.peers).toHaveLength(1)
    await closed
  })

  it('H55 a response deadline below a second is exact', async () => {
    const device = await answering(() => NEVER)
    const connections = open(device.url, { deadlines: { response: 120 } })
    const start = performance.now()
    const here = delay(120).then(() => performance.now() - start) // as late as this machine is
    expect((await ask(connections)).said).toEqual(['http_response_timeout, in silence'])
    expect(performance.now() - start).toBeGreaterThan(115)
    expect(performance.now() - start - (await here)).toBeLessThan(500)
  })

  it('H55 the deadline is that of each request, not of the connection', async () => {
    let asked = 0
    const device = await answering(async (peer) => {
      asked += 1
      await new Promise((resolve) => setTimeout(resolve, 60))
      if (asked < 6) peer.write(OK)
    })
    const connections = open(device.url, { deadlines: { response: 200 } })
    for (let i = 0; i < 5; i += 1) expect((await ask(connections)).said.at(-1)).toBe('end ok')
    expect((await ask(connections)).said).toEqual(['http_response_timeout, in silence'])
    expect(device.peers).toHaveLength(1)
  })

  it('H55 a body that stalls is told from one that its reader holds up', async () => {
    const device = await answering((peer) => peer.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'))
    const connections = open(device.url, { deadlines: { idle: 100 } })
    let resumed = 0
    const { said } = await ask(connections, {}, (event, connection) => {
      if (event !== 'half') return
      connection.pause()
      setTimeout(() => {
        resumed = performance.now()
        connection.resume()
      }, 300)
    })
    expect(said).toEqual(['head 200', 'half', 'http_response_incomplete'])
    expect(performance.now() - resumed).toBeGreaterThan(90)
  })

  it('H49 C24 a reset never ends a body, also where only the end of the connection would', async () => {
    const device = await answering((peer) => peer.write('HTTP/1.1 200 OK\r\n\r\nhalf'))
    const { said } = await ask(open(device.url), {}, (event) => {
      if (event === 'half') device.peers[0]?.socket.resetAndDestroy()
    })
    expect(said).toEqual(['head 200', 'half', 'connection_terminated'])
    const closing = await answering((peer) => peer.end('HTTP/1.1 200 OK\r\n\r\nwhole'))
    expect((await ask(open(closing.url))).said.join()).toMatch(/^head 200,(?:end whole|whole,end )$/)
  })

  it.each([
    ['before a byte of the answer', '', ['connection_terminated, in silence']],
    ['within its head', 'HTTP/1.1 2', ['connection_terminated']],
    [
      'within its body',
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
      ['head 200', 'half', 'http_response_incomplete'],
    ],
  ])('H49 that the device closes %s is told so', async (_name, bytes, said) => {
    const device = await answering((peer) => peer.end(bytes))
    expect((await ask(open(device.url))).said).toEqual(said)
  })

  it('H46 that does not open in time is given up', async () => {
    // Takes the connection, and says nothing of TLS.
    const device = await startRawDevice(() => NEVER)
    const connections = open(device.url.replace('http:', 'https:'), { deadlines: { connect: 100 } })
    expect((await ask(connections)).said).toEqual(['connection_timeout, in silence'])
  })
})

describe('An upload', () => {
  it.each<[string, number | 'chunked', readonly string[], string]>([
    ['of one piece', 5, ['hello'], '\r\n\r\nhello'],
    ['of several', 11, ['hello', '', ' world'], '\r\n\r\nhello world'],
    [
      'in chunks',
      'chunked',
      ['hello', '', ' world!!!!'],
      '\r\n\r\n5\r\nhello\r\na\r\n world!!!!\r\n0\r\n\r\n',
    ],
    ['in chunks, of nothing', 'chunked', [], '\r\n\r\n0\r\n\r\n'],
  ])('C21 %s arrives whole, and the connection is kept', async (_name, framing, texts, end) => {
    const request = upload(framing, ...texts)
    const device = await startRawDevice(async (peer) => {
      for (let i = 1; i < 3; i += 1) {
        await expect.poll(() => peer.received.split(end).length).toBe(i + 1)
        peer.write(OK)
      }
    })
    const connections = open(device.url)
    expect((await ask(connections, request)).said).toEqual(['head 200', 'end ok'])
    expect((await ask(connections, { ...request, body: pieces(...texts) })).said).toEqual([
      'head 200',
      'end ok',
    ])
    expect(device.peers).toHaveLength(1)
  })

  it.each([
    ['longer', upload(5, 'hell', 'o, GET / HTTP/1.1\r\n\r\n')],
    ['longer from the first piece on', upload(5, 'hello, GET / HTTP/1.1\r\n\r\n')],
    ['shorter', upload(5, 'hell')],
  ])('H100 that is %s than it said fails, and nothing follows it', async (_name, request) => {
    const device = await startRawDevice(() => NEVER)
    expect((await ask(open(device.url), request)).said).toEqual(['http_protocol_error, in silence'])
    for (const { received } of device.peers) expect(received).not.toMatch(/GET/)
  })

  it('C24 is answered early: the answer counts, and the connection does not carry another request', async () => {
    const device = await answering((peer) => peer.write(OK))
    const connections = open(device.url)
    async function* endless(): AsyncGenerator<Buffer, void, void> {
      yield Buffer.from('begun')
      await NEVER
    }
    expect((await ask(connections, { ...upload(500), body: endless() })).said).toEqual(['head 200', 'end ok'])
    expect((await ask(connections)).said).toEqual(['head 200', 'end ok'])
    expect(device.peers).toHaveLength(2)
  })

  it('H55 may be slow, but a device that takes nothing of it is given up', async () => {
    const device = await startRawDevice(({ socket }) => {
      socket.pause()
    })
    const connections = open(device.url, { deadlines: { response: 100 } })
    async function* slow(): AsyncGenerator<Buffer, void, void> {
      yield Buffer.from('slow')
      await new Promise((resolve) => setTimeout(resolve, 350))
      for (;;) yield Buffer.alloc(1024 * 1024)
    }
    const start = performance.now()
    const { said } = await ask(connections, { ...upload('chunked'), body: slow() })
    expect(said).toEqual(['http_response_timeout, in silence'])
    expect(performance.now() - start).toBeGreaterThan(440)
  })
})

describe('TLS to the device', () => {
  it('takes up the session of the connection before', async () => {
    const { key, cert } = await makeCertificate()
    const reused: boolean[] = []
    const server = createTlsServer({ key, cert }, (socket) => {
      reused.push(socket.isSessionReused())
      socket.on('error', () => {})
      socket.on('data', () => socket.end(OK.replace('\r\n', '\r\nConnection: close\r\n')))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closeLater(() => void server.close())
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    const connections = open(`https://127.0.0.1:${port}`, { target: { ca: cert } })
    for (let i = 0; i < 3; i += 1) expect((await ask(connections)).said.at(-1)).toBe('end ok')
    expect(reused).toEqual([false, true, true])
  })
})
