import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startDevice, startHoldingDevice } from '../support/device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { waitForQueued } from '../support/waiting.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

/** A device that answers with its name. */
const named = (name: string) => startDevice((_request, response) => response.end(name))

const inFlight = (sidecar: TestSidecar): Promise<number> => sidecar.metric('postern_upstream_in_flight')

it('C24 a reload that replaces the device: requests and WebSockets in flight end with the old one, new ones go to the new one, and windows and tokens stay', async () => {
  const { device: old, held } = await startHoldingDevice()
  acceptWebSockets(old)
  const other = await named('the other')
  acceptWebSockets(other)
  const sidecar = await startSidecar({ device: old, documentedLimits: true })
  const token = await sidecar.token()
  const { socket } = await openWebSocket(sidecar.url, { token })
  const slow = sidecar.request({ token })
  await expect.poll(() => held.length).toBe(1)

  const changes = await sidecar.reload({ upstream: { url: other.url } })
  expect(changes).toEqual({ live: ['upstream.url'], restart: [] })
  expect(await inFlight(sidecar)).toBe(1)
  const next = await sidecar.request({ token })
  expect(next.text).toBe('the other')
  expect(next.header('x-ratelimit-remaining')).toBe('57')
  const echoed = once(socket, 'message')
  socket.send('still there?')
  expect(String((await echoed)[0])).toBe('still there?')
  held[0]?.end('the old')
  expect((await slow).text).toBe('the old')
  await openWebSocket(sidecar.url, { token })
  expect(held).toHaveLength(1)
  expect(sidecar.overview.condition().services[0]?.url).toBe(other.url)
  // The sidecar has closed its idle connections to the old device. The WebSocket is open.
  await expect.poll(() => openSockets(old)).toBe(1)
  expect(await inFlight(sidecar)).toBe(0)
})

const openSockets = (device: Awaited<ReturnType<typeof startDevice>>): Promise<number> =>
  new Promise((resolve, reject) =>
    device.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )

it('C25 a reload with another bound for the same device: what is in flight still counts, and the new bound holds for those that wait', async () => {
  const { device, held } = await startHoldingDevice()
  const sidecar = await startSidecar({ device, config: { upstream: { max_in_flight: 2 } } })
  const token = await sidecar.token()
  const requests = [1, 2, 3].map((at) => sidecar.request({ token, path: `/${at}` }))
  await waitForQueued(sidecar, 1)
  expect(held).toHaveLength(2)
  await sidecar.reload({ upstream: { max_in_flight: 1 } })
  requests.push(sidecar.request({ token, path: '/4' }))
  await expect.poll(() => inFlight(sidecar)).toBe(2)
  await expect.poll(() => queued(sidecar)).toBe(2)
  held[0]?.end()
  await expect.poll(() => inFlight(sidecar)).toBe(1)
  expect(held).toHaveLength(2)
  for (const [at, target] of ['/3', '/4'].entries()) {
    held[at + 1]?.end()
    await expect.poll(() => device.requests.at(-1)?.target).toBe(target)
    expect(held).toHaveLength(at + 3)
  }
  held[3]?.end()
  await Promise.all(requests)
  expect(await inFlight(sidecar)).toBe(0)
})

it('C25 a reload adds a route to the same device and removes it: what is in flight counts, and the others go on', async () => {
  const { device, held } = await startHoldingDevice()
  const sidecar = await startSidecar({ device, config: { upstream: { max_in_flight: 2 } } })
  const token = await sidecar.token()
  const requests = [sidecar.request({ token, path: '/1' })]
  await device.waitForRequests(1)
  await sidecar.reload({ upstream: { routes: { '/b': { url: device.url } } } })
  requests.push(sidecar.request({ token, path: '/b' }), sidecar.request({ token, path: '/b' }))
  await waitForQueued(sidecar, 1)
  expect([device.requests.length, await inFlight(sidecar)]).toEqual([2, 2])
  const none = join(sidecar.directory, 'none')
  const refused = sidecar.reload({ upstream: { routes: { '/c': { url: device.url, tls: { ca: none } } } } })
  await expect(refused).rejects.toThrow(none)
  await sidecar.reload({})
  held[0]?.end()
  await device.waitForRequests(3)
  requests.push(sidecar.request({ token, path: '/4' }))
  await waitForQueued(sidecar, 1)
  for (const response of held) response.end()
  await device.waitForRequests(4)
  held[3]?.end()
  expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(await inFlight(sidecar)).toBe(0)
})

