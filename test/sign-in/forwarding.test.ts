import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import { headOf } from '../support/http1-reader.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports, rowsOver } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'
import {
  type FormDevice,
  formAuth,
  type LockedDevice,
  startBasicDevice,
  startDigestDevice,
  startFormDevice,
} from './devices.ts'

type Options = Parameters<typeof startSidecar>[0]

function startWithAuth(
  { device, password }: LockedDevice,
  auth: object,
  options: Options = {},
  parser = 'auto',
): Promise<TestSidecar> {
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, password)
  const upstream = { parser, auth: { user: 'admin', password: { file }, ...auth } }
  return startSidecar({ device, ...options, config: { upstream, ...options.config } })
}

/** Starts a sidecar with `password.device`, without the password file of the tests. */
function startWithDevicePassword(
  device: LockedDevice,
  auth: object,
  options: Options = {},
): Promise<TestSidecar> {
  return startSidecar({
    device: device.device,
    password: device.password,
    ...options,
    config: { upstream: { auth }, password: { file: undefined, device: true }, ...options.config },
  })
}

const grant = (sidecar: TestSidecar, password: string) =>
  sidecar.postToken({ grant_type: 'password', password })

const isForm = (device: LockedDevice): device is FormDevice => 'sessions' in device

const basic = { kind: 'basic', user: 'admin' }
const loginForm = { ...formAuth(), check_path: '/home' }

/** The device of each scheme, and `upstream.auth` for it. */
const SCHEMES = [
  ['Basic', basic, startBasicDevice],
  ['Digest', { kind: 'digest', user: 'admin' }, startDigestDevice],
  ['a form', loginForm, startFormDevice],
] as const

describeProtocols('A request to a device with a login', (transport) => {
  it.each(rowsOver(transport, SCHEMES))('is signed in by %s', async (_how, auth, start) => {
    const device = await start()
    const sidecar = await startWithAuth(device, auth, { transport })
    const token = await sidecar.token()
    const response = await sidecar.request({ path: '/api?x=1', token, fields: ['Cookie', 'a=1'] })
    expect([response.status, response.text]).toEqual([200, 'from the device'])
    const posted = await sidecar.request({ method: 'POST', path: '/api', body: 'hello', token })
    expect(posted.status).toBe(200)
    expect(device.device.requests.at(-1)?.body?.toString()).toBe('hello')
    expect(device.device.bytes.toString('latin1')).not.toContain(token)
    expect(device.device.requests.at(-2)?.values('cookie')).toHaveLength(1)
    expect(device.device.requests.at(-2)?.header('cookie')).toMatch(/(?:^|; )a=1$/)
    expect(device.attempts - device.refusals).toBeGreaterThan(0)
    expect(device.refusals).toBe(0)
  })

  it('is repeated with its body when the session has ended', async () => {
    const device = await startFormDevice()
    const sidecar = await startWithAuth(device, formAuth(), { transport })
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    await sidecar.clock.advance(10_000)
    const response = await sidecar.request({ method: 'POST', path: '/api', body: ['hel', 'lo'], token })
    expect([response.status, response.text]).toEqual([200, 'from the device'])
    expect(device.device.requests.at(-1)?.body?.toString()).toBe('hello')
    expect(device.attempts).toBe(2)
  })

  it('is not repeated if its body is long; the sidecar is signed in for the next request', async () => {
    const device = await startFormDevice()
    const sidecar = await startWithAuth(device, formAuth(), { transport })
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    const body = Buffer.alloc(200_000)
    const refused = await sidecar.request({ method: 'POST', path: '/api', body, token })
    expect([refused.status, refused.header('location')]).toEqual([302, '/login?from=here'])
    expect(refused.header('set-cookie')).toBeUndefined()
    const response = await sidecar.request({ method: 'POST', path: '/api', body, token })
    expect(response.status).toBe(200)
    expect(device.attempts).toBe(2)
  })
})

