import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPublicPaths } from '../../src/gate/classify.ts'
import { formAuth, startBasicDevice, startFormDevice } from '../sign-in/devices.ts'
import { runCases } from '../support/cases.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { bytesOf } from '../support/shown-bytes.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { refusedWebSocket } from '../support/websocket.ts'

const find = createPublicPaths(['/login', '/static/'])
const isPublic = (target: string): boolean => find(target) === 'open'

// The public paths are `/login` and `/static/`.
runCases(join(import.meta.dirname, 'public-paths.txt'), {
  given: ['target'],
  results: ['is'],
  play: ({ target = '' }) => ({ is: find(bytesOf(target).toString('latin1')) ?? 'no public path' }),
})

describe('a public path', () => {
  it('is signed in if its entry says so, even below another one', () => {
    const findBoth = createPublicPaths(['/static/', { path: '/static/x' }])
    expect(['/static/x?y', '/static/y', '/x'].map(findBoth)).toEqual(['signed-in', 'open', undefined])
  })

  it('matches only targets that decode and resolve to a public path', () => {
    const pieces = fc.constantFrom('/', '.', '..', '%2e', '%2f', '%5c', '\\', ';', 'a', 'static', '%25', '?')
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const target = `/static/${parts.join('')}`
        if (!isPublic(target)) return
        const read = new URL(target, 'http://device').pathname
        expect(decodeURIComponent(read)).toMatch(/^\/static\//)
      }),
    )
  })
})

describeProtocols('public_paths', (transport) => {
  it('a public path needs no token and counts against the limits; all other paths need a token', async () => {
    const device = await startDevice()
    const config = { public_paths: ['/login', '/static/'], limits: { api: { requests: 3 } } }
    const sidecar = await startSidecar({ transport, device, config })
    expect((await sidecar.request({ path: '/login' })).status).toBe(200)
    expect((await sidecar.request({ path: '/static/logo.png', token: 'not-one' })).status).toBe(200)
    expect((await sidecar.request({ path: '/static/../api' })).status).toBe(401)
    expect((await sidecar.request({ path: '/login' })).status).toBe(429)
    expect(device.requests.map(({ target }) => target)).toEqual(['/login', '/static/logo.png'])
  })
})

describeProtocols('H169 a public path that is signed in', (transport) => {
  const path = '/index.html'

  async function start() {
    const device = await startBasicDevice()
    const file = join(temporaryDirectory(), 'device-password')
    writeFileSync(file, device.password)
    const sidecar = await startSidecar({
      transport,
      device: device.device,
      config: {
        upstream: { auth: { kind: 'basic', user: 'admin', password: { file } } },
        public_paths: [{ path, signed_in: true }, '/static/'],
      },
    })
    return { device, sidecar }
  }

  it('is read without a token, whatever the query and the Authorization of the client', async () => {
    const { device, sidecar } = await start()
    for (const target of [path, `${path}?x=/../y`]) {
      const fields = ['Authorization', 'Basic bWluZTptaW5l']
      const response = await sidecar.request({ path: target, fields })
      expect([response.status, response.text]).toEqual([200, 'from the device'])
      expect(device.device.requests.at(-1)?.target).toBe(target)
      expect(device.device.requests.at(-1)?.values('authorization')).not.toContain('Basic bWluZTptaW5l')
    }
    expect((await sidecar.request({ method: 'HEAD', path })).status).toBe(200)
    expect(device.refusals).toBe(0)
  })

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND'])(
    'is reached by %s without a token as any public path, without the login',
    async (method) => {
      const { device, sidecar } = await start()
      expect((await sidecar.request({ path })).status).toBe(200)
      expect((await sidecar.request({ method, path })).status).toBe(401)
      expect(device.device.requests.at(-1)?.method).toBe(method)
      expect(device.device.requests.at(-1)?.header('authorization')).toBeUndefined()
      expect((await sidecar.request({ method, path, token: await sidecar.token() })).status).toBe(200)
    },
  )

  it.each([
    'X-Original-URL',
    'X-Rewrite-Url',
    'X-HTTP-Method-Override',
    'X-Method-Override',
    'x_http_method',
    'X-Original-URI',
    'X-Original-Method',
    'X-Accel-Redirect',
    'X-Forwarded-Prefix',
  ])('is read without the login if the request names another path or method in %s', async (name) => {
    const { device, sidecar } = await start()
    const request = { path, fields: [name, '/admin'] }
    expect((await sidecar.request(request)).status).toBe(401)
    expect(device.device.requests.at(-1)?.header('authorization')).toBeUndefined()
    expect((await sidecar.request({ ...request, token: await sidecar.token() })).status).toBe(200)
  })

  it.each([
    ['with a length', 'x'],
    ['in chunks', ['x', 'y']],
  ])('is read without the login if the request has a body, %s', async (_name, body) => {
    const { device, sidecar } = await start()
    expect((await sidecar.request({ method: 'GET', path, body })).status).toBe(401)
    expect(device.device.requests.at(-1)?.header('authorization')).toBeUndefined()
  })

  it('is read with the login if the request says that its body is empty', async () => {
    const { sidecar } = await start()
    expect((await sidecar.request({ path, fields: ['Content-Length', '0'] })).status).toBe(200)
  })

  it('opens no other path', async () => {
    const { device, sidecar } = await start()
    for (const other of ['/index.html/', '/index.html/x', '/x/../index.html', '//index.html', '/']) {
      expect((await sidecar.request({ path: other })).header('www-authenticate')).toMatch(/^Bearer/)
    }
    expect(device.device.requests).toHaveLength(0)
    expect((await sidecar.request({ path: '/static/logo.png' })).status).toBe(401)
    expect(device.attempts).toBe(0)
  })
})

it('H169 a WebSocket on a public path that is signed in gets no login', async () => {
  const device = await startFormDevice()
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, device.password)
  const auth = { ...formAuth(), password: { file } }
  const public_paths = [{ path: '/ws', signed_in: true }]
  const sidecar = await startSidecar({ device: device.device, config: { upstream: { auth }, public_paths } })
  expect((await sidecar.request({ path: '/ws' })).status).toBe(200)
  await refusedWebSocket(sidecar.url, { path: '/ws' })
  expect(device.device.requests.at(-1)?.header('cookie')).toBeUndefined()
})

describeProtocols('enforce: false', (transport) => {
  it('forwards what it would refuse, counts and logs it, and still protects the token endpoint', async () => {
    const device = await startDevice()
    const config = { enforce: false, limits: { api: { requests: 2 } } }
    const sidecar = await startSidecar({ transport, device, config })
    for (const _ of [1, 2, 3]) expect((await sidecar.request()).status).toBe(200)
    expect(device.requests).toHaveLength(3)
    expect(await sidecar.metric('postern_auth_failures_total', { reason: 'missing' })).toBe(2)
    expect(await sidecar.metric('postern_rate_limited_total', { endpoint: 'api' })).toBe(1)
    const would = sidecar.logLines().filter((line) => line.includes('"would_refuse"'))
    expect(would).toHaveLength(3)
    expect(would[2]).toContain('"would_refuse":"rate-limited"')
    expect((await sidecar.postToken({ grant_type: 'password', password: 'wrong' })).status).toBe(400)
    expect((await sidecar.request({ method: 'GET', path: '/oauth/token' })).status).toBe(400)
  })
})
