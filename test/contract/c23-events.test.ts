import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { afterTurn } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { type Device, startDevice } from '../support/device.ts'
import type { Exchange } from '../support/message.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** How many turns of the event loop later an event may arrive through the sidecar: it crosses two connections more, and TLS. */
const ALLOWED_TURNS = 10

/** The lower quartile of the delays: the kernel of a busy machine delays some events, the sidecar would delay all. */
const lowerQuartile = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 2] ?? Number.NaN

/**
 * Counts the turns of the event loop until the test ends. All ends of a test are in this process: a machine that is busy with other
 * work makes a turn longer, and needs no more of them. A wait of a millisecond is some hundred turns.
 */
function countTurns(): () => number {
  let turns = 0
  let over = false
  const turn = (): void => {
    turns += 1
    if (!over) afterTurn(turn)
  }
  turn()
  closeLater(() => {
    over = true
  })
  return () => turns
}

/** A device that sends each event to all its listeners at once. */
async function startEvents(): Promise<{
  device: Device
  send(event: string): void
  listeners(count: number): Promise<void>
}> {
  const streams = new Set<ServerResponse>()
  const device = await startDevice((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
    response.flushHeaders()
    streams.add(response)
    response.once('close', () => streams.delete(response))
  })
  return {
    device,
    send(event) {
      for (const stream of streams) stream.write(`data: ${event}\n\n`)
    },
    listeners: async (count) => {
      await expect.poll(() => streams.size).toBe(count)
    },
  }
}

async function listen(url: string, transport: 'http1' | 'tls' | 'h2', token?: string): Promise<Exchange> {
  const connection = await connect({ transport, url })
  const shown = token === undefined ? [] : ['Authorization', `Bearer ${token}`]
  const exchange = connection.start({ path: '/events', fields: [...shown, 'Accept', 'text/event-stream'] })
  exchange.response.catch(() => {})
  expect((await exchange.head).status).toBe(200)
  return exchange
}

const arrival = (exchange: Exchange, event: string, now: () => number): Promise<number> =>
  exchange.waitFor(`data: ${event}\n\n`).then(now)

const variants = (['strict', 'tolerant'] as const).flatMap((parser) =>
  (['tls', 'h2'] as const).map((transport) => [parser, transport] as const),
)

describe.each(variants)('C23 Server-sent events with the %s parser over %s', (parser, transport) => {
  const start = (device: Device): Promise<TestSidecar> =>
    startSidecar({ transport, device, config: { upstream: { parser } } })

  it('C23 arrive one by one, a few turns of the event loop later than at a client of the device itself', async () => {
    const { device, send, listeners } = await startEvents()
    const sidecar = await start(device)
    const direct = await listen(device.url, 'http1')
    const through = await listen(sidecar.url, transport, await sidecar.token())
    await listeners(2)
    const now = countTurns()
    const delays: number[] = []
    for (let i = 0; i < 40; i += 1) {
      const arrived = Promise.all([arrival(direct, `event ${i}`, now), arrival(through, `event ${i}`, now)])
      send(`event ${i}`)
      const [atDirect, atThrough] = await arrived
      delays.push(atThrough - atDirect)
      // Only one event is in flight: no later event flushes it.
      expect(through.received.toString().split('\n\n')).toHaveLength(i + 2)
    }
    expect(lowerQuartile(delays), delays.join()).toBeLessThan(ALLOWED_TURNS)
  })

  it('C23 begin a few turns of the event loop later after the request than at a client of the device itself', async () => {
    const { device } = await startEvents()
    device.handle((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.write('data: first\n\n')
    })
    const sidecar = await start(device)
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const now = countTurns()
    async function first(connection: Awaited<ReturnType<typeof connect>>): Promise<number> {
      const asked = now()
      const exchange = connection.start({ path: '/events', fields })
      exchange.response.catch(() => {})
      const took = (await arrival(exchange, 'first', now)) - asked
      connection.close()
      return took
    }
    const delays: number[] = []
    for (let i = 0; i < 15; i += 1) {
      const direct = await first(await connect({ transport: 'http1', url: device.url }))
      delays.push((await first(await sidecar.connect())) - direct)
    }
    expect(lowerQuartile(delays), delays.join()).toBeLessThan(ALLOWED_TURNS)
  })
})
