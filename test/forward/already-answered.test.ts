import { expect, it, vi } from 'vitest'
import { createBreaker } from '../../src/device/breaker.ts'
import { type Connection, type Connections, createConnections } from '../../src/device/connections.ts'
import type { ResponseHandler } from '../../src/device/request.ts'
import type { UpstreamTarget } from '../../src/device/target.ts'
import type { ForwardExchange } from '../../src/forward/forward-exchange.ts'
import { forwardToDevice } from '../../src/forward/round-trip.ts'
import type { RoundTripEnd, RoundTripService } from '../../src/forward/round-trip-service.ts'
import { sendUpgrade } from '../../src/forward/upgrades.ts'
import type { UpgradeExchange } from '../../src/http/exchange.ts'
import { IdleList } from '../../src/system/idle-list.ts'
import { admitted, PLAIN } from '../support/admitted.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { type BareExchange, type HeadPart, requestHead } from '../support/exchange.ts'
import { socketPair } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { unhurried } from './pace.ts'

const UPGRADE: HeadPart = {
  upgrade: true,
  fields: [
    ...['Host', 'device.example', 'Connection', 'Upgrade', 'Upgrade', 'websocket'],
    ...['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version', '13'],
  ],
}

/** An exchange that was revoked while it waited: its refusal is written but may not have been sent. */
function refusedExchange(
  part: Partial<UpgradeExchange> = {},
): ForwardExchange<BareExchange & UpgradeExchange> {
  const head = requestHead(part.connection === undefined ? {} : UPGRADE)
  const request = Object.assign(admitted(head), { answered: true, cut: vi.fn() })
  // All that an upgrade calls.
  return Object.assign(request, part) as ForwardExchange<BareExchange & UpgradeExchange>
}

function targetOf(origin: string): UpstreamTarget {
  return { origin, socketPath: undefined, reuse: 'shared', parser: 'strict' }
}

function connectionsTo(origin: string): Connections {
  const connections = createConnections(targetOf(origin), DEADLINES, stillClock())
  closeLater(() => connections.close())
  return connections
}

function upgradeRules(onTunnel = () => {}): Parameters<typeof sendUpgrade>[2] {
  const fields = ['Sec-WebSocket-Version', '13']
  return { fields, onTunnel, idle: new IdleList(stillClock(), 1000) }
}

const DEADLINES = { connect: 1000, response: 1000, idle: 1000 }

/** All that a round trip needs. */
function serviceWith(connections: Partial<Connections>): RoundTripService {
  return {
    connections,
    uploadTimeout: 1000,
    ...unhurried(),
    fields: {
      request: PLAIN,
      response: {
        host: undefined,
        origin: 'http://127.0.0.1',
        rewrite: false,
        replaced: [],
        passes: undefined,
        added: undefined,
      },
    },
    breaker: createBreaker(stillClock()),
    clock: stillClock(),
    events: { responded() {} },
  } as unknown as RoundTripService
}

it('C8 a request or upgrade that was refused while it waited never reaches the device', async () => {
  const device = await startRawDevice(() => {})
  const connections = { borrow: vi.fn() }
  const exchange = refusedExchange()
  const ends = await Promise.all([
    new Promise((resolve) => forwardToDevice(serviceWith(connections), exchange, resolve)),
    new Promise((resolve) => sendUpgrade(serviceWith(connections), exchange, upgradeRules(), resolve)),
  ])
  expect(ends).toEqual([{ kind: 'abandoned' }, { kind: 'abandoned' }])
  expect(connections.borrow).not.toHaveBeenCalled()
  expect(device.peers).toHaveLength(0)
})

it.each([true, false])(
  'C8 an upgrade that is refused before the 101 of the device becomes no tunnel (refused: %s)',
  async (refused) => {
    const client = await socketPair()
    const exchange = refusedExchange({
      answered: false,
      connection: client.from,
      tunnelled: vi.fn(() => Buffer.alloc(0)),
    })
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      Object.assign(exchange, { answered: refused })
      peer.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    })
    const tunnel = Promise.withResolvers<void>()
    const onTunnel = vi.fn(() => tunnel.resolve())
    const service = serviceWith(connectionsTo(device.url))
    const end = new Promise((resolve) => sendUpgrade(service, exchange, upgradeRules(onTunnel), resolve))
    if (refused) expect(await end).toEqual({ kind: 'abandoned' })
    else await tunnel.promise
    expect(exchange.tunnelled).toHaveBeenCalledTimes(refused ? 0 : 1)
  },
)

it.each([false, true])(
  'C8 a failure of the device cuts its own response, but not a refusal (response begun: %s)',
  (begun) => {
    const exchange = refusedExchange({ answered: false })
    const ends: RoundTripEnd[] = []
    let device: ResponseHandler | undefined
    const connection: Partial<Connection> = {
      send: (_request, handler) => {
        device = handler
      },
    }
    const loan = { connection: connection as Connection, release() {} }
    const service = serviceWith({ borrow: () => loan })
    forwardToDevice(service, exchange, (end) => ends.push(end))
    if (begun)
      device?.head({ status: 200, reason: 'OK', fields: ['Content-Length', '5'], remembered: false }, 0)
    Object.assign(exchange, { answered: true })
    device?.failed(new Error('the device has left'), 'begun')
    expect(ends).toMatchObject([{ kind: begun ? 'broken' : 'abandoned' }])
    expect(exchange.cut).toHaveBeenCalledTimes(begun ? 1 : 0)
  },
)

it('C24 a pending upgrade does not change the idle timer of its client', async () => {
  const client = await socketPair()
  client.from.setTimeout(4711)
  const exchange = refusedExchange({
    answered: false,
    connection: client.from,
  })
  const device = await startRawDevice(() => {})
  sendUpgrade(serviceWith(connectionsTo(device.url)), exchange, upgradeRules(), () => {})
  await device.waitForConnection(1)
  expect(client.from.timeout).toBe(4711)
})