it('The first login after a start with `password.device` signs in to the device once', async () => {
  const device = await startBasicDevice()
  const sidecar = await startWithDevicePassword(device, basic, { config: { tokens: { store: 'file' } } })
  await sidecar.token()
  expect(device.attempts).toBe(1)
})

it.each([
  ['the same one', 'secret', 200],
  ['another one', 'another', 401],
])(
  'C8 tokens of a run before work until the first login tells the password of the device: %s',
  async (_, next, then) => {
    const device = await startBasicDevice()
    const state_dir = join(temporaryDirectory(), 'state')
    const start = () =>
      startWithDevicePassword(device, basic, { config: { tokens: { store: 'file' }, state_dir } })
    device.password = 'secret'
    const before = await start()
    const token = String((await grant(before, 'secret')).json().access_token)
    await before.stop()
    device.password = next
    const after = await start()
    expect((await after.request({ token, path: '/open' })).status).toBe(200)
    expect((await grant(after, 'wrong')).status).toBe(400)
    expect((await after.request({ token, path: '/open' })).status).toBe(200)
    expect((await grant(after, next)).status).toBe(200)
    expect((await after.request({ token, path: '/open' })).status).toBe(then)
  },
)

describeTransports('C8 A request that the device refuses because its password has changed', (transport) => {
  it.each(rowsOver(transport, ['POST', 'GET']))('revokes its token and all others (%s)', async (method) => {
    const device = await startBasicDevice()
    const sidecar = await startWithDevicePassword(device, basic, { transport })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    const before = device.password
    device.password = 'another'
    const body = method === 'POST' ? { body: 'hello' } : {}
    const responses = await Promise.all([1, 2, 3].map(() => sidecar.request({ token, method, ...body })))
    for (const response of responses) {
      expectError(response, 401, 'invalid_token')
      expect(response.header('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/)
      expect(response.header('x-ratelimit-limit')).toBeDefined()
    }
    expectError(await sidecar.request({ token }), 401, 'invalid_token')
    expectError(await grant(sidecar, before), 400, 'invalid_grant')
    expect((await grant(sidecar, 'another')).status).toBe(200)
  })

  it('breaks off running responses and refuses requests that wait at the device', async () => {
    const device = await startBasicDevice()
    const sidecar = await startWithDevicePassword(device, basic, { transport })
    const token = await sidecar.token()
    const fields = ['Authorization', `Bearer ${token}`]
    const waits = Promise.withResolvers<void>()
    device.device.handle((request, response) => {
      if (request.url === '/streams') response.write('some')
      else if (request.url === '/waits') waits.resolve()
      else response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="device"' }).end()
    })
    const streams = (await sidecar.connect()).start({ path: '/streams', fields })
    await streams.waitFor('some')
    const late = sidecar.request({ path: '/waits', token })
    await waits.promise
    expectError(await passUntil(sidecar.clock, sidecar.request({ token })), 401, 'invalid_token')
    await expect(streams.response).rejects.toThrow()
    expectError(await late, 401, 'invalid_token')
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
  })
})

it.each(SCHEMES)(
  'C8 the next request detects a password that changed right after a sign-in by %s',
  async (_how, auth, start) => {
    const device = await start()
    const sidecar = await startWithDevicePassword(device, auth)
    for (const next of ['second', 'third']) {
      const token = String((await grant(sidecar, device.password)).json().access_token)
      expect((await sidecar.request({ token })).status).toBe(200)
      device.password = next
      if (isForm(device)) device.sessions.clear()
      expectError(await sidecar.request({ token }), 401, 'invalid_token')
      expectError(await sidecar.request({ token }), 401, 'invalid_token')
    }
  },
)

it("a path that the account may not read returns the device's response, and causes one login in five seconds", async () => {
  const device = await startBasicDevice()
  const sidecar = await startWithDevicePassword(device, basic)
  const token = await sidecar.token()
  const before = device.attempts
  for (let i = 0; i < 5; i += 1) {
    const response = await sidecar.request({ path: '/forbidden', token })
    expect([response.status, response.text]).toEqual([401, 'refused'])
    expect((await sidecar.request({ token })).status).toBe(200)
  }
  // Ten requests, one login, and one repeated request.
  expect(device.attempts - before).toBe(12)
})

it.each([
  ['accepts every nonce once', true],
  ['accepts every nonce once and never says stale', false],
])('concurrent requests are all signed in at a device that %s', async (_what, saysStale) => {
  const device = await startDigestDevice()
  device.oneTime = true
  device.saysStale = saysStale
  const sidecar = await startWithAuth(device, { kind: 'digest' })
  const token = await sidecar.token()
  for (let round = 0; round < 3; round += 1) {
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_x, n) => sidecar.request({ path: `/${n}`, token })),
    )
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill(200))
  }
})

