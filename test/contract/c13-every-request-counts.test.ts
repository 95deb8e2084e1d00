import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { limitsOf } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'
import { oddRequests } from './odd-requests.ts'

describeProtocols('C13 The limits', (transport) => {
  it('C13 by default the API has 60 requests per minute and /oauth/token 30, counted separately', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, documentedLimits: true })
    expect(limitsOf(await sidecar.request())).toMatchObject({ limit: 60, remaining: 59 })
    expect(limitsOf(await sidecar.postToken({}))).toMatchObject({ limit: 30, remaining: 29 })
    expect(limitsOf(await sidecar.request({ path: '/oauth/token/' }))).toMatchObject({ remaining: 58 })
    expect(limitsOf(await sidecar.postToken({}, { path: '/oauth/token?x' }))).toMatchObject({ remaining: 28 })
  })

  it('C13 both limits and both windows are configurable', async () => {
    const sidecar = await startSidecar({
      clock: stillClock(),
      transport,
      config: { limits: { api: { requests: 3, window: '10s' }, oauth: { requests: 2, window: '20s' } } },
    })
    const now = sidecar.clock.wall() / 1000
    const api = limitsOf(await sidecar.request())
    const oauth = limitsOf(await sidecar.postToken({}))
    expect(api).toMatchObject({ limit: 3, remaining: 2 })
    expect(oauth).toMatchObject({ limit: 2, remaining: 1 })
    expect(oauth.reset - api.reset).toBeGreaterThanOrEqual(10)
    expect(api.reset).toBeGreaterThanOrEqual(Math.ceil(now + 10))
  })

  it('C13 a request to the API counts once, whatever its outcome', async () => {
    const device = await startDevice((request, response) => {
      if (request.url === '/cut') response.destroy()
      else {
        response.statusCode = Number(request.url?.slice(1))
        response.end()
      }
    })
    const sidecar = await startSidecar({ clock: stillClock(), transport, device })
    const token = await sidecar.token()
    const before = limitsOf(await sidecar.request({ token, path: '/200' })).remaining
    const outcomes: [number, () => Promise<Response>][] = [
      [204, () => sidecar.request({ token, path: '/204' })],
      [404, () => sidecar.request({ token, path: '/404' })],
      [500, () => sidecar.request({ token, path: '/500' })],
      [500, () => sidecar.request({ token, path: '/cut', body: 'x' })],
      [401, () => sidecar.request({ path: '/200' })],
      [401, () => sidecar.request({ token: 'unknown', path: '/200' })],
      [400, () => sidecar.request({ token, method: 'OPTIONS', path: '*' })],
    ]
    let expected = before
    for (const [status, ask] of outcomes) {
      const response = await ask()
      expected -= 1
      expect([response.status, limitsOf(response).remaining]).toEqual([status, expected])
    }
  })

  it('C13 C16 a request that the parser accepts and the gate refuses counts, and its refusal has the three fields', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport })
    let expected = limitsOf(await sidecar.request()).remaining
    for (const { name, request } of oddRequests(transport)) {
      expected -= 1
      const { remaining } = limitsOf(await sidecar.request(request))
      expect(remaining, name).toBe(expected)
    }
  })

  it('C13 C16 a request to the token endpoint counts once, whatever its outcome, and the response has the three fields', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport })
    const { refresh_token } = await sidecar.grant()
    const path = '/oauth/token'
    const asks: (() => Promise<Response>)[] = [
      () => sidecar.postToken({ grant_type: 'refresh_token', refresh_token }),
      () => sidecar.postToken({ grant_type: 'password', password: 'wrong' }),
      () => sidecar.postToken({ grant_type: 'refresh_token', refresh_token: 'wrong' }),
      () => sidecar.postToken({ grant_type: 'device_code' }),
      () => sidecar.postToken('%zz'),
      () => sidecar.postToken('x'.repeat(9000)),
      () => sidecar.postToken([], { body: ['x'.repeat(5000), 'x'.repeat(5000)] }),
      () => sidecar.request({ path }),
      () => sidecar.request({ path, method: 'HEAD' }),
      () => sidecar.request({ path, method: 'OPTIONS' }),
      () => sidecar.request({ path, body: '{}', fields: ['Content-Type', 'text/json'] }),
    ]
    let expected = limitsOf(await sidecar.postToken({})).remaining
    const statuses: number[] = []
    for (const ask of asks) {
      const response = await ask()
      expected -= 1
      expect(limitsOf(response).remaining).toBe(expected)
      statuses.push(response.status)
    }
    expect(statuses).toEqual([200, ...Array(10).fill(400)])
  })
})

describeTransports(
  'C13 WebSocket upgrades',
  (transport) => {
    it('C13 a WebSocket upgrade counts once, accepted or refused, and its messages do not count', async () => {
      const device = await startDevice()
      acceptWebSockets(device)
      const sidecar = await startSidecar({ clock: stillClock(), transport, device })
      const token = await sidecar.token()
      const before = limitsOf(await sidecar.request({ token })).remaining
      const { socket } = await openWebSocket(sidecar.url, { token })
      for (let i = 0; i < 3; i += 1) {
        socket.send('x')
        await new Promise((resolve) => socket.once('message', resolve))
      }
      expect(limitsOf(await sidecar.request({ token })).remaining).toBe(before - 2)
      expect((await refusedWebSocket(sidecar.url, {})).status).toBe(401)
      expect(limitsOf(await sidecar.request({ token })).remaining).toBe(before - 4)
    })

    it('C13 an upgrade over the limit is refused and does not reach the device', async () => {
      const device = await startDevice()
      const { upgrades } = acceptWebSockets(device)
      const sidecar = await startSidecar({
        clock: stillClock(),
        transport,
        device,
        config: { limits: { api: { requests: 1 } } },
      })
      const token = await sidecar.token()
      await openWebSocket(sidecar.url, { token })
      const refused = await refusedWebSocket(sidecar.url, { token })
      expect(refused.status).toBe(429)
      expect(limitsOf(refused).remaining).toBe(0)
      expect(upgrades).toHaveLength(1)
    })
  },
  ['http1', 'tls'],
)
