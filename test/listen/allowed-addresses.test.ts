import { expect, it } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports('H182 addresses', (transport) => {
  it('H182 closes the connection of an address that may not connect, before TLS, counts and logs it', async () => {
    const sidecar = await startSidecar({
      transport,
      config: { listen: { allow: ['127.0.0.1', '127.0.0.4/30'] } },
    })
    const refused = (): Promise<number> =>
      sidecar.metric('postern_connections_refused_total', { reason: 'not_allowed' })
    for (const from of ['127.0.0.2', '127.0.0.9'])
      await expect(sidecar.request({ from }), from).rejects.toThrow()
    expect(await refused()).toBe(2)
    expect(sidecar.logLines().filter((line) => line.includes('"not_allowed"'))).toHaveLength(2)
    expect((await sidecar.request({ from: '127.0.0.1' })).status).toBe(401)
    expect(await refused()).toBe(2)
  })
})

it.each([
  ['contract', 400],
  ['http', 403],
])('H182 judges a client that a trusted proxy names, with status_codes %s', async (codes, status) => {
  const sidecar = await startSidecar({
    config: {
      status_codes: codes,
      enforce: false,
      public_paths: ['/'],
      listen: { trusted_proxies: ['127.0.0.1'], allow: ['192.0.2.0/26'] },
    },
  })
  const from = async (client: string): Promise<number> =>
    (await sidecar.request({ fields: ['X-Forwarded-For', client] })).status
  expect(await from('192.0.2.1')).toBe(200)
  for (const client of ['192.0.2.66', '198.51.100.1']) expect(await from(client)).toBe(status)
  expect(sidecar.device.requests).toHaveLength(1)
  expect(await sidecar.metric('postern_refusals_total', { reason: 'address_denied' })).toBe(2)
  expect(await sidecar.metric('postern_requests_total')).toBe(3)
})

it('H182 the admin listener has its own addresses', async () => {
  const sidecar = await startSidecar({ config: { admin: { allow: ['127.0.0.1'] } } })
  const { host } = new URL(sidecar.adminUrl)
  const answer = async (from: string): Promise<string> => {
    const connection = await rawConnection(sidecar.adminUrl, { localAddress: from })
    connection.write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    return (await connection.closed).slice(0, 12)
  }
  expect(await answer('127.0.0.2')).toBe('')
  expect(await answer('127.0.0.1')).toBe('HTTP/1.1 200')
})

it('H182 a reload closes the open connections of operators who may no longer connect', async () => {
  const site = await prepareSite()
  const served = await site.serve()
  const { host } = new URL(served.adminUrl)
  const open = async (from: string, path: string): Promise<RawPeer> => {
    const connection = await rawConnection(served.adminUrl, { localAddress: from })
    connection.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    await connection.waitFor('HTTP/1.1 200')
    return connection
  }
  const [idle, viewer, other] = await Promise.all([
    open('127.0.0.2', '/healthz'),
    open('127.0.0.2', '/page/events'),
    open('127.0.0.1', '/page/events'),
  ])
  site.configure({ admin: { allow: ['127.0.0.1'] } })
  await Promise.all([idle.closed, viewer.closed])
  other.forget()
  await other.waitFor('event: point')
})
