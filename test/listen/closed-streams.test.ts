import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it, onTestFinished } from 'vitest'
import { ListenerExchange } from '../../src/listen/listener-exchange.ts'
import { collectGarbage } from '../support/processes.ts'
import { startSidecar } from '../support/sidecar.ts'

/** The requests that end from now on, held so that they can be collected. */
function watchRequests(): readonly WeakRef<ListenerExchange>[] {
  const ended: WeakRef<ListenerExchange>[] = []
  const { settle } = ListenerExchange.prototype
  ListenerExchange.prototype.settle = function (outcome) {
    ended.push(new WeakRef(this))
    settle.call(this, outcome)
  }
  onTestFinished(() => {
    ListenerExchange.prototype.settle = settle
  })
  return ended
}

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
    const requests = watchRequests()
    const streams = holdStreams()
    for (let i = 0; i < 5; i += 1) expect((await client.send({ path: '/api', fields })).status).toBe(200)
    expect(streams).toHaveLength(count)
    expect(requests.length).toBeGreaterThanOrEqual(5)
    await expect
      .poll(() => {
        collectGarbage()
        return requests.filter((request) => request.deref() !== undefined).length
      })
      .toBe(0)
  },
)
