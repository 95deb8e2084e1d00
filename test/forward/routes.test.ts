import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRouter } from '../../src/forward/routes.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { unusedPort } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const routeOf = createRouter(
  'main',
  new Map(['/cam/', '/cam/hd/', '/cam/raw', '/x'].map((path) => [path, path])),
)

describe('a route', () => {
  it.each([
    ['/', 'main'],
    ['/cam', 'main'],
    ['/camera/', 'main'],
    ['/CAM/', 'main'],
    ['/api?next=/cam/', 'main'],
    ['/cam/', '/cam/'],
    ['/cam/1?x=/../', '/cam/'],
    ['/cam/hd/1', '/cam/hd/'],
    ['/cam/raw', '/cam/raw'],
    ['/cam/raw/', '/cam/'],
    ['/x?y', '/x'],
    ['/x/', 'main'],
    ['/files/a%2Fb', 'main'],
    ['/cam/a%2Fb', '/cam/'],
    ['/cam/a/../b', '/cam/'],
    ['/cam/a;v=1', '/cam/'],
    ['/cam/%c3%a9', '/cam/'],
    ['/%c0propos', 'main'],
    ['/a;b/c', 'main'],
    ['//files', 'main'],
  ])('matches a path byte for byte, and the longest route wins: %s', (target, route) =>
    expect(routeOf(target)).toBe(route),
  )

  it.each([
    '/cam/../api',
    '/cam/%2e%2e/api',
    '/cam/..;/api',
    '/cam/..%2fapi',
    '/cam\\..\\api/../../cam/',
    '/api/../cam/1',
    '//cam/1',
    '/api/%252e%252e/cam/1',
    '/cam/hd/../1',
    '/cam%2f',
    '/x%00',
    '/%63am/1',
    '/cam;x/1',
    '/x;y',
    '/cam%00/1',
    '/cam/x%3f/../../api',
    '/cam/%c0%ae%c0%ae/api',
    '/cam/%u002e%u002e/api',
    '/api/%e0%80%ae%e0%80%ae/cam/1',
    `/${'%25'.repeat(1)}${'25'.repeat(20)}2e/cam`,
  ])('does not match a path that a device could resolve to another service: %s', (target) =>
    expect(routeOf(target)).toBe(undefined),
  )

  it('matches the decoded and resolved form of each path that it matches', () => {
    const pieces = fc.constantFrom(
      '/',
      '.',
      '..',
      '%2e',
      '%2f',
      '%5c',
      '\\',
      'a',
      'cam',
      'hd',
      'raw',
      '%25',
      '?',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const target = `/${parts.join('')}`
        const route = routeOf(target)
        if (route === undefined) return
        const read = decodeURIComponent(new URL(`http://device${target}`).pathname)
        if (/[%\\?]/.test(read) || read.includes('//')) return
        expect([route, undefined]).toContain(routeOf(read))
      }),
      { numRuns: 2_000 },
    )
  })
})

