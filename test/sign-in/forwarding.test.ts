import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { expectError } from '../support/errors.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'
import {
  type FormDevice,
  type LockedDevice,
  startBasicDevice,
  startDigestDevice,
  startFormDevice,
} from './devices.ts'

type Options = Parameters<typeof startSidecar>[0]

function inFront(
  { device, password }: LockedDevice,
  auth: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  options: Options = {},
  parser = 'auto',
): Promise<TestSidecar> {
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, password)
  const [kind = '', settings] = Object.entries(auth)[0] ?? []
  const upstream = { parser, auth: { [kind]: { user: 'admin', password: { file }, ...settings } } }
  return startSidecar({ device, ...options, config: { upstream, ...options.config } })
}

/** The device alone knows the password: the tests' own password file is left out. */
function askingTheDevice(device: LockedDevice, auth: object, options: Options = {}): Promise<TestSidecar> {
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

const basic = { basic: { user: 'admin' } }
const loginForm = { form: { user: 'admin', check_path: '/home' } }

describeTransports('A request to a device with a login', (transport) => {
  it.each([
    ['Basic', 'basic', startBasicDevice],
    ['Digest', 'digest', startDigestDevice],
    ['a form', 'form', startFormDevice],
  ] as const)('is signed in by %s', async (_how, kind, start) => {
    const device = await start()
    const sidecar = await inFront(device, { [kind]: {} }, { transport })
    const token = await sidecar.token()
    const answer = await sidecar.request({ path: '/api?x=1', token, fields: ['Cookie', 'a=1'] })
    expect([answer.status, answer.text]).toEqual([200, 'from the device'])
    const posted = await sidecar.request({ method: 'POST', path: '/api', body: 'hello', token })
    expect(posted.status).toBe(200)
    expect(device.device.requests.at(-1)?.body?.toString()).toBe('hello')
    expect(device.device.bytes.toString('latin1')).not.toContain(token)
    expect(device.device.requests.at(-2)?.values('cookie')).toHaveLength(1)
    expect(device.device.requests.at(-2)?.header('cookie')).toMatch(/(?:^|; )a=1$/)
    expect(device.attempts - device.refusals).toBeGreaterThan(0)
    expect(device.refusals).toBe(0)
  })

  it('is repeated, body and all, when its session has ended', async () => {
    const device = await startFormDevice()
    const sidecar = await inFront(device, { form: {} }, { transport })
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    sidecar.clock.advance(10_000)
    const answer = await sidecar.request({ method: 'POST', path: '/api', body: ['hel', 'lo'], token })
    expect([answer.status, answer.text]).toEqual([200, 'from the device'])
    expect(device.device.requests.at(-1)?.body?.toString()).toBe('hello')
    expect(device.attempts).toBe(2)
  })

  it('is not repeated when its body is long; the next one finds the sidecar signed in', async () => {
    const device = await startFormDevice()
    const sidecar = await inFront(device, { form: {} }, { transport })
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    sidecar.clock.advance(10_000)
    const body = Buffer.alloc(200_000)
    const refused = await sidecar.request({ method: 'POST', path: '/api', body, token })
    expect([refused.status, refused.header('location')]).toEqual([302, '/login?from=here'])
    expect(refused.header('set-cookie')).toBeUndefined()
    const answer = await sidecar.request({ method: 'POST', path: '/api', body, token })
    expect(answer.status).toBe(200)
    expect(device.attempts).toBe(2)
  })
})

describeTransports(
  'C8 The request that finds out that the password has changed at the device',
  (transport) => {
    it.each(['GET', 'POST'])(
      'is told that its token is worth nothing (%s), and so are all others',
      async (method) => {
        const device = await startBasicDevice()
        const sidecar = await askingTheDevice(device, basic, { transport })
        const token = await sidecar.token()
        expect((await sidecar.request({ token })).status).toBe(200)
        const before = device.password
        device.password = 'another'
        const body = method === 'POST' ? { body: 'hello' } : {}
        const answers = await Promise.all([1, 2, 3].map(() => sidecar.request({ token, method, ...body })))
        for (const answer of answers) {
          expectError(answer, 401, 'invalid_token')
          expect(answer.header('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/)
          expect(answer.header('x-ratelimit-limit')).toBeDefined()
        }
        expectError(await sidecar.request({ token }), 401, 'invalid_token')
        expectError(await grant(sidecar, before), 400, 'invalid_grant')
        expect((await grant(sidecar, 'another')).status).toBe(200)
      },
    )

    it('breaks off what is being answered, and refuses what waits at the device', async () => {
      const device = await startBasicDevice()
      const sidecar = await askingTheDevice(device, basic, { transport })
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
      expectError(await sidecar.request({ token }), 401, 'invalid_token')
      await expect(streams.response).rejects.toThrow()
      expectError(await late, 401, 'invalid_token')
      await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
    })
  },
)

it.each([
  ['Basic', { basic: { user: 'admin' } }, startBasicDevice],
  ['Digest', { digest: { user: 'admin' } }, startDigestDevice],
  ['a form', loginForm, startFormDevice],
] as const)(
  'C8 a password that changes at the device right after a sign-in is found out by the next request: %s',
  async (_how, auth, start) => {
    const device = await start()
    const sidecar = await askingTheDevice(device, auth)
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

it('a path that is closed to the account shows the answer of the device, and costs it one login in five seconds', async () => {
  const device = await startBasicDevice()
  const sidecar = await askingTheDevice(device, basic)
  const token = await sidecar.token()
  const before = device.attempts
  for (let i = 0; i < 5; i += 1) {
    const answer = await sidecar.request({ path: '/forbidden', token })
    expect([answer.status, answer.text]).toEqual([401, 'refused'])
    expect((await sidecar.request({ token })).status).toBe(200)
  }
  // Ten requests, one login, one request repeated after it.
  expect(device.attempts - before).toBe(12)
})

it.each([
  ['takes every nonce once', true],
  ['takes every nonce once, and never says stale', false],
])('requests that are under way together are all signed in at a device that %s', async (_what, saysStale) => {
  const device = await startDigestDevice()
  device.oneTime = true
  device.saysStale = saysStale
  const sidecar = await inFront(device, { digest: {} })
  const token = await sidecar.token()
  for (let round = 0; round < 3; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_x, n) => sidecar.request({ path: `/${n}`, token })),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  }
})

it('a request that cannot be repeated leaves the new nonce to the next one', async () => {
  const device = await startDigestDevice()
  const sidecar = await inFront(device, { digest: {} })
  const token = await sidecar.token()
  expect((await sidecar.request({ token })).status).toBe(200)
  device.nonce = 'another'
  const upload = { token, method: 'POST', body: Buffer.alloc(200_000) }
  expect((await sidecar.request(upload)).status).toBe(401)
  expect((await sidecar.request(upload)).status).toBe(200)
})

it('a WebSocket that is refused for a worn out nonce leaves the new one to the next', async () => {
  const device = await startDigestDevice()
  const sidecar = await inFront(device, { digest: {} })
  const token = await sidecar.token()
  expect((await sidecar.request({ token })).status).toBe(200)
  device.nonce = 'another'
  await refusedWebSocket(sidecar.url, { token })
  expect((await sidecar.request({ token, method: 'POST', body: Buffer.alloc(200_000) })).status).toBe(200)
})

it('C5 a device that calls every nonce stale says nothing of the password: no grant is invalid, no token void', async () => {
  const device = await startDigestDevice()
  const sidecar = await askingTheDevice(device, { digest: { user: 'admin' } })
  const token = await sidecar.token()
  device.alwaysStale = true
  expectError(await grant(sidecar, device.password), 500, 'upstream_unavailable')
  expect((await sidecar.request({ token })).status).toBe(401)
  device.alwaysStale = false
  expect((await sidecar.request({ token })).status).toBe(200)
})

describe('A request to a device with a login', () => {
  it('waits for one login, however many there are', async () => {
    const device = await startFormDevice()
    const sidecar = await inFront(device, { form: {} })
    const token = await sidecar.token()
    const burst = async (): Promise<void> => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => sidecar.request({ token })))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    }
    await burst()
    expect(device.attempts).toBe(1)
    device.sessions.clear()
    sidecar.clock.advance(10_000)
    await burst()
    expect(device.attempts).toBe(2)
  })

  it('gets the answer of the device where the credentials are refused, and the device one login', async () => {
    const device = await startBasicDevice()
    const sidecar = await inFront({ ...device, password: 'canary' }, basic)
    const token = await sidecar.token()
    for (let i = 0; i < 5; i += 1) {
      const answer = await sidecar.request({ token })
      expect([answer.status, answer.text]).toEqual([401, 'refused'])
      expect(answer.header('www-authenticate')).toBe('Basic realm="device"')
    }
    expect(device.refusals).toBe(1)
    const log = sidecar.logLines().join('\n')
    expect(log).toContain('refuses the password')
    expect(log).not.toContain('canary')
  })

  it('is told that the device is down', async () => {
    const device = await startBasicDevice()
    const sidecar = await inFront(device, basic)
    const token = await sidecar.token()
    await device.device.stop()
    const answer = await sidecar.request({ token })
    expectError(answer, 500, 'upstream_unavailable')
    expect(answer.header('proxy-status')).toContain('connection_refused')
  })

  it('gets a challenge too long to be held as it comes', async () => {
    const device = await startBasicDevice()
    const sidecar = await inFront(device, basic)
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

  it('is told so when the device gives no answer to the login', async () => {
    const device = await startFormDevice()
    const sidecar = await inFront(device, { form: {} })
    const token = await sidecar.token()
    device.device.handle((request, response) => {
      if (request.method === 'POST') response.destroy()
      else response.end('open to everybody')
    })
    expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
  })

  it('ends as a failure when its challenge breaks off', async () => {
    const device = await startBasicDevice()
    const sidecar = await inFront(device, basic)
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.device.handle((_request, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"', 'Content-Length': '10' })
      response.write('half')
      setImmediate(() => response.destroy())
    })
    expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
  })

  it.each([
    ['on a public path', { public_paths: ['/api'] }],
    ['that is only observed', { enforce: false }],
  ])('without a token, %s, is not signed in', async (_what, config) => {
    const device = await startBasicDevice()
    const sidecar = await inFront(device, basic, { config })
    const answer = await sidecar.request({ path: '/api' })
    expect([answer.status, answer.text]).toEqual([401, 'refused'])
    expect(device.attempts).toBe(0)
    const signed = await sidecar.request({ path: '/api', token: await sidecar.token() })
    expect(signed.status).toBe(200)
  })

  it('is repeated through the tolerant lane, too', async () => {
    const device = await startFormDevice()
    const sidecar = await inFront(device, { form: {} }, {}, 'tolerant')
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    sidecar.clock.advance(10_000)
    const answer = await sidecar.request({ method: 'POST', path: '/api', body: 'hello', token })
    expect([answer.status, answer.text]).toEqual([200, 'from the device'])
    expect(device.device.requests.at(-1)?.body?.toString()).toBe('hello')
    expect(device.attempts).toBe(2)
  })

  it('may be a WebSocket', async () => {
    const device = await startFormDevice()
    const { upgrades } = acceptWebSockets(device.device)
    const sidecar = await inFront(device, { form: {} })
    const token = await sidecar.token()
    const { socket } = await openWebSocket(sidecar.url, { path: '/ws', token })
    socket.close()
    const id = [...device.sessions][0]
    expect(upgrades[0]?.headers.cookie).toBe(`SID=${id}`)
  })

  it('may be a WebSocket that is refused, and then is not the next time', async () => {
    const device = await startFormDevice()
    const sidecar = await inFront(device, { form: {} })
    const token = await sidecar.token()
    await sidecar.request({ token })
    device.sessions.clear()
    sidecar.clock.advance(10_000)
    const refused = await refusedWebSocket(sidecar.url, { path: '/ws', token })
    expect(refused.status).toBe(302)
    expect(refused.fields.join()).not.toMatch(/set-cookie/i)
    await device.device.waitForRequests(4)
    const { upgrades } = acceptWebSockets(device.device)
    const { socket } = await openWebSocket(sidecar.url, { path: '/ws', token })
    socket.close()
    expect(upgrades[0]?.headers.cookie).toBe(`SID=${[...device.sessions][0]}`)
    expect(device.attempts).toBe(2)
  })

  it('never shows a client the session', async () => {
    const device = await startFormDevice()
    const sidecar = await inFront(device, { form: {} })
    const token = await sidecar.token()
    const answer = await sidecar.request({ path: '/rotate', token, fields: ['Cookie', 'SID=mine'] })
    expect(answer.values('set-cookie')).toEqual(['theme=dark'])
    expect((await sidecar.request({ path: '/x', token })).status).toBe(200)
    expect(device.attempts).toBe(1)
  })
})

describe('The password grant, where only the device knows the password', () => {
  it('is decided by signing in there, and its password then signs requests in', async () => {
    const device = await startFormDevice()
    const sidecar = await askingTheDevice(device, loginForm)
    expectError(await grant(sidecar, 'wrong'), 400, 'invalid_grant')
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    expect(await sidecar.metric('postern_password_failures_total')).toBe(1)
  })

  it('is upstream_unavailable, never invalid_grant, while the device cannot be reached', async () => {
    const device = await startBasicDevice()
    const sidecar = await askingTheDevice(device, basic)
    await device.device.stop()
    const answer = await grant(sidecar, 'wrong')
    expectError(answer, 500, 'upstream_unavailable')
    expect(answer.header('proxy-status')).toContain('connection_refused')
    expect(await sidecar.metric('postern_upstream_errors_total')).toBe(1)
  })

  it('C8 is one login at the device, when it finds out', async () => {
    const device = await startBasicDevice()
    const config = { tokens: { store: 'file' } }
    const sidecar = await askingTheDevice(device, basic, { config })
    const token = await sidecar.token()
    const before = device.password
    device.password = 'another'
    const refusals = device.refusals
    expectError(await grant(sidecar, before), 400, 'invalid_grant')
    expect(device.refusals - refusals).toBe(1)
    expectError(await sidecar.request({ token }), 401, 'invalid_token')
  })

  it('C8 across a restart keeps tokens until another password is right', async () => {
    const device = await startBasicDevice()
    const config = { tokens: { store: 'file' }, state_dir: join(temporaryDirectory(), 'state') }
    const first = await askingTheDevice(device, basic, { config })
    const { access_token: token } = await first.grant()
    await first.stop()

    const second = await askingTheDevice(device, basic, { config })
    // Good as a token, but nobody knows a password to sign in with.
    const anonymous = await second.request({ token })
    expect([anonymous.status, anonymous.text]).toEqual([401, 'refused'])
    await second.grant()
    expect((await second.request({ token })).status).toBe(200)
    await second.stop()

    device.password = 'another'
    const third = await askingTheDevice(device, basic, { config })
    const { access_token: next } = await third.grant()
    expectError(await third.request({ token }), 401, 'invalid_token')
    expect((await third.request({ token: next })).status).toBe(200)
    await third.stop()

    const fourth = await askingTheDevice(device, basic, { config })
    await fourth.grant()
    expect((await fourth.request({ token: next })).status).toBe(200)
  })

  it('keeps the password out of log and metrics', async () => {
    const device: FormDevice = await startFormDevice()
    device.password = 'canary-right'
    const sidecar = await askingTheDevice(device, loginForm)
    await grant(sidecar, 'canary-wrong')
    await sidecar.request({ token: await sidecar.token() })
    const id = [...device.sessions].at(-1) ?? ''
    const said = sidecar.logLines().join('\n') + (await sidecar.metrics())
    expect(said).not.toContain('canary')
    expect(said).not.toContain(id)
  })
})