it('a request that cannot be repeated gets the new nonce for the next one', async () => {
  const device = await startDigestDevice()
  const sidecar = await startWithAuth(device, { kind: 'digest' })
  const token = await sidecar.token()
  expect((await sidecar.request({ token })).status).toBe(200)
  device.nonce = 'another'
  const upload = { token, method: 'POST', body: Buffer.alloc(200_000) }
  expect((await sidecar.request(upload)).status).toBe(401)
  expect((await sidecar.request(upload)).status).toBe(200)
})

it('a WebSocket whose nonce is stale is asked for again with the new nonce', async () => {
  const device = await startDigestDevice()
  const sidecar = await startWithAuth(device, { kind: 'digest' })
  const token = await sidecar.token()
  expect((await sidecar.request({ token })).status).toBe(200)
  device.nonce = 'another'
  const before = device.device.requests.length
  expect((await refusedWebSocket(sidecar.url, { token })).status).toBe(200)
  expect(device.device.requests.length - before).toBe(2)
})

it('C5 a device that calls every nonce stale causes no invalid_grant and revokes no token', async () => {
  const device = await startDigestDevice()
  const sidecar = await startWithDevicePassword(device, { kind: 'digest', user: 'admin' })
  const token = await sidecar.token()
  device.alwaysStale = true
  expectError(await grant(sidecar, device.password), 500, 'upstream_unavailable')
  expect((await sidecar.request({ token })).status).toBe(401)
  device.alwaysStale = false
  expect((await sidecar.request({ token })).status).toBe(200)
})