const queued = (sidecar: TestSidecar) => sidecar.overview.condition().services[0]?.queue.queued

it('C25 over several reloads of the queue and the bound, a place that is left goes to the request that has waited longest', async () => {
  const { device, held } = await startHoldingDevice()
  const sidecar = await startSidecar({ device, config: { upstream: { max_in_flight: 2 } } })
  const token = await sidecar.token()
  const requests = [1, 2].map((at) => sidecar.request({ token, path: `/${at}` }))
  await expect.poll(() => held.length).toBe(2)
  const bounds = [{ size: 100 }, { size: 101 }, { size: 102 }].map((queue) => ({ max_in_flight: 2, queue }))
  for (const [at, upstream] of [...bounds, { max_in_flight: { min: 1, max: 2 } }].entries()) {
    await sidecar.reload({ upstream })
    requests.push(sidecar.request({ token, path: `/${at + 3}` }))
    await expect.poll(() => queued(sidecar)).toBe(at + 1)
  }
  for (const at of [0, 1, 2, 3]) {
    held[at]?.end()
    await expect.poll(() => device.requests.at(-1)?.target).toBe(`/${at + 3}`)
    expect(held.length).toBe(at + 3)
  }
  for (const response of held) response.end()
  const statuses = (await Promise.all(requests)).map(({ status }) => status)
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200])
})

it('a reload with fewer tunnels counts those that are open', async () => {
  const device = await named('the device')
  acceptWebSockets(device)
  const sidecar = await startSidecar({ device })
  const token = await sidecar.token()
  await openWebSocket(sidecar.url, { token })
  await sidecar.reload({ upstream: { max_tunnels: 1 } })
  expect((await refusedWebSocket(sidecar.url, { token })).status).toBe(500)
  await sidecar.reload({ upstream: { max_tunnels: 2 } })
  await openWebSocket(sidecar.url, { token })
})

it('H76 a reload whose device cannot be set up is refused, and changes nothing', async () => {
  const [old, other] = [await named('the old'), await named('the other')]
  const sidecar = await startSidecar({ device: old })
  const token = await sidecar.token()
  const none = join(sidecar.directory, 'none')
  const reloading = sidecar.reload({
    upstream: { url: other.url, routes: { '/b/': { url: other.url, tls: { ca: none } } } },
  })
  await expect(reloading).rejects.toThrow(none)
  expect((await sidecar.request({ token })).text).toBe('the old')
  expect(other.requests).toHaveLength(0)
})

it('a reload adds a service of upstream.routes, gives it another device, and removes it', async () => {
  const [main, one, two] = [await named('main'), await named('one'), await named('two')]
  const sidecar = await startSidecar({ device: main })
  const token = await sidecar.token()
  const answer = async (): Promise<string> => (await sidecar.request({ token, path: '/b/' })).text
  const routes = (url: string) => ({ upstream: { routes: { '/b/': { url } } } })
  expect(await answer()).toBe('main')
  await sidecar.reload(routes(one.url))
  expect(await answer()).toBe('one')
  await sidecar.reload(routes(two.url))
  expect(await answer()).toBe('two')
  await sidecar.reload({})
  expect(await answer()).toBe('main')
})

it('H76 whether a service answers is forgotten when a reload gives it another device or removes it', async () => {
  const [device, other] = [await named('the device'), await named('the other')]
  const gone = await named('gone')
  await new Promise((resolve) => gone.server.close(resolve))
  const sidecar = await startSidecar({ device })
  const token = await sidecar.token()
  const up = async (family = '') =>
    [...(await sidecar.metrics()).matchAll(/^postern_(?:upstream|route)_up.*$/gm)]
      .map(([line]) => line)
      .filter((line) => line.includes(family))
  const routes = (url: string) => ({ upstream: { routes: { '/b/': { url } } } })
  await sidecar.reload(routes(gone.url))
  expect((await sidecar.request({ token, path: '/b/' })).status).toBe(500)
  expect(await up('route')).toEqual(['postern_route_up{route="/b/"} 0'])
  await sidecar.reload(routes(other.url))
  expect(await up('route')).toEqual([])
  await sidecar.request({ token, path: '/b/' })
  expect(await up('route')).toEqual(['postern_route_up{route="/b/"} 1'])
  await sidecar.reload({ upstream: { url: gone.url } })
  expect(await up()).toEqual([])
  expect((await sidecar.request({ token })).status).toBe(500)
  expect(await up()).toEqual(['postern_upstream_up 0'])
  await sidecar.reload({ upstream: { url: other.url } })
  expect(await up()).toEqual([])
})

