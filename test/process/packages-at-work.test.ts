import { once } from 'node:events'
import { ProxyServer } from 'http-proxy-3'
import { LRUCache } from 'lru-cache'
import { Registry } from 'prom-client'
import { afterEach, expect, it, vi } from 'vitest'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

afterEach(() => void vi.restoreAllMocks())

it('a request with a token asks lru-cache for its grant', async () => {
  const sidecar = await startSidecar()
  const token = await sidecar.token()
  const asked = vi.spyOn(LRUCache.prototype, 'get')
  expect((await sidecar.request({ path: '/status', token })).status).toBe(200)
  expect(asked.mock.results.filter(({ value }) => value?.client !== undefined)).toHaveLength(1)
})

it('a scrape is the text of prom-client', async () => {
  const sidecar = await startSidecar()
  const written = vi.spyOn(Registry.prototype, 'getSingleMetricAsString')
  const scraped = await sidecar.metrics()
  const families = await Promise.all(written.mock.results.map(({ value }) => value))
  expect(families.length).toBeGreaterThan(50)
  expect(`${families.join('\n\n')}\n`).toBe(scraped)
})

it('the handshake of a WebSocket goes through http-proxy-3', async () => {
  const device = await startDevice()
  acceptWebSockets(device)
  const sidecar = await startSidecar({ device })
  const emitted = vi.spyOn(ProxyServer.prototype, 'emit')
  const { socket } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
  socket.send('echoed')
  await once(socket, 'message')
  socket.close()
  await once(socket, 'close')
  const events = emitted.mock.calls.map(([event]) => event)
  expect(events).toEqual(expect.arrayContaining(['proxyReqWs', 'open']))
})