describe('A request to a device with a login', () => {
  it("gets the device's 401 if the credentials are wrong, and the device gets one login", async () => {
    const device = await startBasicDevice()
    const sidecar = await startWithAuth({ ...device, password: 'canary' }, basic)
    const token = await sidecar.token()
    for (let i = 0; i < 5; i += 1) {
      const response = await sidecar.request({ token })
      expect([response.status, response.text]).toEqual([401, 'refused'])
      expect(response.header('www-authenticate')).toBe('Basic realm="device"')
    }
    expect(device.refusals).toBe(1)
    const log = sidecar.logLines().join('\n')
    expect(log).toContain('refuses the password')
    expect(log).not.toContain('canary')
  })

  it('gets upstream_unavailable if the device is down', async () => {
    const device = await startBasicDevice()
    const sidecar = await startWithAuth(device, basic)
    const token = await sidecar.token()
    await device.device.stop()
    const response = await sidecar.request({ token })
    expectError(response, 500, 'upstream_unavailable')
    expect(response.header('proxy-status')).toContain('connection_refused')
  })

  it('gets an overlong challenge as a stream', async () => {
    const device = await startBasicDevice()
    const sidecar = await startWithAuth(device, basic)
    const token = await sidecar.token()
    await sidecar.request({ token })
    const { promise, resolve } = Promise.withResolvers<void>()
    device.device.handle(async (_request, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"' })
      response.write(Buffer.alloc(300_000, 'x'))
      await promise
      response.end('end')
    })
    const connection = await sidecar.connect()
    const exchange = connection.start({ fields: ['Authorization', `Bearer ${token}`] })
    expect((await exchange.head).status).toBe(401)
    resolve()
    expect((await exchange.response).body).toHaveLength(300_003)
  })

  it('gets upstream_unavailable if the device does not answer the login', async () => {
    const device = await startFormDevice()
    const sidecar = await startWithAuth(device, formAuth())
    const token = await sidecar.token()
    device.device.handle((request, response) => {
      if (request.method === 'POST') response.destroy()
      else response.end('no login needed')
    })
    expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
  })

  it('gets upstream_unavailable if the challenge breaks off', async () => {
    const device = await startBasicDevice()
    const sidecar = await startWithAuth(device, basic)
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.device.handle((_request, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"', 'Content-Length': '10' })
      response.write('half', () => response.destroy())
    })
    expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
  })

  it.each([
    ['on a public path', { public_paths: ['/api'] }],
    ['that is only observed', { enforce: false }],
  ])('without a token, %s, is not signed in', async (_what, config) => {
    const device = await startBasicDevice()
    const sidecar = await startWithAuth(device, basic, { config })
    const response = await sidecar.request({ path: '/api' })
    expect([response.status, response.text]).toEqual([401, 'refused'])
    expect(device.attempts).toBe(0)
    const signed = await sidecar.request({ path: '/api', token: await sidecar.token() })
    expect(signed.status).toBe(200)
  })

  it('is also repeated with parser: tolerant', async () => {
    const device = await startFormDevice()
    const sidecar = await startWithAuth(device, formAuth(), {}, 'tolerant')
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    await sidecar.clock.advance(10_000)
    const response = await sidecar.request({ method: 'POST', path: '/api', body: 'hello', token })
    expect([response.status, response.text]).toEqual([200, 'from the device'])
    expect(device.device.requests.at(-1)?.body?.toString()).toBe('hello')
    expect(device.attempts).toBe(2)
  })

  it('may be a WebSocket', async () => {
    const device = await startFormDevice()
    const { upgrades } = acceptWebSockets(device.device)
    const sidecar = await startWithAuth(device, formAuth())
    const token = await sidecar.token()
    const { socket } = await openWebSocket(sidecar.url, { path: '/ws', token })
    socket.close()
    const id = [...device.sessions][0]
    expect(upgrades[0]?.headers.cookie).toBe(`SID=${id}`)
  })

  it('may be a WebSocket after the session has ended, and a message that the client sent early arrives once', async () => {
    const device = await startFormDevice()
    const messages: string[] = []
    device.device.server.on('upgrade', (request, socket) => {
      const known = [...device.sessions].some((id) => request.headers.cookie === `SID=${id}`)
      socket.on('data', (bytes: Buffer) => messages.push(bytes.toString()))
      if (known)
        socket.write(
          'HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: SID=x\r\n\r\n',
        )
      else socket.end('HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n')
    })
    const sidecar = await startWithAuth(device, formAuth())
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    await sidecar.clock.advance(10_000)
    const client = await rawConnection(sidecar.url)
    const head = headOf(
      'GET /ws HTTP/1.1',
      'Host: device',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      `Authorization: Bearer ${token}`,
    )
    client.write(`${head}early`)
    const answer = await client.waitFor('\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 101 /)
    expect(answer).not.toMatch(/set-cookie/i)
    await expect.poll(() => messages).toEqual(['early'])
    expect(device.attempts).toBe(2)
  })

  it('is one upgrade more, not a login each, if the device refuses its WebSockets', async () => {
    const device = await startFormDevice()
    device.device.server.on('upgrade', (_request, socket) =>
      socket.end('HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n'),
    )
    const sidecar = await startWithAuth(device, formAuth())
    const token = await sidecar.token()
    await sidecar.request({ token })
    await sidecar.clock.advance(10_000)
    for (let i = 0; i < 3; i += 1)
      expect((await refusedWebSocket(sidecar.url, { path: '/ws', token })).status).toBe(302)
    expect(device.attempts).toBe(2)
  })

  it('gets a response without the session cookie', async () => {
    const device = await startFormDevice()
    const sidecar = await startWithAuth(device, formAuth())
    const token = await sidecar.token()
    const response = await sidecar.request({ path: '/rotate', token, fields: ['Cookie', 'SID=mine'] })
    expect(response.values('set-cookie')).toEqual(['theme=dark'])
    expect((await sidecar.request({ path: '/x', token })).status).toBe(200)
    expect(device.attempts).toBe(2)
  })
})

describe('The password grant with a password that only the device knows', () => {
  it('is decided by a login at the device, and its password then signs requests in', async () => {
    const device = await startFormDevice()
    const sidecar = await startWithDevicePassword(device, loginForm)
    expectError(await grant(sidecar, 'wrong'), 400, 'invalid_grant')
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    expect(await sidecar.metric('postern_password_failures_total')).toBe(1)
  })

  it('is upstream_unavailable, never invalid_grant, while the device cannot be reached', async () => {
    const device = await startBasicDevice()
    const sidecar = await startWithDevicePassword(device, basic)
    await device.device.stop()
    const response = await grant(sidecar, 'wrong')
    expectError(response, 500, 'upstream_unavailable')
    expect(response.header('proxy-status')).toContain('connection_refused')
    expect(await sidecar.metric('postern_upstream_errors_total')).toBe(1)
  })

  it('C8 detects by one login that the password has changed', async () => {
    const device = await startBasicDevice()
    const config = { tokens: { store: 'file' } }
    const sidecar = await startWithDevicePassword(device, basic, { config })
    const token = await sidecar.token()
    const before = device.password
    device.password = 'another'
    const refusals = device.refusals
    expectError(await grant(sidecar, before), 400, 'invalid_grant')
    expect(device.refusals - refusals).toBe(1)
    expectError(await sidecar.request({ token }), 401, 'invalid_token')
  })

  it('C8 across a restart keeps tokens valid until another password is right', async () => {
    const device = await startBasicDevice()
    const config = { tokens: { store: 'file' }, state_dir: join(temporaryDirectory(), 'state') }
    const first = await startWithDevicePassword(device, basic, { config })
    const { access_token: token } = await first.grant()
    await first.stop()

    const second = await startWithDevicePassword(device, basic, { config })
    // The token is valid, but the sidecar does not know the password yet.
    const anonymous = await second.request({ token })
    expect([anonymous.status, anonymous.text]).toEqual([401, 'refused'])
    await second.grant()
    expect((await second.request({ token })).status).toBe(200)
    await second.stop()

    device.password = 'another'
    const third = await startWithDevicePassword(device, basic, { config })
    const { access_token: next } = await third.grant()
    expectError(await third.request({ token }), 401, 'invalid_token')
    expect((await third.request({ token: next })).status).toBe(200)
    await third.stop()

    const fourth = await startWithDevicePassword(device, basic, { config })
    await fourth.grant()
    expect((await fourth.request({ token: next })).status).toBe(200)
  })

  it('keeps the password out of log and metrics', async () => {
    const device: FormDevice = await startFormDevice()
    device.password = 'canary-right'
    const sidecar = await startWithDevicePassword(device, loginForm)
    await grant(sidecar, 'canary-wrong')
    await sidecar.request({ token: await sidecar.token() })
    const id = [...device.sessions].at(-1) ?? ''
    const output = sidecar.logLines().join('\n') + (await sidecar.metrics())
    expect(output).not.toContain('canary')
    expect(output).not.toContain(id)
  })
})