it('a reload with the same device and another deadline has that in effect, and loses no connection that is in use', async () => {
  const { device, held } = await startHoldingDevice()
  const sidecar = await startSidecar({ device, config: { upstream: { max_in_flight: 8 } } })
  const token = await sidecar.token()
  const before = sidecar.request({ token })
  await expect.poll(() => held.length).toBe(1)
  await sidecar.reload({ upstream: { response_timeout: '1s', health: { path: '/health' } } })
  const after = sidecar.request({ token })
  await expect.poll(() => held.length).toBe(3)
  expect(device.requests.map(({ target }) => target)).toContain('/health')
  await sidecar.clock.advance(1_000)
  expect((await after).status).toBe(500)
  held[0]?.end('late')
  expect((await before).text).toBe('late')
})

it('C8 with password.device a reload keeps the password: the new connections sign in by it, and a device that refuses it ends its tokens', async () => {
  const right = `Basic ${Buffer.from('admin:secret').toString('base64')}`
  let accepted = right
  const device = await startDevice((request, response) => {
    response.statusCode = request.headers.authorization === accepted ? 200 : 401
    if (response.statusCode === 401) response.setHeader('WWW-Authenticate', 'Basic realm="device"')
    response.end()
  })
  const auth = { kind: 'basic', user: 'admin', check_path: '/check' }
  const sidecar = await startSidecar({
    device,
    config: { password: { file: undefined, device: true }, upstream: { auth } },
  })
  const response = await sidecar.postToken({ grant_type: 'password', password: 'secret' })
  const token = String(response.json().access_token)
  await sidecar.reload({ upstream: { response_timeout: '7s' } })
  expect((await sidecar.request({ token })).status).toBe(200)
  // The other device, or the same one with another password.
  accepted = 'another'
  await sidecar.reload({ upstream: { response_timeout: '8s' } })
  await sidecar.request({ token })
  expect((await sidecar.request({ token })).status).toBe(401)
  expect(await sidecar.metric('postern_tokens_revoked_total', { reason: 'password_changed' })).toBe(1)
})

it('a reload changes the fields of the login at the device, which keeps its session', async () => {
  const logins: unknown[] = []
  const device = await startDevice((request, response) => {
    if (request.url === '/login') {
      logins.push(request.headers['x-own'])
      response.setHeader('Set-Cookie', 'SID=1; Path=/')
    } else if (request.headers.cookie !== 'SID=1' || request.url === '/over') response.statusCode = 401
    response.end()
  })
  const session = { login: { path: '/login', form: { password: '$password' } } }
  const start = await startSidecar({ device })
  const auth = { kind: 'session', session, password: { file: start.passwordFile } }
  const sidecar = await startSidecar({
    device,
    config: { upstream: { auth, headers: { 'X-Own': 'former' } } },
  })
  const token = await sidecar.token()
  const ask = async (path: string) => (await sidecar.request({ token, path })).status
  expect([await ask('/'), logins]).toEqual([200, ['former']])
  await sidecar.reload({ upstream: { headers: { 'X-Own': 'later' } } })
  expect([await ask('/'), logins]).toEqual([200, ['former']])
  await ask('/over')
  expect([await ask('/'), logins]).toEqual([200, ['former', 'later']])
})

it('the account at the device waits for a restart with password.device', async () => {
  const device = await named('the device')
  const auth = { kind: 'basic', user: 'admin', check_path: '/check' }
  const sidecar = await startSidecar({
    device,
    config: { password: { file: undefined, device: true }, upstream: { auth } },
  })
  const changes = await sidecar.reload({
    password: { file: sidecar.passwordFile, device: undefined },
    upstream: { auth: 'off' },
  })
  expect(changes).toEqual({ live: [], restart: ['upstream.auth', 'password.file', 'password.device'] })
})
