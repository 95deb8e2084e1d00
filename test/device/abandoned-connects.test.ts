import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { type Connections, createConnections, type Loan } from '../../src/device/connections.ts'
import { failureOf } from '../../src/device/failure.ts'
import type { DeviceRequest, ResponseHandler } from '../../src/device/request.ts'
import { deviceTls } from '../../src/device/target.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { expectUnharmed } from '../support/expectations.ts'
import { headers, requestFields, resetStream, settings } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { unusedPort } from '../support/raw.ts'
import { nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { nextConnecting } from '../support/waiting.ts'

const PLACES = 4
const QUEUE = 8
const SESSIONS = 20
const RESETS = 90

it('H37 C25 requests that the client resets immediately open no connection to the device', async () => {
  const sidecar = await startSidecar({
    transport: 'h2',
    config: { upstream: { max_in_flight: PLACES, queue: { size: QUEUE } } },
  })
  const token = await sidecar.token()
  const fields = requestFields(['authorization', `Bearer ${token}`])
  const frames = Array.from({ length: RESETS }, (_, i) => [
    headers(2 * i + 1, fields),
    resetStream(2 * i + 1),
  ]).flat()
  for (let session = 0; session < SESSIONS; session += 1) {
    const { raw } = await rawSession(sidecar.url, { opening: [settings(), ...frames] })
    raw.end()
  }
  await expectUnharmed(sidecar, token)
  // Each session may forward one request: a packet may end between a request and its reset.
  expect(sidecar.device.connections).toBeLessThanOrEqual(SESSIONS)
})

const GET: DeviceRequest = {
  method: 'GET',
  target: '/',
  fields: ['Host', 'd'],
  framing: null,
  body: undefined,
}

function open(origin: string, connect: number, ca?: string, clock = stillClock()): Connections {
  const connections = createConnections(
    { origin, socketPath: undefined, tls: deviceTls({ ca }), reuse: 'shared', parser: 'strict' },
    { connect, response: 2000, idle: 2000 },
    clock,
  )
  closeLater(() => connections.close())
  return connections
}

/** Sends a request. Resolves with `responded` or the failure. */
function sendRequest(loan: Loan, sent?: ResponseHandler['sent']): Promise<string> {
  return new Promise((resolve) => {
    const finish = (result: string, responded: boolean): void => {
      loan.release(responded)
      resolve(result)
    }
    loan.connection.send(GET, {
      ...(sent && { sent }),
      inform() {},
      head() {},
      data() {},
      end: () => finish('responded', true),
      failed: (error) => finish(failureOf(error), false),
    })
  })
}

/** Borrows a connection and aborts its request before the connection is open. */
async function abortWhileConnecting(connections: Connections): Promise<void> {
  const loan = connections.borrow(true)
  const end = sendRequest(loan)
  loan.connection.abort(new Error('the client has left'))
  await end
}

/** A device that accepts connections and sends nothing. */
const startSilentDevice = () => startRawDevice(() => new Promise<void>(() => {}))

describe('a connection whose client leaves while it is being opened', () => {
  it('C24 carries the next request, and not the aborted one', async () => {
    let requests = 0
    const device = await startRawDevice(async (peer) => {
      for (;;) {
        await nextRequest(peer)
        requests += 1
        peer.write(OK)
      }
    })
    const connections = open(device.url, 2000)
    for (let i = 0; i < 10; i += 1) await abortWhileConnecting(connections)
    expect(await sendRequest(connections.borrow(true))).toBe('responded')
    expect(await sendRequest(connections.borrow(true))).toBe('responded')
    expect(device.peers).toHaveLength(1)
    expect(requests).toBe(2)
  })

  it('C24 carries the next request over TLS', async () => {
    const { key, cert } = await makeCertificate()
    let opened = 0
    const server = createTlsServer({ key, cert }, (socket) => {
      opened += 1
      socket.on('error', () => {})
      socket.on('data', () => socket.write(OK))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closeLater(() => void server.close())
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    const connections = open(`https://127.0.0.1:${port}`, 2000, cert)
    await abortWhileConnecting(connections)
    expect(await sendRequest(connections.borrow(true))).toBe('responded')
    expect(opened).toBe(1)
  })

  it('H46 fails at its own connect deadline, although another request has it by then', async () => {
    const device = await startSilentDevice()
    const clock = stillClock()
    const connections = open(device.url.replace('http:', 'https:'), 3000, undefined, clock)
    await abortWhileConnecting(connections)
    await device.waitForConnection(1)
    await clock.advance(2000)
    let ended: string | undefined
    void sendRequest(connections.borrow(true)).then((end) => {
      ended = end
    })
    await clock.advance(999)
    expect(ended).toBeUndefined()
    await clock.advance(1)
    expect(ended).toBe('connection_timeout')
    expect(device.peers).toHaveLength(1)
  })

  it('C24 fails the request that has it by then', async () => {
    const connections = open(`http://127.0.0.1:${await unusedPort()}`, 2000)
    await abortWhileConnecting(connections)
    expect(await sendRequest(connections.borrow(true))).toBe('connection_refused')
    expect(await sendRequest(connections.borrow(true))).toBe('connection_refused')
  })

  it('H100 is closed when it stays idle, like any other', async () => {
    const device = await startSilentDevice()
    const clock = stillClock()
    const connections = open(device.url, 60_000, undefined, clock)
    await abortWhileConnecting(connections)
    const { socket } = await device.waitForConnection(1)
    const closed = once(socket, 'end')
    await passUntil(clock, closed)
  })

  it('C24 counts as reused once it is open, because the device may have closed it', async () => {
    const device = await startRawDevice(async (peer) => {
      await nextRequest(peer)
      peer.socket.resetAndDestroy()
    })
    const connections = open(device.url, 2000)
    await abortWhileConnecting(connections)
    const reused: boolean[] = []
    const send = () => sendRequest(connections.borrow(true), (was) => void reused.push(was))
    expect(await send()).toBe('connection_terminated')
    const opening = nextConnecting()
    await abortWhileConnecting(connections)
    const socket = await opening
    if (socket.connecting) await once(socket, 'connect')
    expect(await send()).toBe('connection_terminated')
    expect(reused).toEqual([false, true])
  })

  it('H48 does not count when the sidecar learns how long the device keeps idle connections', async () => {
    let closing = true
    const device = await startRawDevice(async (peer) => {
      if (closing) peer.end()
      else
        for (;;) {
          await nextRequest(peer)
          peer.write(OK)
        }
    })
    const connections = open(device.url, 2000)
    await abortWhileConnecting(connections)
    await once((await device.waitForConnection(1)).socket, 'close')
    closing = false
    for (let i = 0; i < 3; i += 1) expect(await sendRequest(connections.borrow(false))).toBe('responded')
    expect(device.peers).toHaveLength(2)
  })

  it('is closed immediately when the sidecar stops', async () => {
    const device = await startSilentDevice()
    const connections = open(device.url.replace('http:', 'https:'), 60_000)
    await abortWhileConnecting(connections)
    const { socket } = await device.waitForConnection(1)
    const closed = once(socket, 'end')
    await connections.close()
    await closed
  })
})
