import { expect, it } from 'vitest'
import { LOOK_ALIKES, OVERRIDES } from '../http/override-names.ts'
import { logInAs, makeNames } from '../support/passwords.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const fieldsOf = (names: readonly string[]): string[] => names.flatMap((name) => [name, '/admin'])

describeProtocols('What admits by path or method', (transport) => {
  const start = async (config: YamlPart = {}) => {
    const names = makeNames({ admin: undefined, reader: [{ methods: ['GET'], paths: ['/data/'] }] })
    const public_paths = ['/open', '/below/']
    const sidecar = await startSidecar({ transport, config: { ...names.config, public_paths, ...config } })
    const admin = (await logInAs(sidecar, 'admin')).access_token
    const reader = (await logInAs(sidecar, 'reader')).access_token
    return { sidecar, names, admin, reader }
  }

  it('H203 a public path passes no field that names another path, method or host, and any other field', async () => {
    const { sidecar, admin, reader } = await start()
    const fields = [...fieldsOf(OVERRIDES), ...LOOK_ALIKES.flatMap((name) => [name, 'kept'])]
    const requests = [
      {},
      { token: 'unknown' },
      { token: reader },
      { method: 'POST' },
      { method: 'POST', body: 'x' },
    ]
    for (const request of requests)
      for (const path of ['/open', '/below/x?y']) {
        expect((await sidecar.request({ path, fields, ...request })).status).toBe(200)
        const seen = sidecar.device.requests.at(-1) ?? expect.unreachable()
        expect(seen.target).toBe(path)
        expect(seen.fields).not.toContain('/admin')
        expect(seen.fields.filter((text) => text === 'kept')).toHaveLength(LOOK_ALIKES.length)
      }
    // A login without `allow` may send all of it; X-Forwarded-* of an untrusted peer never passes.
    await sidecar.request({ path: '/open', fields, token: admin })
    const seen = sidecar.device.requests.at(-1) ?? expect.unreachable()
    for (const name of OVERRIDES)
      expect(seen.header(name.toLowerCase()), name).toBe(
        name.startsWith('X-Forwarded-') ? undefined : '/admin',
      )
  })

  it('H203 a name with `allow` passes the same fields, also behind a trusted proxy', async () => {
    const { sidecar, reader } = await start({ listen: { trusted_proxies: ['127.0.0.1'] } })
    await sidecar.request({ path: '/data/x', token: reader, fields: fieldsOf(OVERRIDES) })
    expect(sidecar.device.requests.at(-1)?.fields).not.toContain('/admin')
  })

  it('H203 the same head is judged anew when its token does not admit it any more', async () => {
    const { sidecar, names, admin } = await start()
    const connection = await sidecar.connect()
    const seen = async (): Promise<string | undefined> => {
      const fields = ['Authorization', `Bearer ${admin}`, 'X-Original-URL', '/admin']
      expect((await connection.send({ path: '/open', fields })).status).toBe(200)
      return sidecar.device.requests.at(-1)?.header('x-original-url')
    }
    for (let i = 0; i < 3; i += 1) expect(await seen()).toBe('/admin')
    names.set('admin', 'another password')
    // The changed file is read after a pause.
    while ((await sidecar.request({ token: admin })).status !== 401) await sidecar.clock.advance(20)
    for (let i = 0; i < 3; i += 1) expect(await seen()).toBeUndefined()
  })

  it('H203 with `enforce: false` nothing but the path admits a public request', async () => {
    const { sidecar } = await start({ enforce: false })
    await sidecar.request({ path: '/open', fields: ['X-Original-URL', '/admin'] })
    expect(sidecar.device.requests.at(-1)?.header('x-original-url')).toBeUndefined()
    await sidecar.request({ path: '/other', fields: ['X-Original-URL', '/admin'] })
    expect(sidecar.device.requests.at(-1)?.header('x-original-url')).toBe('/admin')
  })

  const authority = 'postern.example:8443'
  const scheme = transport === 'h2' ? 'https' : 'http'

  it('H204 a Destination that is public, too, passes with the same path', async () => {
    const { sidecar } = await start()
    for (const destination of ['/below/b', '/open?x=/..', `${scheme}://${authority}/below/b`])
      for (const method of ['MOVE', 'COPY']) {
        const fields = ['Destination', destination, 'Overwrite', 'F']
        const { status } = await sidecar.request({ method, path: '/below/a', authority, fields })
        expect(status).toBe(200)
        const seen = sidecar.device.requests.at(-1)
        // It names the device, which speaks HTTP, by the `Host` that the device gets.
        expect(seen?.header('destination')).toBe(destination.replace(/^https?:/, 'http:'))
        expect(seen?.header('overwrite')).toBe('F')
      }
  })

  it('H204 any other Destination is refused as the path would be', async () => {
    const { sidecar, reader } = await start()
    const absolute = [`${scheme}://${authority}/admin/fw`, 'https://other.example/below/b']
    // `http/overrides.test.ts` has many more.
    for (const destination of ['/admin/fw', '', '/below/../admin', ...absolute])
      for (const method of ['MOVE', 'COPY', 'GET']) {
        const request = { method, path: '/below/a', authority, fields: ['destination', destination] }
        expect((await sidecar.request(request)).status, destination).toBe(401)
        const limited = await sidecar.request({ ...request, token: reader })
        expect([limited.status, limited.json().error]).toEqual([400, 'insufficient_scope'])
      }
    expect(sidecar.device.requests).toHaveLength(0)
  })

  it('H204 two Destinations are refused, and a login without `allow` sends any', async () => {
    const { sidecar, admin } = await start()
    const fields = ['Destination', '/below/b', 'Destination', '/below/c']
    expect((await sidecar.request({ method: 'MOVE', path: '/below/a', fields })).status).toBe(401)
    for (const destination of ['/admin', '/x', 'https://other.example/']) {
      const request = { method: 'MOVE', path: '/below/a', fields: ['Destination', destination], token: admin }
      expect((await sidecar.request(request)).status).toBe(200)
      expect(sidecar.device.requests.at(-1)?.header('destination')).toBe(destination)
    }
  })

  it('H204 an `allow` has to have the Destination with the same method', async () => {
    const allow = [
      { methods: ['MOVE'], paths: ['/a/'] },
      { methods: ['COPY'], paths: ['/b/'] },
      { methods: ['PUT'] },
    ]
    const names = makeNames({ admin: undefined, mover: allow })
    const sidecar = await startSidecar({ transport, config: names.config })
    const token = (await logInAs(sidecar, 'mover')).access_token
    const statusOf = async (method: string, path: string, destination: string): Promise<number> =>
      (await sidecar.request({ method, path, token, authority, fields: ['Destination', destination] })).status
    expect(await statusOf('MOVE', '/a/1', '/a/2')).toBe(200)
    expect(await statusOf('MOVE', '/a/1', '/b/2')).toBe(400)
    expect(await statusOf('COPY', '/b/1', '/b/2')).toBe(200)
    expect(await statusOf('COPY', '/b/1', `${scheme}://${authority}/a/2`)).toBe(400)
    // A rule without paths has every path of this host, and no other host's.
    expect(await statusOf('PUT', '/x', '/y')).toBe(200)
    expect(await statusOf('PUT', '/x', 'https://other.example/y')).toBe(400)
  })

  it('H204 the host is the one that a trusted proxy names', async () => {
    const listen = { trusted_proxies: ['127.0.0.1'] }
    const sidecar = await startSidecar({ transport, config: { listen, public_paths: ['/below/'] } })
    const statusOf = async (destination: string, proxy: string): Promise<number> => {
      const fields = ['Destination', destination, 'X-Forwarded-Host', proxy, 'X-Forwarded-Proto', 'https']
      return (await sidecar.request({ method: 'MOVE', path: '/below/a', authority, fields })).status
    }
    expect(await statusOf('https://front.example/below/b', 'front.example')).toBe(200)
    expect(await statusOf('https://front.example:443/below/b', 'front.example')).toBe(200)
    expect(await statusOf('https://front.example/below/b', 'other.example')).toBe(401)
    expect(await statusOf('https://front.example/admin', 'front.example')).toBe(401)
  })
})

it('H203 a WebSocket on a public path passes no such field', async () => {
  const sidecar = await startSidecar({ config: { public_paths: ['/live'] } })
  const { upgrades } = acceptWebSockets(sidecar.device)
  const headers = { 'X-Original-URL': '/admin', 'X.HTTP~Method': 'DELETE', 'X-Other': 'kept' }
  await openWebSocket(sidecar.url, { path: '/live', headers })
  expect(upgrades[0]?.rawHeaders).not.toContain('/admin')
  expect(upgrades[0]?.rawHeaders).not.toContain('DELETE')
  expect(upgrades[0]?.headers['x-other']).toBe('kept')
})
