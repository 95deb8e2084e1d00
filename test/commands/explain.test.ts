import { join } from 'node:path'
import { expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { accessLines } from '../support/access-lines.ts'
import { ask, explained, explanationsOf, recent } from '../support/explained.ts'
import { startHoldingDevice, waitForQueued } from '../support/holding-device.ts'
import { rawConnection } from '../support/raw.ts'
import { PASSWORD, startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { tickingClock } from './ticking-clock.ts'

describeTransports(
  'postern explain',
  (transport) => {
    const version = transport === 'h2' ? '2' : '1.1'

    it('H160 tells of a login, a forwarded GET, and an id that a client of a trusted proxy sent twice', async () => {
      const config = { listen: { trusted_proxies: ['127.0.0.1'] }, log: { access: false } }
      const sidecar = await startSidecar({ transport, config, clock: tickingClock() })
      const token = await sidecar.token()
      const fields = ['X-Request-Id', 'asked/1', 'X-Forwarded-For', '192.0.2.7']
      await sidecar.request({ path: '/first?q=1', token, fields })
      await sidecar.request({ path: '/second', token, fields })
      expect(await explained(sidecar, '/oauth/token')).toMatchObject({
        Request: `POST /oauth/token over HTTP/${version}: the token endpoint of Postern itself; the device never sees it.`,
        Token: expect.stringMatching(/^Not asked for: .* Its tokens belong to grant [0-9a-f]+\.$/),
        Decision: 'Served by Postern itself.',
        Response: expect.stringMatching(
          /^200, complete\. \d{2,} bytes of body came in, \d{3} bytes went out\.$/,
        ),
      })
      expect(await explained(sidecar, '/second')).toEqual({
        Request: `GET /second over HTTP/${version}: a request for the device.`,
        Client: '192.0.2.7, which a trusted proxy named in X-Forwarded-For.',
        Window: expect.stringMatching(
          /^That of client 192\.0\.2\.7, for the endpoint type api\. Request 2 of 1000000\. It closes at \S+Z\. This sidecar counts it\.$/,
        ),
        Token: expect.stringMatching(/^Valid, of grant [0-9a-f]+\.$/),
        Decision: 'Admitted.',
        Device: 'The main service. Sent once, on a connection that was already open. It answered 200.',
        Response: expect.stringMatching(/^200, complete\. 0 bytes/),
        Time: expect.stringMatching(
          /^[\d.]+ ms in all: [\d.]+ ms for other work before it was sent, [\d.]+ ms until the device's response began, [\d.]+ ms for the rest of the response\.$/,
        ),
      })
      const both = await explanationsOf(sidecar, 'asked/1')
      expect(both.map(({ request }) => request.path)).toEqual(['/second', '/first'])
    })

    it('H160 tells of a 429 and of each kind of 401', async () => {
      const sidecar = await startSidecar({ transport, config: { limits: { api: { requests: 6 } } } })
      const expired = await sidecar.token()
      await sidecar.clock.advance(3_600_000)
      const { access_token: revoked } = await sidecar.grant()
      await control(join(sidecar.directory, 'state'), {
        method: 'POST',
        path: '/revoke',
        command: { all: true },
      })
      await sidecar.request({ path: '/missing' })
      await sidecar.request({ path: '/malformed', fields: ['Authorization', 'Bearer a b'] })
      for (const [path, token] of Object.entries({ '/unknown': 'x'.repeat(43), '/expired': expired }))
        await sidecar.request({ path, token })
      await sidecar.request({ path: '/revoked', token: revoked })
      for (const [cause, what] of Object.entries({
        missing: 'None: ',
        malformed: 'Malformed: ',
        unknown: 'Unknown: ',
        expired: 'Expired.',
        revoked: 'Revoked, ',
      })) {
        expect(await explained(sidecar, `/${cause}`), cause).toMatchObject({
          Token: expect.stringMatching(new RegExp(`^${what}`)),
          Decision: expect.stringMatching(
            new RegExp(`^Refused with 401, unauthorized: ${cause}\\. The client has to `),
          ),
        })
      }
      await sidecar.request({ path: '/sixth' })
      const refused = await sidecar.request({ path: '/over', token: revoked })
      expect(await explained(sidecar, '/over')).toMatchObject({
        Window: expect.stringContaining('All 6 requests were used. A refused request does not count.'),
        Token: 'Not looked up: the limit comes first.',
        Decision: expect.stringMatching(/^Refused with 429, rate-limited\. The window is used up\./),
      })
      // The client sees the same id in the response.
      const [explanation] = await explanationsOf(sidecar, refused.header('x-request-id') ?? '')
      expect(explanation?.request.path).toBe('/over')
    })

    it('H160 tells of a failed device, a wrong password, and a request that waited for a place', async () => {
      const { device, held } = await startHoldingDevice()
      const clock = tickingClock()
      const upstream = { max_in_flight: 1 }
      const sidecar = await startSidecar({ transport, device, clock, config: { upstream } })
      const token = await sidecar.token()
      const first = sidecar.request({ path: '/first', token })
      await device.waitForRequests(1)
      const second = sidecar.request({ path: '/waits', token })
      await waitForQueued(sidecar, 1)
      held[0]?.end()
      await device.waitForRequests(2)
      held[1]?.end()
      await Promise.all([first, second])
      expect(await explained(sidecar, '/waits')).toMatchObject({
        Time: expect.stringMatching(
          /: [\d.]+ ms waiting for a place at the device \(its one place was taken\), [\d.]+ ms for other work/,
        ),
      })
      device.handle((request) => request.socket.destroy())
      expect(
        (await sidecar.request({ path: '/fails', method: 'POST', body: 'the body', token })).status,
      ).toBe(500)
      expect(await explained(sidecar, '/fails')).toMatchObject({
        Decision: expect.stringMatching(
          /^Admitted\. Then refused with 500, upstream: connection_terminated\./,
        ),
        Device: expect.stringMatching(/It sent no response head, and failed: connection_terminated\.$/),
        Response: expect.stringMatching(/^500, complete\. 8 bytes of body came in/),
      })
      // The latest is the one that is explained.
      await clock.advance(1)
      await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
      expect(await explained(sidecar, '/oauth/token')).toMatchObject({
        Decision:
          'Served by Postern itself. Then refused with 400, invalid-grant. The password is not right.',
      })
    })
  },
  ['http1', 'h2'],
)

it('H160 tells of a buffered upload, a WebSocket, a public path, another service and a gate that observes', async () => {
  const sidecar = await startSidecar({
    config: {
      enforce: false,
      public_paths: ['/open'],
      limits: { api: { per: 'grant' } },
      upstream: { buffer_uploads: '1KiB' },
    },
  })
  acceptWebSockets(sidecar.device)
  const token = await sidecar.token()
  await sidecar.request({
    path: '/upload',
    method: 'POST',
    body: [Buffer.from('pie'), Buffer.from('ces')],
    token,
  })
  const { socket } = await openWebSocket(sidecar.url, { token, path: '/socket' })
  socket.close()
  await sidecar.request({ path: '/open' })
  await sidecar.request({ path: '/observed' })
  expect(await explained(sidecar, '/upload')).toMatchObject({
    Window: expect.stringMatching(/^That of grant [0-9a-f]+, for the endpoint type api\. Request 1 of/),
    Response: expect.stringMatching(/^200, complete\. 6 bytes of body came in/),
  })
  expect(await explained(sidecar, '/socket')).toMatchObject({
    Request: 'GET /socket over HTTP/1.1: a WebSocket for the device.',
    Device: 'The main service. Sent once, on a new connection. It answered 101.',
  })
  expect(await explained(sidecar, '/open')).toMatchObject({
    Window: expect.stringMatching(/^That of client 127\.0\.0\.1,/),
    Decision: 'Admitted without a token: the path is one of public_paths.',
  })
  expect(await explained(sidecar, '/observed')).toMatchObject({
    Decision:
      'Admitted. With enforce: true the refusal would be "unauthorized: missing": The client has to send its access token.',
  })
})

it('H162 no answer holds a token, a password, a query, a cookie or a body', async () => {
  const sidecar = await startSidecar({ config: { limits: { oauth: { requests: 3 } } } })
  const { access_token, refresh_token } = await sidecar.grant()
  const fields = ['Cookie', 'c=canary-cookie', 'X-Api-Key', 'canary-field']
  const path = '/path?canary-query'
  await sidecar.request({ path, token: access_token, method: 'POST', body: 'canary-body', fields })
  await sidecar.request({ path, token: `canary-token${access_token}`, fields })
  for (const password of ['canary-password', PASSWORD, PASSWORD, PASSWORD])
    await sidecar.postToken(
      { grant_type: 'password', password, refresh_token },
      { path: '/oauth/token?canary-query' },
    )
  const raw = await rawConnection(sidecar.url)
  raw.write('GET /canary-path\x01 HTTP/1.1\r\nAuthorization: canary\r\n\r\n')
  await raw.closed
  await expect.poll(async () => (await recent(sidecar)).length).toBe(accessLines(sidecar).length)
  const rows = await recent(sidecar)
  expect(rows.length).toBeGreaterThan(6)
  const explanations = await Promise.all(rows.map(({ id }) => explanationsOf(sidecar, id)))
  const told = JSON.stringify([rows, explanations])
  expect(explanations.flat()).toHaveLength(rows.length)
  expect(told).toContain('"/path"')
  for (const secret of [access_token, refresh_token, PASSWORD, encodeURIComponent(PASSWORD), 'canary'])
    expect(told).not.toContain(secret)
})

it('H160 an id that is not remembered: how many requests are, and since when', async () => {
  const sidecar = await startSidecar()
  await sidecar.request({ path: '/refused' })
  await explained(sidecar, '/refused')
  expect(await ask(sidecar, '/explain?id=%zz')).toEqual({
    explanations: [],
    remembered: [
      { what: 'answered', requests: 0, since: null },
      { what: 'failed', requests: 0, since: null },
      { what: 'rate-limited', requests: 0, since: null },
      { what: 'refused', requests: 1, since: expect.any(Number) },
    ],
  })
})
