import { join } from 'node:path'
import { expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { startHoldingDevice } from '../support/device.ts'
import { rawConnection } from '../support/raw.ts'
import { accessLines, ask, explained, explanationsOf, recent } from '../support/records.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { waitForQueued } from '../support/waiting.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { golden } from './golden.ts'
import { tickingClock } from './ticking-clock.ts'

const printed = golden(join(import.meta.dirname, 'explain.txt'))
const ALL = ['Request', 'Client', 'Window', 'Token', 'Decision', 'Device', 'Response', 'Time'] as const

/** Keeps what `explain` tells under these titles about the last request for a path. */
async function tell(
  sidecar: TestSidecar,
  path: string,
  titles: readonly (typeof ALL)[number][],
  what: string = path,
): Promise<void> {
  const findings = await explained(sidecar, path)
  const lines = titles.map((title) => `${title.padEnd(10)}${findings[title]}\n`)
  printed.put(`${sidecar.transport}, ${what}`, lines.join(''))
}

describeTransports(
  'postern explain',
  (transport) => {
    it('H160 tells of a login, a forwarded GET, and an id that a client of a trusted proxy sent twice', async () => {
      const config = { listen: { trusted_proxies: ['127.0.0.1'] }, log: { access: false } }
      const sidecar = await startSidecar({ transport, config, clock: tickingClock() })
      const token = await sidecar.token()
      const fields = ['X-Request-Id', 'asked/1', 'X-Forwarded-For', '192.0.2.7']
      await sidecar.request({ path: '/first?q=1', token, fields })
      await sidecar.request({ path: '/second', token, fields })
      await tell(sidecar, '/oauth/token', ['Request', 'Token', 'Decision', 'Response'])
      await tell(sidecar, '/second', ALL)
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
      for (const cause of ['missing', 'malformed', 'unknown', 'expired', 'revoked'])
        await tell(sidecar, `/${cause}`, ['Token', 'Decision'])
      await sidecar.request({ path: '/sixth' })
      const refused = await sidecar.request({ path: '/over', token: revoked })
      await tell(sidecar, '/over', ['Window', 'Token', 'Decision'])
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
      await tell(sidecar, '/waits', ['Time'])
      device.handle((request) => request.socket.destroy())
      expect(
        (await sidecar.request({ path: '/fails', method: 'POST', body: 'the body', token })).status,
      ).toBe(500)
      await tell(sidecar, '/fails', ['Decision', 'Device', 'Response'])
      // The latest is the one that is explained.
      await clock.advance(1)
      await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
      await tell(sidecar, '/oauth/token', ['Decision'], 'a wrong password')
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
  await tell(sidecar, '/upload', ['Window', 'Response'])
  await tell(sidecar, '/socket', ['Request', 'Device'])
  await tell(sidecar, '/open', ['Window', 'Decision'])
  await tell(sidecar, '/observed', ['Decision'])
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

it('H160 what explain tells is what explain.txt says', () => printed.expectSame())
