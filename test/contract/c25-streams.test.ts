import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import type { Exchange } from '../support/message.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const TYPES: Readonly<Record<string, string>> = {
  '/mjpeg': 'Multipart/X-Mixed-Replace; boundary=b',
  '/events': 'text/event-stream',
  '/long': 'text/plain',
}

/** A device whose streams never end. Other paths are answered at once. */
function startStreaming(): Promise<Device> {
  return startDevice((request, response) => {
    const type = TYPES[request.url ?? '']
    if (type === undefined) response.end('from the device')
    else {
      response.writeHead(200, { 'Content-Type': type })
      response.write('the beginning')
    }
  })
}

/** Opens a stream and waits for its first bytes. */
async function watch(sidecar: TestSidecar, token: string, path: string, from?: string): Promise<Exchange> {
  const connection = await sidecar.connect(from === undefined ? {} : { from })
  const exchange = connection.start({ path, fields: ['Authorization', `Bearer ${token}`] })
  exchange.response.catch(() => {})
  await passUntil(sidecar.clock, exchange.waitFor('the beginning'))
  return exchange
}

describeProtocols('Streams', (transport) => {
  it.each(['/mjpeg', '/events', '/long'])(
    'H179 C25 two viewers of %s with max_in_flight: 2: every other request is served',
    async (path) => {
      const upstream = { max_in_flight: 2, queue: { timeout: '30s' } }
      const sidecar = await startSidecar({ transport, device: await startStreaming(), config: { upstream } })
      const token = await sidecar.token()
      for (let i = 0; i < 2; i += 1) await watch(sidecar, token, path)
      for (let i = 0; i < 10; i += 1) {
        const response = passUntil(sidecar.clock, sidecar.request({ token }))
        expect((await response).text).toBe('from the device')
      }
      // One that is a stream by its time gives its place back when another request waits.
      if (path !== '/long') expect(await sidecar.metric('postern_upstream_in_flight')).toBe(0)
    },
  )

  it('H179 one client has at most a quarter of max_streams; past it, and past all, a stream is overloaded', async () => {
    const device = await startStreaming()
    const sidecar = await startSidecar({ transport, device, config: { upstream: { max_streams: 8 } } })
    const token = await sidecar.token()
    const path = '/events'
    const first = await watch(sidecar, token, path)
    await watch(sidecar, token, path)
    const response = await sidecar.request({ token, path })
    expectError(response, 500, 'overloaded')
    expect(response.fields).toContain('1')
    for (const from of ['127.0.0.2', '127.0.0.3', '127.0.0.4'])
      for (let i = 0; i < 2; i += 1) await watch(sidecar, token, path, from)
    expectError(await sidecar.request({ token, path, from: '127.0.0.5' }), 500, 'overloaded')
    expect((await sidecar.request({ token })).status).toBe(200)
    await device.waitForOpenConnections(9)
    first.abort()
    await device.waitForOpenConnections(8)
    await watch(sidecar, token, path)
  })

  it('H179 past max_streams, a response that goes on keeps its place', async () => {
    const upstream = { max_in_flight: 2, max_streams: 1 }
    const sidecar = await startSidecar({ transport, device: await startStreaming(), config: { upstream } })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) await watch(sidecar, token, '/long')
    expectError(await passUntil(sidecar.clock, sidecar.request({ token })), 500, 'overloaded')
  })
})
