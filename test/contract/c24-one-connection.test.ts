import { once } from 'node:events'
import net from 'node:net'
import { describe, expect, it } from 'vitest'
import { Turns } from '../../src/device/turns.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { nextRequest, OK, startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { passServing } from '../support/waiting.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

interface Single {
  readonly url: string
  /** Connections that it turned away. */
  turnedAway(): number
}

const CLOSING = OK.replace('\r\n', '\r\nConnection: close\r\n')

/**
 * A device that serves one connection at a time, and resets any other, until `rest` ms of `clock` after the end of that one.
 *
 * @param closes it ends the connection after each response
 */
async function startSingle({ rest = 0, closes = true, clock = stillClock() }): Promise<Single> {
  let busy = false
  let turnedAway = 0
  const device = await startRawDevice(async (peer) => {
    if (busy) {
      turnedAway += 1
      peer.socket.resetAndDestroy()
      return
    }
    busy = true
    const free = (): void => {
      busy = false
    }
    peer.socket.once('close', () => (rest === 0 ? free() : clock.after(rest, free)))
    peer.socket.once('end', () => peer.socket.end())
    for (;;) {
      await nextRequest(peer)
      if (closes) peer.end(CLOSING)
      else peer.write(OK)
    }
  })
  return { url: device.url, turnedAway: () => turnedAway }
}

/** The responses to 10 requests of each of 8 clients, by their text. */
function ask80(sidecar: TestSidecar, method = 'GET'): Promise<Record<string, number>> {
  return passUntil(sidecar.clock, all80(sidecar, method))
}

async function all80(sidecar: TestSidecar, method: string): Promise<Record<string, number>> {
  const token = await sidecar.token()
  // So that the device has been seen to work.
  await sidecar.request({ token })
  const found: Record<string, number> = {}
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let i = 0; i < 10; i += 1) {
        const { status } = await sidecar.request({ token, method })
        found[status] = (found[status] ?? 0) + 1
      }
    }),
  )
  return found
}

const ALONE = { max_in_flight: 1, queue: { timeout: '30s' } }

describe('A device that serves one connection at a time', () => {
  it.each([
    ['max_in_flight: 1', { closes: true }, ALONE],
    ['max_in_flight: 1, and requests that close', { closes: false }, ALONE],
    ['max_in_flight: 1 and reuse: never', { closes: false }, { ...ALONE, reuse: 'never' }],
  ])(
    'H178 serves 80 of 80 requests of 8 clients and sees one connection: %s',
    async (_name, kind, upstream) => {
      const device = await startSingle(kind)
      const sidecar = await startSidecar({ device, config: { upstream } })
      // A HEAD is the last request on its connection.
      expect(await ask80(sidecar, 'HEAD')).toEqual({ 200: 80 })
      expect(device.turnedAway()).toBe(0)
    },
  )

  it('H178 with reuse: never, one client after the other is served by one connection at a time', async () => {
    const device = await startSingle({ closes: false })
    const sidecar = await startSidecar({ device, config: { upstream: { reuse: 'never' } } })
    const token = await sidecar.token()
    for (let i = 0; i < 20; i += 1)
      expect((await sidecar.request({ token, method: 'POST' })).status).toBe(200)
    expect(device.turnedAway()).toBe(0)
  })

  it('H178 a device that does not close its side delays the next request for a bounded time only', async () => {
    const device = await startRawDevice(async (peer) => {
      for (;;) {
        await nextRequest(peer)
        peer.write(OK)
      }
    })
    const sidecar = await startSidecar({ device, config: { upstream: { ...ALONE, reuse: 'never' } } })
    const token = await sidecar.token()
    for (let i = 0; i < 20; i += 1)
      expect((await passUntil(sidecar.clock, sidecar.request({ token }))).status).toBe(200)
    expect(device.peers).toHaveLength(20)
  })

  it('H178 the bounded time halves when the device hangs, and grows again with each connection that it ends in time', async () => {
    const clock = stillClock()
    const turns = new Turns(
      clock,
      () => true,
      10_000,
      () => {},
    )
    /** How long (ms) a connection waits for one that the device does not end. */
    async function bound(): Promise<number> {
      let waited = 0
      let isOver = false
      turns.close({ onEnded: undefined }, () => {
        isOver = true
      })
      for (; !isOver; waited += 1) await clock.advance(1)
      return waited
    }
    expect([await bound(), await bound(), await bound(), await bound()]).toEqual([1000, 500, 250, 125])
    turns.endedInTime()
    expect(await bound()).toBeLessThan(70)
    for (let i = 0; i < 40; i += 1) turns.endedInTime()
    expect(await bound()).toBe(1000)
  })

  it('H178 a device that ends its connections in time is waited for as long again when it hangs', async () => {
    const HANGS = 4
    const IN_TIME = 30
    const device = await startRawDevice(async (peer, number) => {
      const hangs = number <= HANGS || number === HANGS + IN_TIME
      if (!hangs) peer.socket.once('end', () => peer.socket.end())
      for (;;) {
        await nextRequest(peer)
        peer.write(OK)
      }
    })
    const sidecar = await startSidecar({ device, config: { upstream: { ...ALONE, reuse: 'never' } } })
    const token = await sidecar.token()
    /** How long (ms) a request takes: its connection waits for the end of the one before. */
    const ask = async (): Promise<number> => {
      const before = sidecar.clock.monotonic()
      expect((await passUntil(sidecar.clock, sidecar.request({ token }))).status).toBe(200)
      return sidecar.clock.monotonic() - before
    }
    for (let i = 1; i < HANGS + IN_TIME; i += 1) await ask()
    await ask()
    expect(await ask()).toBeGreaterThanOrEqual(990)
  })

  it('H178 a WebSocket does not meet an idle connection', async () => {
    const device = await startDevice()
    acceptWebSockets(device)
    const sidecar = await startSidecar({ device, config: { upstream: ALONE } })
    const token = await sidecar.token()
    await sidecar.request({ token })
    let most = 0
    device.server.on('connection', () => {
      most = Math.max(most, device.openConnections)
    })
    const { socket } = await openWebSocket(sidecar.url, { token })
    expect(most).toBe(1)
    socket.terminate()
  })
})

