import { expect, it, onTestFinished } from 'vitest'
import { ListenerExchange } from '../../src/listen/listener-exchange.ts'
import { turnOfLoop } from '../../src/system/clock.ts'
import { PER_TURN, REQUEST_WORK } from '../../src/system/turn-budget.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

/** The most requests of one client that a turn of the event loop serves: see `TurnBudget`. */
const MOST = (2 * PER_TURN) / REQUEST_WORK

/** The requests that end from now on: how many in each turn of the event loop, and all. */
function countPerTurn(): { readonly most: () => number; readonly all: () => number } {
  const turns = new Map<number, number>()
  const { settle } = ListenerExchange.prototype
  ListenerExchange.prototype.settle = function (outcome) {
    if (this.outcome === undefined) turns.set(turnOfLoop(), (turns.get(turnOfLoop()) ?? 0) + 1)
    settle.call(this, outcome)
  }
  onTestFinished(() => {
    ListenerExchange.prototype.settle = settle
  })
  return {
    most: () => Math.max(...turns.values()),
    all: () => [...turns.values()].reduce((sum, count) => sum + count, 0),
  }
}

/** The clients of the requests that end from now on, in order. */
function watchClients(): readonly string[] {
  const order: string[] = []
  const { settle } = ListenerExchange.prototype
  ListenerExchange.prototype.settle = function (outcome) {
    if (this.outcome === undefined) order.push(this.client.address)
    settle.call(this, outcome)
  }
  onTestFinished(() => {
    ListenerExchange.prototype.settle = settle
  })
  return order
}

const REFUSED = 'GET /api HTTP/1.1\r\nHost: a\r\n\r\n'
const FORM = 'grant_type=nope'
const TOKEN_REQUEST = `POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${FORM.length}\r\n\r\n${FORM}`
const LAST = 'GET /api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

/** Sends all of it at once, and resolves when the sidecar has closed the connection. */
async function sendAtOnce(sidecar: TestSidecar, text: string): Promise<string> {
  const connection = await rawConnection(sidecar.url)
  connection.write(text)
  return connection.closed
}

describeTransports(
  'Turns of the event loop',
  (transport) => {
    it.each([
      ['refused', REFUSED, 401],
      ['for a token', TOKEN_REQUEST, 400],
    ])(
      'C26 of pipelined requests (%s) a turn answers a few, and all are answered in order',
      async (_, text, status) => {
        const sidecar = await startSidecar({ transport })
        const counted = countPerTurn()
        const received = await sendAtOnce(sidecar, text.repeat(1000) + LAST)
        const statuses = [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code))
        expect(statuses).toEqual([...Array.from({ length: 1000 }, () => status), 401])
        expect(counted.all()).toBe(1001)
        expect(counted.most()).toBeLessThanOrEqual(MOST)
      },
    )

    it('C26 a client has no more of a turn for having twenty connections', async () => {
      const sidecar = await startSidecar({ transport })
      const counted = countPerTurn()
      await Promise.all(Array.from({ length: 20 }, () => sendAtOnce(sidecar, REFUSED.repeat(200) + LAST)))
      expect(counted.all()).toBe(20 * 201)
      expect(counted.most()).toBeLessThanOrEqual(MOST)
    })
  },
  ['http1', 'tls'],
)

it('C26 of streams that twenty HTTP/2 connections of a client open at once, a turn answers a few', async () => {
  const sidecar = await startSidecar({ transport: 'h2' })
  const connections = await Promise.all(Array.from({ length: 20 }, () => sidecar.connect()))
  const counted = countPerTurn()
  const responses = await Promise.all(
    connections.flatMap((connection) => Array.from({ length: 50 }, () => connection.send({ path: '/api' }))),
  )
  expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 1000 }, () => 401))
  expect(counted.most()).toBeLessThanOrEqual(MOST)
})

it('C26 upgrades wait for their turn like other requests', async () => {
  const sidecar = await startSidecar()
  const upgrade = 'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const connections = await Promise.all(Array.from({ length: 100 }, () => rawConnection(sidecar.url)))
  const counted = countPerTurn()
  for (const connection of connections) connection.write(upgrade)
  for (const connection of connections) await connection.waitFor('HTTP/1.1 401')
  expect(counted.most()).toBeLessThanOrEqual(MOST)
})

it('C26 behind a trusted proxy each client has its own part of a turn, also on one connection', async () => {
  const sidecar = await startSidecar({
    transport: 'h2',
    config: { listen: { trusted_proxies: ['127.0.0.1'] } },
  })
  const proxy = await sidecar.connect()
  const order = watchClients()
  const send = (client: string) => proxy.send({ path: '/', fields: ['X-Forwarded-For', client] })
  const many = Array.from({ length: 95 }, () => send('192.0.2.1'))
  await Promise.all([...many, send('192.0.2.2')])
  expect(order).toHaveLength(96)
  expect(order.indexOf('192.0.2.2')).toBeLessThanOrEqual(MOST)
})

it('C26 a request of another client is served in the turn in which it comes, beside a client that floods', async () => {
  const sidecar = await startSidecar({ config: { log: { access: false } } })
  const token = await sidecar.token()
  const order = watchClients()
  const flood = await rawConnection(sidecar.url)
  const other = await sidecar.connect({ from: '127.0.0.2' })
  const whole = sendAll()
  for (let i = 0; i < 10; i += 1)
    expect((await other.send({ path: '/', fields: ['Authorization', `Bearer ${token}`] })).status).toBe(200)
  const before = order.lastIndexOf('127.0.0.2')
  await whole
  // The other client was served before most of the flood: one turn would have served all of it before.
  expect(order.slice(0, before).filter((address) => address === '127.0.0.1').length).toBeLessThan(5_000)
  expect(order.filter((address) => address === '127.0.0.1').length).toBeGreaterThanOrEqual(10_000)

  async function sendAll(): Promise<void> {
    flood.write(REFUSED.repeat(10_000) + LAST)
    await flood.closed
  }
})

it.each([1, 50])(
  'C26 behind a trusted proxy a client has its part of a turn also over HTTP/1, on %d connections',
  async (count) => {
    const sidecar = await startSidecar({ config: { listen: { trusted_proxies: ['127.0.0.1'] } } })
    const carried = (text: string): string => text.replace('Host: a', 'Host: a\r\nX-Forwarded-For: 192.0.2.1')
    const counted = countPerTurn()
    const each = carried(REFUSED).repeat(1000 / count) + carried(LAST)
    await Promise.all(Array.from({ length: count }, () => sendAtOnce(sidecar, each)))
    expect(counted.all()).toBe(1000 + count)
    expect(counted.most()).toBeLessThanOrEqual(MOST)
  },
)
