import { once } from 'node:events'
import { Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, it, vi } from 'vitest'
import { type Connection, type Connections, createConnections } from '../../src/device/connections.ts'
import { failureOf } from '../../src/device/failure.ts'
import { Opener } from '../../src/device/opener.ts'
import { sendOwnRequest } from '../../src/device/own-request.ts'
import type { DeviceRequest, ResponseHandler } from '../../src/device/request.ts'
import type { UpstreamDeadlines, UpstreamTarget } from '../../src/device/target.ts'
import { deviceTls } from '../../src/device/target.ts'
import { AMPLE_CAPACITY, type Capacity, Turns } from '../../src/device/turns.ts'
import type { Clock } from '../../src/system/clock.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import type { RawPeer } from '../support/raw.ts'
import { nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { PATIENCE } from '../support/running-test.ts'

interface OpenOptions {
  readonly deadlines?: Partial<UpstreamDeadlines>
  readonly target?: Partial<UpstreamTarget>
  readonly clock?: Clock
  readonly capacity?: Capacity
  readonly signal?: AbortSignal
}

function open(
  url: string,
  { deadlines, target, clock = stillClock(), capacity = AMPLE_CAPACITY, signal }: OpenOptions = {},
): Connections {
  const connections = createConnections(
    {
      origin: url,
      socketPath: undefined,
      reuse: 'shared',
      parser: 'strict',
      ...target,
    },
    { connect: PATIENCE, response: PATIENCE, idle: PATIENCE, ...deadlines },
    clock,
    { capacity, ...(signal && { signal }) },
  )
  closeLater(() => connections.close())
  return connections
}

interface Recorded {
  readonly events: readonly string[]
  readonly connection: Connection
}

/** Sends one request and releases the connection after its response. Resolves with the events of the response. */
function sendRequest(
  connections: Connections,
  request: Partial<DeviceRequest> = {},
  act: (event: string, connection: Connection) => void = () => {},
): Promise<Recorded> {
  return new Promise((resolve) => {
    const loan = connections.borrow(false)
    const { connection } = loan
    const events: string[] = []
    const record = (event: string): void => {
      events.push(event)
      act(event, connection)
    }
    const finish = (event: string, responded: boolean): void => {
      record(event)
      loan.release(responded)
      resolve({ events, connection })
    }
    const handler: ResponseHandler = {
      inform: (status) => record(`interim ${status}`),
      head: ({ status }) => record(`head ${status}`),
      data: (chunk) => record(chunk.toString()),
      end: (last) => finish(`end ${last?.toString() ?? ''}`, true),
      failed: (error, loss) =>
        finish(`${failureOf(error)}${loss === 'begun' ? '' : ', without a byte'}`, false),
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

/** A device that responds to every request with `act`. */
const startResponding = (act: (peer: RawPeer, head: string) => unknown) =>
  startRawDevice(async (peer) => {
    for (;;) await act(peer, await nextRequest(peer))
  })

const NEVER = new Promise<void>(() => {})

describe('a device that crashes', () => {
  it('H198 that it drops a connection before it is open is a sign that it has no room for it', async () => {
    const device = await startRawDevice((peer) => peer.reset())
    const signs: string[] = []
    const capacity = {
      ...AMPLE_CAPACITY,
      refused: () => signs.push('refused'),
      reset: () => signs.push('reset'),
    }
    const connections = open(device.url.replace('http:', 'https:'), { capacity })
    expect((await sendRequest(connections)).events).toEqual(['connection_terminated, without a byte'])
    expect(new Set(signs)).toEqual(new Set(['reset']))
  })

  it('H48 it was away also if its last connection ended after its first refusal', () => {
    const clock = stillClock()
    const onReturn = vi.fn()
    const turns = new Turns(clock, () => false, 1_000, onReturn)
    turns.refused()
    clock.advance(1)
    turns.ended({ onEnded: undefined }, true)
    clock.advance(1_500)
    for (let i = 0; i < 2; i += 1) turns.opened()
    expect(onReturn).toHaveBeenCalledTimes(1)
  })

  it('H178 a refusal that this process reads late, after a stall, does not make it a device that is off', () => {
    const clock = stillClock()
    const turns = new Turns(clock, () => false, 1_000, vi.fn())
    turns.ended({ onEnded: undefined }, true)
    const opening = clock.monotonic()
    clock.advance(1_500)
    expect(turns.again(false, opening, 0, 1_000)).toBeGreaterThan(0)
    expect(turns.again(false, clock.monotonic(), 0, 1_000)).toBeUndefined()
    expect(turns.again(true, opening, 0, 1_000)).toBeUndefined()
  })

  it('H48 its connections are reused again when it is back: it did not close them because they were idle', async () => {
    const clock = stillClock()
    const first = await startDevice()
    const connections = open(first.url, { clock })
    for (let i = 0; i < 2; i += 1) expect((await sendRequest(connections)).events).toContain('head 200')
    first.server.once('request', () => void first.stop())
    first.handle(() => {})
    await sendRequest(connections)
    for (let i = 0; i < 2; i += 1) {
      await clock.advance(1_500)
      expect((await sendRequest(connections)).events).toEqual(['connection_refused, without a byte'])
    }
    const second = await startDevice(undefined, { port: Number(new URL(first.url).port) })
    for (let i = 0; i < 10; i += 1) expect((await sendRequest(connections)).events).toContain('head 200')
    expect(second.connections).toBe(1)
  })
})

/** The pauses between the connections to a device whose places are free. */
const turnsOn = (clock: MovableClock): Turns =>
  new Turns(
    clock,
    () => true,
    PATIENCE,
    () => {},
  )

describe('what a device needs between two connections', () => {
  it('H47 a shorter pause that worked is kept, also by a connection beside others', () => {
    const clock = stillClock()
    const turns = turnsOn(clock)
    const openSocket = Object.assign(() => new Socket(), { isResolving: () => false, forgetAddress() {} })
    const deadlines = { connect: PATIENCE, response: PATIENCE, idle: PATIENCE }
    const events = {
      ...{ mayOpenAgain: () => false, onOpenAgain() {}, onOpen() {}, onClosedByDevice() {} },
      ...{ onEnd() {}, onLost() {}, onClosed() {}, takesLarge: false, midResponse: false },
      received: () => 'small' as const,
    }
    turns.accepted(100, 0)
    const settings = { clock, turns, openSocket, deadlines, capacity: AMPLE_CAPACITY }
    const trial = new Opener(settings, events, true, false)
    trial.accepted(false)
    trial.close(false)
    expect(turns.pause(false)).toBe(50)
  })

  it('H47 a dropped request is tried on a connection that lives twice as long, by at most 250 ms', async () => {
    const clock = stillClock()
    const turns = turnsOn(clock)
    const opening = clock.monotonic()
    expect(turns.trial(opening)).toBe(10)
    await clock.advance(20)
    expect(turns.trial(opening)).toBe(10 + 40)
    await clock.advance(500)
    expect(turns.trial(opening)).toBe(10 + 250)
  })
})

describe('attempts to open a connection again', () => {
  it('H266 are as many as the bound that holds then: a device that comes back gets no more at once', async () => {
    let bound = 8
    let phase: 'first' | 'crashes' | 'back' = 'first'
    let at = 0
    let most = 0
    const doomed: RawPeer[] = []
    const held: (() => void)[] = []
    const device = await startRawDevice(async (peer) => {
      if (phase === 'crashes') {
        if (doomed.push(peer) < 8) return
        bound = 4
        phase = 'back'
        for (const each of doomed) each.reset()
        return
      }
      at += 1
      most = Math.max(most, at)
      await nextRequest(peer)
      const answer = (): void => {
        at -= 1
        peer.write(OK)
      }
      if (phase === 'first') answer()
      else held.push(answer)
      if (held.length === 4) for (const each of held.splice(0)) each()
    })
    const capacity = {
      ...AMPLE_CAPACITY,
      load: {
        inside: 9,
        get places() {
          return bound
        },
      },
    }
    const clock = stillClock()
    const deadlines = { connect: 20_000, response: 20_000 }
    const connections = open(device.url, { capacity, clock, deadlines })
    await sendRequest(connections)
    phase = 'crashes'
    const all = await passUntil(clock, Promise.all(Array.from({ length: 8 }, () => sendRequest(connections))))
    expect(all.every(({ events }) => events.includes('head 200'))).toBe(true)
    expect(most).toBe(4)
  })
})

describe('a connection to the device', () => {
  it('carries one request after another, and delivers a response of one packet in one event', async () => {
    const device = await startResponding((peer) => peer.write(OK))
    const connections = open(device.url)
    for (let i = 0; i < 3; i += 1)
      expect((await sendRequest(connections)).events).toEqual(['head 200', 'end ok'])
    expect(device.peers).toHaveLength(1)
  })

  it.each([
    [
      'the response has Connection: close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
    ],
    [
      'the response has Connection: close and a tab',
      'HTTP/1.1 200 OK\r\nConnection: close\t\r\nContent-Length: 0\r\n\r\n',
    ],
    [
      'the response has close in a list with tabs',
      'HTTP/1.1 200 OK\r\nConnection: x\t,\tclose\t, y\r\nContent-Length: 0\r\n\r\n',
    ],
    ['the response is HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n'],
    [
      'the response has Keep-Alive: timeout=2',
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 0\r\n\r\n',
    ],
    ['a 204 has a Content-Length', 'HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n'],
    ['an unsolicited response follows the first', `${OK}${OK}`],
  ])('H100 H48 is not reused if %s', async (_name, bytes) => {
    const device = await startResponding((peer) => peer.write(bytes))
    const connections = open(device.url)
    await sendRequest(connections)
    await sendRequest(connections)
    expect(device.peers).toHaveLength(2)
  })

  it('carries a request of Postern itself, whose body is kept whole though it comes in parts', async () => {
    const body = Buffer.alloc(128 * 1024, 'abc').toString()
    const device = await startDevice((_request, response) => void response.end(body))
    const request = { method: 'GET', target: '/', fields: ['Host', 'd'] }
    const connections = open(device.url)
    expect((await sendOwnRequest(connections, { ...request, keepsBody: true }, false)).body?.toString()).toBe(
      body,
    )
    expect((await sendOwnRequest(connections, request, false)).body).toBeUndefined()
  })

  it('H100 is closed at the first unsolicited byte', async () => {
    const device = await startResponding((peer) => peer.write(OK))
    const connections = open(device.url)
    await sendRequest(connections)
    const peer = await device.waitForConnection(1)
    const closed = once(peer.socket, 'end')
    peer.write(OK.replace('ok', 'no'))
    await closed
    expect((await sendRequest(connections)).events).toEqual(['head 200', 'end ok'])
    expect(device.peers).toHaveLength(2)
  })

  it('H57 is reused if an HTTP/1.0 response has Connection: keep-alive with a trailing tab', async () => {
    const device = await startResponding((peer) =>
      peer.write('HTTP/1.0 200 OK\r\nConnection: keep-alive\t\r\nContent-Length: 0\t\r\n\r\n'),
    )
    const connections = open(device.url)
    for (let i = 0; i < 3; i += 1)
      expect((await sendRequest(connections)).events).toEqual(['head 200', 'end '])
    expect(device.peers).toHaveLength(1)
  })

  it('H57 is reused despite an extra CRLF after a response', async () => {
    const device = await startResponding((peer) => peer.write(`${OK}\r\n`))
    const connections = open(device.url)
    for (let i = 0; i < 3; i += 1) expect((await sendRequest(connections)).events.at(-1)).toBe('end ok')
    expect(device.peers).toHaveLength(1)
  })

  it('H100 is closed after four idle seconds, regardless of its age', async () => {
    const device = await startResponding((peer) => peer.write(OK))
    const clock = stillClock()
    const connections = open(device.url, { clock })
    for (let i = 0; i < 30; i += 1) {
      await sendRequest(connections)
      await clock.advance(150)
    }
    const { socket } = await device.waitForConnection(1)
    const closed = once(socket, 'end')
    await clock.advance(3800)
    await sendRequest({ ...connections, borrow: () => connections.borrow(true) })
    await clock.advance(4050)
    expect(device.peers).toHaveLength(1)
    await closed
  })

  it('H55 a response deadline below one second is exact', async () => {
    const asked = Promise.withResolvers<void>()
    const device = await startResponding(() => {
      asked.resolve()
      return NEVER
    })
    const clock = stillClock()
    const connections = open(device.url, { clock, deadlines: { response: 120 } })
    const failures: string[] = []
    void sendRequest(connections, {}, (event) => failures.push(event))
    await asked.promise
    await clock.advance(119)
    expect(failures).toEqual([])
    await clock.advance(1)
    expect(failures).toEqual(['http_response_timeout, without a byte'])
  })

  it('H55 the response deadline applies to each request, not to the connection', async () => {
    let asked = Promise.withResolvers<RawPeer>()
    const device = await startResponding((peer) => asked.resolve(peer))
    const clock = stillClock()
    const connections = open(device.url, { clock, deadlines: { response: 200 } })
    for (let i = 0; i < 6; i += 1) {
      const request = sendRequest(connections)
      const peer = await asked.promise
      asked = Promise.withResolvers()
      await clock.advance(i < 5 ? 150 : 250)
      if (i < 5) peer.write(OK)
      expect((await request).events.at(-1)).toBe(i < 5 ? 'end ok' : 'http_response_timeout, without a byte')
    }
    expect(device.peers).toHaveLength(1)
  })

  it('H55 the body deadline does not run while the reader has paused the connection', async () => {
    const device = await startResponding((peer) =>
      peer.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
    )
    const clock = stillClock()
    const connections = open(device.url, { clock, deadlines: { idle: 10_000 } })
    const events: string[] = []
    const paused = Promise.withResolvers<Connection>()
    void sendRequest(connections, {}, (event, connection) => {
      events.push(event)
      if (event !== 'half') return
      connection.pause()
      paused.resolve(connection)
    })
    const connection = await paused.promise
    await clock.advance(30_000)
    connection.resume()
    await clock.advance(9_999)
    expect(events).toEqual(['head 200', 'half'])
    await clock.advance(1)
    expect(events).toEqual(['head 200', 'half', 'http_response_incomplete'])
  })

  it('H49 C24 a reset never completes a body, even one that ends with the connection', async () => {
    const device = await startResponding((peer) => peer.write('HTTP/1.1 200 OK\r\n\r\nhalf'))
    const { events } = await sendRequest(open(device.url), {}, (event) => {
      if (event === 'half') device.peers[0]?.socket.resetAndDestroy()
    })
    expect(events).toEqual(['head 200', 'half', 'connection_terminated'])
    const closing = await startResponding((peer) => peer.end('HTTP/1.1 200 OK\r\n\r\nwhole'))
    expect((await sendRequest(open(closing.url))).events.join()).toMatch(
      /^head 200,(?:end whole|whole,end )$/,
    )
  })

  it.each([
    ['before the first byte of the response', '', ['connection_terminated, without a byte']],
    ['within its head', 'HTTP/1.1 2', ['connection_terminated']],
    [
      'within its body',
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
      ['head 200', 'half', 'http_response_incomplete'],
    ],
  ])('H49 that the device closes %s fails with the matching error', async (_name, bytes, events) => {
    const device = await startResponding((peer) => peer.end(bytes))
    expect((await sendRequest(open(device.url))).events).toEqual(events)
  })

  it('H46 that is not open at the connect deadline fails', async () => {
    // Accepts the connection and sends no TLS record.
    const device = await startRawDevice(() => NEVER)
    const clock = stillClock()
    const deadlines = { connect: 10_000 }
    const connections = open(device.url.replace('http:', 'https:'), { clock, deadlines })
    const events: string[] = []
    void sendRequest(connections, {}, (event) => events.push(event))
    await device.waitForConnection(1)
    await clock.advance(9_999)
    expect(events).toEqual([])
    await clock.advance(1)
    expect(events).toEqual(['connection_timeout, without a byte'])
  })
})

describe('an upload', () => {
  it.each<[string, number | 'chunked', readonly string[], string]>([
    ['of one piece', 5, ['hello'], '\r\n\r\nhello'],
    ['of several pieces', 11, ['hello', '', ' world'], '\r\n\r\nhello world'],
    [
      'in chunks',
      'chunked',
      ['hello', '', ' world!!!!'],
      '\r\n\r\n5\r\nhello\r\na\r\n world!!!!\r\n0\r\n\r\n',
    ],
    ['in chunks, empty', 'chunked', [], '\r\n\r\n0\r\n\r\n'],
  ])('C21 %s arrives complete, and the connection is reused', async (_name, framing, texts, end) => {
    const request = upload(framing, ...texts)
    const clock = stillClock()
    const device = await startRawDevice(async (peer) => {
      for (let i = 1; i < 3; i += 1) {
        await expect.poll(() => peer.received.split('Host: d').length, { interval: 5 }).toBe(i + 1)
        // The head of an upload of unknown length goes ahead.
        await clock.advance(20)
        await expect.poll(() => peer.received.split(end).length).toBe(i + 1)
        peer.write(OK)
      }
    })
    const connections = open(device.url, { clock })
    expect((await sendRequest(connections, request)).events).toEqual(['head 200', 'end ok'])
    expect((await sendRequest(connections, { ...request, body: pieces(...texts) })).events).toEqual([
      'head 200',
      'end ok',
    ])
    expect(device.peers).toHaveLength(1)
  })

  it.each([
    ['longer than its Content-Length', upload(5, 'hell', 'o, GET / HTTP/1.1\r\n\r\n')],
    ['longer than its Content-Length in its first piece', upload(5, 'hello, GET / HTTP/1.1\r\n\r\n')],
    ['shorter than its Content-Length', upload(5, 'hell')],
  ])('H100 that is %s fails, and no further byte reaches the device', async (_name, request) => {
    const device = await startRawDevice(() => NEVER)
    expect((await sendRequest(open(device.url), request)).events).toEqual([
      'http_protocol_error, without a byte',
    ])
    for (const { received } of device.peers) expect(received).not.toMatch(/GET/)
  })

  it('C24 that gets an early response delivers it, and the connection is not reused', async () => {
    const device = await startResponding((peer) => peer.write(OK))
    const connections = open(device.url)
    async function* endless(): AsyncGenerator<Buffer, void, void> {
      yield Buffer.from('begun')
      await NEVER
    }
    expect((await sendRequest(connections, { ...upload(500), body: endless() })).events).toEqual([
      'head 200',
      'end ok',
    ])
    expect((await sendRequest(connections)).events).toEqual(['head 200', 'end ok'])
    expect(device.peers).toHaveLength(2)
  })

  it('H55 may have a slow client, but fails if the device stops reading', async () => {
    const device = await startRawDevice(({ socket }) => {
      socket.pause()
    })
    const clock = stillClock()
    const connections = open(device.url, { clock, deadlines: { response: 10_000 } })
    const [begun, more] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    async function* slow(): AsyncGenerator<Buffer, void, void> {
      yield Buffer.from('slow')
      begun.resolve()
      await more.promise
      for (;;) yield Buffer.alloc(1024 * 1024)
    }
    const early: string[] = []
    const request = { ...upload('chunked'), body: slow() }
    const whole = sendRequest(connections, request, (event) => early.push(event))
    await passUntil(clock, begun.promise)
    await clock.advance(35_000)
    expect(early).toEqual([])
    const since = clock.monotonic()
    more.resolve()
    const { events } = await passUntil(clock, whole)
    expect(events).toEqual(['http_response_timeout, without a byte'])
    expect(clock.monotonic() - since).toBeGreaterThanOrEqual(10_000)
  })
})

it('connections close, also if their signal ends all requests meanwhile', async () => {
  const device = await startDevice()
  const over = new AbortController()
  const connections = open(device.url, { signal: over.signal })
  expect((await sendRequest(connections)).events[0]).toBe('head 200')
  const closed = connections.close()
  over.abort()
  await closed
  expect(connections.unused).toBe(true)
})

describe('TLS to the device', () => {
  it('resumes the session of the previous connection', async () => {
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
    const connections = open(`https://127.0.0.1:${port}`, { target: { tls: deviceTls({ ca: cert }) } })
    for (let i = 0; i < 3; i += 1) expect((await sendRequest(connections)).events.at(-1)).toBe('end ok')
    expect(reused).toEqual([false, true, true])
  })
})