/** Less than the time (ms) for which a connection has to stay open before a request is sent again: a drop is read before. */
const WITHIN_TRIAL = 5

describe('A device that rests between two connections', () => {
  it.each([
    ['max_in_flight: 1', ALONE],
    ['the defaults', { queue: { timeout: '30s' } }],
  ])('H47 C24 serves 80 of 80 requests of 8 clients, with %s', async (_name, upstream) => {
    const clock = stillClock()
    const device = await startSingle({ rest: 15, clock })
    const sidecar = await startSidecar({ device, clock, config: { upstream } })
    expect(await ask80(sidecar)).toEqual({ 200: 80 })
  })

  it('H47 a pause that worked is kept before the next connection, also for a POST', async () => {
    const clock = stillClock()
    const device = await startSingle({ rest: 60, clock })
    const sidecar = await startSidecar({ device, clock, config: { upstream: ALONE } })
    const token = await sidecar.token()
    // The learned pause is the sum of those between the attempts, so the attempts themselves take next to no time.
    const ask = async (method: string): Promise<number> =>
      (await passUntil(clock, sidecar.request({ token, method }), 1)).status
    for (let i = 0; i < 2; i += 1) expect(await ask('GET')).toBe(200)
    const before = device.turnedAway()
    expect(before).toBeGreaterThan(0)
    for (let i = 0; i < 10; i += 1) expect(await ask('POST')).toBe(200)
    // Without the pause the device would turn each of them away at least once.
    expect(device.turnedAway()).toBe(before)
  })

  it('H47 C24 a GET that it reads and drops is sent once more, when it keeps a connection again', async () => {
    const heads: string[] = []
    const device = await startRawDevice(async (peer, number) => {
      if (number > 2 && number < 7) return peer.reset()
      await nextRequest(peer)
      heads.push(`head on connection ${number}`)
      if (number === 2) peer.reset()
      else peer.end(CLOSING)
    })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    for (let i = 0; i < 2; i += 1)
      expect((await passServing(sidecar, sidecar.request({ token }), WITHIN_TRIAL)).status).toBe(200)
    expect(heads).toEqual([1, 2, 7].map((number) => `head on connection ${number}`))
  })

  it('H47 a GET is not sent again on a connection on which the device speaks first', async () => {
    let read = 0
    const device = await startRawDevice(async (peer, number) => {
      if (number === 3) return peer.write(OK)
      await nextRequest(peer)
      read += 1
      if (number === 2) peer.reset()
      else peer.end(CLOSING)
    })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    expect((await passServing(sidecar, sidecar.request({ token }), WITHIN_TRIAL)).status).toBe(500)
    expect(read).toBe(2)
    expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
  })

  it('H46 a POST of which nothing was sent is tried again: the device listens again after a restart', async () => {
    const first = await startDevice()
    const { port } = new URL(first.url)
    const sidecar = await startSidecar({ device: first })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    await first.stop()
    // By now the sidecar has read the FIN.
    await sidecar.metrics()
    const post = sidecar.request({ token, method: 'POST', body: 'text' })
    for (let i = 0; i < 20; i += 1) {
      const probe = net.connect(Number(port), '127.0.0.1')
      await expect(once(probe, 'connect')).rejects.toThrow('ECONNREFUSED')
    }
    const second = await startDevice(undefined, { port: Number(port) })
    expect((await passUntil(sidecar.clock, post)).status).toBe(200)
    expect(second.requests).toHaveLength(1)
    closeLater(() => second.stop())
  })

  it('H46 a device that did not work within the last second fails at once', async () => {
    const device = await startDevice()
    const sidecar = await startSidecar({ device, config: { upstream: { connect_timeout: '1h' } } })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    await device.stop()
    // By now the sidecar has read the FIN.
    await sidecar.metrics()
    await sidecar.clock.advance(1001)
    expect((await sidecar.request({ token })).status).toBe(500)
  })
})