describeProtocols('upstream.routes', (transport) => {
  it('C21 each service gets only the requests for its paths, byte for byte', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const config = { upstream: { routes: { '/cam/': { url: camera.url, headers: { 'X-Camera': 'yes' } } } } }
    const sidecar = await startSidecar({ transport, device, config })
    const token = await sidecar.token()
    for (const path of ['/api', '/cam/1?a=/../b', '/cam']) {
      expect((await sidecar.request({ token, path })).status).toBe(200)
    }
    expect(device.requests.map(({ target }) => target)).toEqual(['/api', '/cam'])
    expect(camera.requests.map(({ target }) => target)).toEqual(['/cam/1?a=/../b'])
    expect(camera.requests[0]?.header('x-camera')).toBe('yes')
    expect(device.requests[0]?.header('x-camera')).toBe(undefined)
  })

  it('what a service does not say is as in upstream, also after a reload, and the values of upstream.headers stay there', async () => {
    const [device, camera, other] = [await startDevice(), await startDevice(), await startDevice()]
    const routes = { '/cam/': { url: camera.url }, '/own/': { url: other.url, headers: {}, max_body: '9B' } }
    const upstream = { headers: { 'X-Key': 'secret', 'x-odd': null }, max_body: '4B', routes }
    const sidecar = await startSidecar({ transport, device, config: { upstream } })
    const token = await sidecar.token()
    const statuses = (...paths: string[]): Promise<number[]> =>
      Promise.all(
        paths.map(async (path) => {
          const request = { method: 'PUT', path, token, body: 'x'.repeat(6), fields: ['X-Odd', 'sent'] }
          return (await sidecar.request(request)).status
        }),
      )
    expect(await statuses('/', '/cam/x', '/own/x')).toEqual([400, 400, 200])
    await sidecar.reload({ upstream: { headers: { 'x-odd': undefined, 'x-other': null }, max_body: 'off' } })
    expect(await statuses('/', '/cam/x', '/own/x')).toEqual([200, 200, 200])
    const seen = [device, camera, other].map(({ requests }) => requests.at(-1))
    expect(seen.map((request) => request?.header('X-Odd'))).toEqual(['sent', 'sent', 'sent'])
    expect(seen.map((request) => request?.header('X-Key'))).toEqual(['secret', undefined, undefined])
    await sidecar.reload({ upstream: { max_body: 'off' } })
    await statuses('/', '/cam/x', '/own/x')
    const again = [device, camera, other].map(({ requests }) => requests.at(-1)?.header('X-Odd'))
    expect(again).toEqual([undefined, undefined, undefined])
  })

  it('C12 all services need the same token and share the limits', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const config = {
      upstream: { routes: { '/cam/': { url: camera.url } } },
      limits: { api: { requests: 3 } },
    }
    const sidecar = await startSidecar({ transport, device, config })
    const token = await sidecar.token()
    expect((await sidecar.request({ path: '/cam/' })).status).toBe(401)
    expect((await sidecar.request({ token, path: '/cam/' })).status).toBe(200)
    expect((await sidecar.request({ token })).status).toBe(200)
    expect((await sidecar.request({ token, path: '/cam/' })).status).toBe(429)
    expect(camera.requests).toHaveLength(1)
  })

  it('H24 a path that a device could resolve to another service is refused and reaches no service', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const config = { upstream: { routes: { '/cam/': { url: camera.url } } } }
    const sidecar = await startSidecar({ transport, device, config })
    const token = await sidecar.token()
    expectError(await sidecar.request({ token, path: '/cam/../api' }), 400, 'invalid_request')
    expectError(await sidecar.request({ token, path: '/a/%2e%2e/cam/' }), 400, 'invalid_request')
    expect((await sidecar.request({ path: '/cam/../api' })).status).toBe(401)
    expect([device.requests, camera.requests]).toEqual([[], []])
  })
})

describe('the services of a device', () => {
  it('fail independently, and each has its own up metric', async () => {
    const device = await startDevice()
    const gone = `http://127.0.0.1:${await unusedPort()}`
    const config = { upstream: { routes: { '/cam/': { url: gone } } } }
    const sidecar = await startSidecar({ device, config })
    const token = await sidecar.token()
    for (const _ of [1, 2, 3, 4]) {
      expectError(await sidecar.request({ token, path: '/cam/' }), 500, 'upstream_unavailable')
    }
    expect((await sidecar.request({ token })).status).toBe(200)
    expect(await sidecar.metric('postern_upstream_up')).toBe(1)
    expect(await sidecar.metrics()).toContain('postern_route_up{route="/cam/"} 0')
  })

  it('each tunnel the WebSockets for their paths', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const upgrades = acceptWebSockets(camera)
    const config = { upstream: { routes: { '/cam/': { url: camera.url } } } }
    const sidecar = await startSidecar({ device, config })
    const token = await sidecar.token()
    const { socket } = await openWebSocket(sidecar.url, { token, path: '/cam/live' })
    socket.close()
    expect(upgrades.upgrades.map(({ url }) => url)).toEqual(['/cam/live'])
    expect(device.requests).toEqual([])
  })

  it('each have their own account for the sign-in', async () => {
    const file = join(temporaryDirectory(), 'camera-password')
    writeFileSync(file, 'lens cap\n')
    const [device, camera] = [await startDevice(), await startDevice()]
    camera.handle((request, response) => {
      response.statusCode = request.headers.authorization === undefined ? 401 : 200
      response.setHeader('WWW-Authenticate', 'Basic realm="camera"')
      response.end()
    })
    const auth = { kind: 'basic', user: 'eye', password: { file } }
    const config = { upstream: { routes: { '/cam/': { url: camera.url, auth } } } }
    const sidecar = await startSidecar({ device, config })
    const token = await sidecar.token()
    expect((await sidecar.request({ token, path: '/cam/' })).status).toBe(200)
    await sidecar.request({ token, path: '/' })
    const shown = `Basic ${Buffer.from('eye:lens cap').toString('base64')}`
    expect(camera.requests.at(-1)?.header('authorization')).toBe(shown)
    expect(device.requests.at(-1)?.header('authorization')).toBe(undefined)
  })
})
