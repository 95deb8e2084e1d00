import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { queryObjects } from 'node:v8'
import { expect, it, onTestFinished } from 'vitest'
import { Exchange } from '../../src/http/exchange.ts'
import { startSidecar } from '../support/sidecar.ts'

const countExchanges = (): number => queryObjects(Exchange, { format: 'count' })

/** Node may hold the streams of a session for long after they have closed: all of them, from now on. */
function holdStreams(): readonly unknown[] {
  const streams: unknown[] = []
  const hold = (message: unknown): number => streams.push(message)
  subscribe('http2.server.stream.created', hold)
  onTestFinished(() => void unsubscribe('http2.server.stream.created', hold))
  return streams
}

it.each([
  ['http1', 0],
  ['h2', 5],
] as const)(
  'a request is forgotten when it is over, while its connections to the client and the device stay open: %s',
  async (transport, count) => {
    const sidecar = await startSidecar({ transport })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const client = await sidecar.connect()
    const streams = holdStreams()
    const before = countExchanges()
    for (let i = 0; i < 5; i += 1) expect((await client.send({ path: '/api', fields })).status).toBe(200)
    expect(streams).toHaveLength(count)
    await expect.poll(countExchanges).toBe(before)
  },
)
