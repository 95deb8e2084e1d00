import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { unwrapped } from '../../src/sign-in/session-token.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { accountAuth, SESSION_KINDS, startAccountDevice } from './account-device.ts'
import {
  type RouterDevice,
  redfishAuth,
  type SessionDevice,
  startCsrfDevice,
  startRedfishDevice,
  startRouterDevice,
  startTransmission,
  startTransmissionModel,
  transmissionAuth,
} from './session-devices.ts'
import { signedIn } from './signed-in.ts'

/** Starts a sidecar that signs in to the device. `given`: `upstream.auth` without the password. */
function start(
  { device, password }: Pick<SessionDevice, 'device' | 'password'>,
  given: object,
  { transport = 'http1', upstream = {} }: { transport?: Transport; upstream?: object } = {},
): Promise<TestSidecar> {
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, password)
  const auth = { ...given, ...(password === '' ? {} : { password: { file } }) }
  return startSidecar({ device, transport, config: { upstream: { auth, ...upstream } } })
}

const tokenOf = ({ sessions }: SessionDevice): string =>
  [...sessions.values()][0] ?? expect.fail('no session')

describeProtocols('H170 A request to a device with sessions of its own', (transport) => {
  it('carries the token of the login in place of the client’s, and its response does not', async () => {
    const redfish = await startRedfishDevice()
    const sidecar = await start(redfish, redfishAuth, { transport })
    const token = await sidecar.token()
    const fields = ['X-Auth-Token', 'mine', 'x_auth_token', 'mine too', 'X-Mine', 'kept']
    const response = await sidecar.request({ path: '/redfish/v1', token, fields })
    expect([response.status, response.text]).toEqual([200, 'from the device'])
    expect([response.header('x-auth-token'), response.header('x-other')]).toEqual([undefined, 'kept'])
    const received = redfish.device.requests.at(-1)
    expect(received?.values('x-auth-token')).toEqual([tokenOf(redfish)])
    expect(received?.header('x_auth_token')).toBeUndefined()
    expect(received?.header('x-mine')).toBe('kept')
  })

  it('is repeated with its body when the session has expired', async () => {
    const redfish = await startRedfishDevice()
    const sidecar = await start(redfish, redfishAuth, { transport })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    redfish.sessions.clear()
    const response = await sidecar.request({ method: 'POST', path: '/api', body: ['hel', 'lo'], token })
    expect([response.status, response.text]).toEqual([200, 'from the device'])
    expect(redfish.device.requests.at(-1)?.body?.toString()).toBe('hello')
    redfish.sessions.clear()
    const upload = { token, method: 'POST', path: '/api', body: Buffer.alloc(200_000) }
    expect((await sidecar.request(upload)).status).toBe(401)
    expect((await sidecar.request(upload)).status).toBe(200)
  })
})

describe('H170 A request to a device with sessions of its own', () => {
  it('shares one login with all concurrent ones', async () => {
    const redfish = await startRedfishDevice()
    const sidecar = await start(redfish, redfishAuth)
    const token = await sidecar.token()
    const burst = async (): Promise<void> => {
      const responses = await Promise.all(Array.from({ length: 20 }, () => sidecar.request({ token })))
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    }
    await burst()
    expect(redfish.logins).toHaveLength(1)
    redfish.sessions.clear()
    await burst()
    expect(redfish.logins).toHaveLength(2)
  })

  it('carries the cookies of the login, and the value of one in a field', async () => {
    const csrf = await startCsrfDevice()
    const sidecar = await start(csrf, csrf.auth)
    const token = await sidecar.token()
    const fields = ['Cookie', 'a=1; SESSION=mine; xsrf-token=mine', 'X-XSRF-TOKEN', 'mine']
    for (const method of ['GET', 'POST', 'DELETE']) {
      const response = await sidecar.request({ method, path: '/api', token, fields })
      expect([response.status, response.text]).toEqual([200, 'from the device'])
      expect([response.header('x-xsrf-token'), response.values('set-cookie')]).toEqual([undefined, []])
    }
    const received = csrf.device.requests.at(-1)
    expect(received?.values('x-xsrf-token')).toEqual([csrf.ids.csrf])
    expect(received?.header('cookie')).toBe(`SESSION=${csrf.ids.session}; XSRF-TOKEN=${csrf.ids.csrf}; a=1`)
    csrf.ids.session = 'another'
    expect((await sidecar.request({ method: 'POST', path: '/api', token })).status).toBe(200)
  })

  it('gets its token from the very response that asks for it, also after a restart of the device', async () => {
    const model = await startTransmissionModel()
    const sidecar = await start(model, transmissionAuth)
    const token = await sidecar.token()
    const rpc = { method: 'POST', path: '/transmission/rpc', body: '{"method":"session-get"}', token }
    for (const id of ['first', 'second']) {
      model.sessions.set('', id)
      const response = await sidecar.request(rpc)
      expect([response.status, response.text]).toEqual([200, 'from the device'])
      expect(response.header('x-transmission-session-id')).toBeUndefined()
      expect(model.device.requests.at(-1)?.header('x-transmission-session-id')).toBe(id)
    }
    expect(sidecar.logLines().join('\n')).not.toMatch(/first|second/)
  })
})

describe('H170 A session id in JSON', () => {
  const account = { kind: 'session', user: 'admin' }
  const json = {
    login: { path: '/api/login', json: { name: '$user', pass: '$password', n: [1, '$username'] } },
    token: { json: '/a~1b/0/m~0n' },
    expired: [403],
  }

  it.each([
    [
      'as a bearer token',
      { header: 'Authorization: Bearer $token' },
      ({ headers }) => /^Bearer (\w+)$/.exec(headers.authorization ?? '')?.[1],
    ],
    ['in a field', { header: 'X-Session' }, ({ headers }) => String(headers['x-session'])],
    // The other cookie of the login goes along.
    [
      'in a cookie',
      { header: 'Cookie: id=$token' },
      ({ headers }) => /^SID=(\w+); id=\1; a=1$/.exec(headers.cookie ?? '')?.[1],
    ],
  ] as const satisfies [string, object, RouterDevice['shownIn']][])(
    'is sent back %s, and renewed when it expires',
    async (_where, send, shownIn) => {
      const router = await startRouterDevice()
      Object.assign(router, { shownIn, lasts: 3 })
      const sidecar = await start(router, { ...account, session: { ...json, send } })
      const token = await sidecar.token()
      for (let i = 0; i < 10; i += 1) {
        const response = await sidecar.request({
          token,
          fields: ['Cookie', 'a=1; id=mine', 'X-Session', 'mine'],
        })
        expect([response.status, response.text]).toEqual([200, 'from the device'])
      }
      expect(router.logins).toHaveLength(4)
      expect(JSON.parse(router.logins[0] ?? '')).toEqual({
        name: 'admin',
        pass: router.password,
        n: [1, '$username'],
      })
    },
  )

  it('may be a cookie, which clients do not see; the login may be a form', async () => {
    const router = await startRouterDevice()
    router.shownIn = ({ headers }) => /^SID=(\w+)$/.exec(headers.cookie ?? '')?.[1]
    const login = { path: '/api/login', form: { 'the name': '$user', pass: '$password' } }
    const session = { ...json, login, token: { cookie: 'SID' } }
    const sidecar = await start(router, { ...account, session })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect(response.text).toBe('from the device')
    expect(response.values('set-cookie')).toEqual(['theme=dark'])
    expect(router.logins).toEqual(['the+name=admin&pass=a%26b%3Dc+%22d%22+%24user'])
  })

  it('in a cookie is neither seen nor set by a client, whose other cookies pass', async () => {
    const router = await startRouterDevice()
    let shown: string | undefined
    router.shownIn = ({ headers }) => {
      shown = headers.cookie
      return /(?:^|; )id=(\w+)/.exec(headers.cookie ?? '')?.[1]
    }
    const session = { ...json, send: { header: 'Cookie: id=$token' } }
    const sidecar = await start(router, { ...account, session })
    const token = await sidecar.token()
    const id = () => router.sessions.get('1') ?? ''
    const response = await sidecar.request({ token, fields: ['Cookie', 'ID=mine; a=1; "id"=mine; b=2'] })
    expect(shown).toBe(`SID=${id()}; id=${id()}; a=1; b=2`)
    expect(response.values('set-cookie')).toEqual(['theme=dark'])
    router.device.handle((_request, answer) => answer.writeHead(200, { 'Set-Cookie': 'id=x; Path=/' }).end())
    expect((await sidecar.request({ token })).values('set-cookie')).toEqual([])
  })

  it('may be a number with more digits than a double has', async () => {
    const router = await startRouterDevice()
    router.reply = () => '{"a/b":[{"m~n":12345678901234567890}]}'
    const auth = { ...account, session: { ...json, send: { header: 'X-Session' } } }
    const { signIn } = await signedIn({ auth, password: router.password, url: router.device.url })
    await signIn.ready()
    const sent = signIn.credentialsFor({ method: 'GET', target: '/' })
    expect(sent?.fields.slice(0, 2)).toEqual(['X-Session', '12345678901234567890'])
  })

  it.each([
    ['set twice', ['SID=before', 'SID=after'], ['Cookie', 'SID=after']],
    ['deleted and set', ['SID=before; Max-Age=0; Path=/', 'SID=after'], ['Cookie', 'SID=after']],
    ['set, and deleted at another path', ['SID=after', 'SID=x; Max-Age=0; Path=/x'], ['Cookie', 'SID=after']],
    ['deleted', ['SID=deleted; Max-Age=0'], undefined],
  ])('in a cookie that is %s is the one that counts', async (_how, cookies, expected) => {
    const device = await startDevice((_request, response) => {
      response.writeHead(200, { 'Set-Cookie': cookies }).end()
    })
    const auth = {
      kind: 'session',
      session: { login: { path: '/login' }, token: { cookie: 'SID' } },
    }
    const { signIn } = await signedIn({ auth, password: 'x', url: device.url })
    await signIn.ready()
    expect(signIn.credentialsFor({ method: 'GET', target: '/' })?.fields).toEqual(expected)
  })

  it.each([
    ['no JSON', () => 'token'],
    ['no token', () => '{"a/b":[]}'],
    ['a token that is no text', () => '{"a/b":[{"m~n":{"x":1}}]}'],
    ['a token that no field can carry', () => '{"a/b":[{"m~n":"x\\r\\nX-Evil: 1"}]}'],
    [
      'a body that is too long',
      (token: string) => JSON.stringify({ 'a/b': [{ 'm~n': token }], x: 'x'.repeat(200_000) }),
    ],
  ])('is not accepted from a response with %s', async (_what, reply) => {
    const router = await startRouterDevice()
    router.reply = reply
    const auth = { ...account, session: { ...json, send: { header: 'X-Session' } } }
    const { signIn, events } = await signedIn({ auth, password: router.password, url: router.device.url })
    expect(await signIn.ready()).toBeUndefined()
    expect(signIn.credentialsFor({ method: 'GET', target: '/' })).toBeUndefined()
    expect(events).toEqual([
      'unusable the login at /api/login answered 200 without a token (json /a~1b/0/m~0n): a wrong password, or key',
    ])
  })
})

it('H170 the refusal of a request with the path of the login asks for a login, too, where a token is named', async () => {
  const model = await startTransmissionModel()
  const sidecar = await start(model, transmissionAuth)
  const token = await sidecar.token()
  for (const method of ['GET', 'POST']) {
    model.sessions.set('', method)
    expect((await sidecar.request({ method, path: '/transmission/rpc', token })).status).toBe(200)
  }
})

it('H170 a redirect to the login page renews a session with a token, and is a wrong password behind the login', async () => {
  let valid = 'first'
  const device = await startDevice((request, response) => {
    if (request.method === 'POST')
      response.writeHead(200, { 'X-Auth-Token': valid, 'Set-Cookie': 'lang=en' }).end()
    else if (request.headers['x-auth-token'] === valid) response.end(request.headers.cookie)
    else response.writeHead(302, { Location: '/start' }).end()
  })
  const place = { header: 'X-Auth-Token' }
  const session = { login: { path: '/login', page: '/start' }, token: place, send: place }
  const sidecar = await start({ device, password: '' }, { kind: 'session', session })
  const token = await sidecar.token()
  for (const id of ['first', 'second']) {
    valid = id
    const response = await sidecar.request({ token, fields: ['Cookie', 'lang=mine; a=1'] })
    expect([response.status, response.text]).toEqual([200, 'lang=en; a=1'])
  }
  device.handle((_request, response) =>
    response.writeHead(302, { Location: '/start', 'X-Auth-Token': 'none' }).end(),
  )
  const { signIn, events } = await signedIn({
    auth: { kind: 'session', session },
    ...{ password: 'x', url: device.url },
  })
  await signIn.ready()
  expect(events).toEqual(['refused 30000'])
})

it('H170 transmission-daemon gets its own token', async () => {
  const daemon = await startTransmission()
  const open = await startSidecar({ device: daemon })
  const body = '{"method":"session-get","arguments":{"fields":["version"]}}'
  const rpc = { method: 'POST', path: '/transmission/rpc', body }
  expect((await open.request({ ...rpc, token: await open.token() })).status).toBe(409)
  const sidecar = await startSidecar({
    device: daemon,
    config: { upstream: { auth: transmissionAuth } },
  })
  const token = await sidecar.token()
  for (let i = 0; i < 3; i += 1) {
    const response = await sidecar.request({ ...rpc, token, fields: ['X-Transmission-Session-Id', 'mine'] })
    expect([response.status, response.json().result]).toEqual([200, 'success'])
    expect(response.header('x-transmission-session-id')).toBeUndefined()
  }
})

it('H170 a WebSocket carries the token', async () => {
  const redfish = await startRedfishDevice()
  const { upgrades } = acceptWebSockets(redfish.device)
  const sidecar = await start(redfish, redfishAuth)
  const headers = { 'X-Auth-Token': 'mine' }
  const { socket } = await openWebSocket(sidecar.url, { path: '/ws', token: await sidecar.token(), headers })
  socket.close()
  expect(upgrades[0]?.headers['x-auth-token']).toBe(tokenOf(redfish))
})

it.each([
  ['counts if its token is in the head', { header: 'X-Auth-Token' }, 200],
  ['fails if its token is in the body', { json: '/token' }, 500],
])('H170 a login with a body that never ends %s', async (_how, token, status) => {
  const dripping = Promise.withResolvers<() => void>()
  const device = await startDevice((request, response) => {
    if (request.url !== '/login') return void response.end('from the device')
    response.writeHead(200, { 'X-Auth-Token': 'one', 'Content-Length': 10_000 })
    dripping.resolve(() => void (response.destroyed || response.write(' ')))
  })
  const session = { login: { path: '/login' }, token, send: { header: 'X-Auth-Token' } }
  const sidecar = await start({ device, password: '' }, { kind: 'session', session })
  const response = sidecar.request({ token: await sidecar.token() })
  const drip = await dripping.promise
  let answered: number | undefined
  void response.then((whole) => {
    answered = whole.status
  })
  while (answered === undefined) {
    drip()
    await sidecar.clock.advance(50)
  }
  expect(answered).toBe(status)
})

it('H170 a wrong password costs one login, and no line holds password, token or body', async () => {
  const redfish = await startRedfishDevice()
  const wrong = await start({ ...redfish, password: 'canary' }, redfishAuth)
  const token = await wrong.token()
  for (let i = 0; i < 5; i += 1) expect((await wrong.request({ token })).status).toBe(401)
  expect(redfish.logins).toHaveLength(1)
  expect(wrong.logLines().join('\n')).toContain('the device refuses the password')
  const right = await start(redfish, redfishAuth)
  const granted = await right.token()
  expect((await right.request({ token: granted })).status).toBe(200)
  const secrets = [tokenOf(redfish), redfish.password, 'canary', 'UserName']
  const shown = [wrong.logLines(), right.logLines(), await right.metrics()].flat().join('\n')
  for (const secret of secrets) expect(shown).not.toContain(secret)
  expect(shown).toContain('signed in to the device')
})

describe('H171 A session', () => {
  it('is ended at stop: five sidecars in turn at a controller with four sessions', async () => {
    const redfish = await startRedfishDevice()
    for (let i = 1; i <= 5; i += 1) {
      const sidecar = await start(redfish, redfishAuth)
      expect((await sidecar.request({ token: await sidecar.token() })).status).toBe(200)
      expect(redfish.sessions.size).toBe(1)
      await sidecar.stop(10_000)
      expect([redfish.sessions.size, redfish.logouts.length]).toEqual([0, i])
    }
  })

  it('is ended before the next login', async () => {
    const redfish = await startRedfishDevice()
    const sidecar = await start(redfish, redfishAuth)
    const token = await sidecar.token()
    for (let i = 0; i < 6; i += 1) {
      expect((await sidecar.request({ path: '/forbidden', token })).status).toBe(401)
      expect((await sidecar.request({ token })).status).toBe(200)
      await sidecar.clock.advance(10_000)
    }
    expect(redfish.logins.length).toBeGreaterThan(4)
    expect([redfish.sessions.size, redfish.logouts.length]).toEqual([1, redfish.logins.length - 1])
  })

  it('that a full controller does not open is no wrong password', async () => {
    const redfish = await startRedfishDevice()
    for (const id of ['a', 'b', 'c', 'd']) redfish.sessions.set(id, id)
    const sidecar = await start(redfish, redfishAuth)
    expect((await sidecar.request({ token: await sidecar.token() })).status).toBe(401)
    expect(sidecar.logLines().join('\n')).toContain('Sessions answered 503')
  })

  it('is ended although a response goes on, within the grace of the stop', async () => {
    const redfish = await startRedfishDevice()
    const sidecar = await start(redfish, redfishAuth)
    const token = await sidecar.token()
    await sidecar.request({ token })
    const { sessions } = redfish
    redfish.device.handle((request, response) => {
      if (request.method === 'DELETE') {
        sessions.clear()
        response.writeHead(204).end()
      } else response.write('some')
    })
    const stream = (await sidecar.connect()).start({ fields: ['Authorization', `Bearer ${token}`] })
    await stream.waitFor('some')
    stream.response.catch(() => {})
    await passUntil(sidecar.clock, sidecar.stop(500))
    expect(sessions.size).toBe(0)
  })

  it('that the device does not end delays no stop beyond its grace', async () => {
    const redfish = await startRedfishDevice()
    const asked = Promise.withResolvers<void>()
    redfish.onLogout = () => {
      asked.resolve()
      return new Promise(() => {})
    }
    const sidecar = await start(redfish, redfishAuth, { upstream: { response_timeout: '1d' } })
    await sidecar.request({ token: await sidecar.token() })
    const stopped = sidecar.stop(200)
    await asked.promise
    // Beyond the grace, and before a logout is given up.
    await sidecar.clock.advance(4_000)
    await stopped
  })

  it('is not opened while the sidecar stops', async () => {
    const redfish = await startRedfishDevice()
    const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    redfish.onLogout = () => {
      asked.resolve()
      return gate.promise
    }
    const { device, password } = redfish
    const { signIn, request } = await signedIn({ auth: redfishAuth, password, url: device.url })
    await signIn.ready()
    const response = await request({ target: '/forbidden' })
    const renewal = signIn.renew(response, response.shown, true)
    await asked.promise
    const signedOut = signIn.signOut()
    gate.resolve()
    await signedOut
    expect((await renewal).kind).toBe('refused')
    expect([redfish.sessions.size, redfish.logins.length]).toEqual([0, 1])
  })

  it.each([
    ['refuses it', 'wrong', []],
    ['does not say', 'failed', ['unusable /redfish/v1 answered 500 to the credentials']],
  ])('is ended when check_path %s', async (_what, kind, events) => {
    const redfish = await startRedfishDevice()
    const { device, password } = redfish
    const check_path = kind === 'wrong' ? '/forbidden' : '/redfish/v1'
    const signed = await signedIn({ auth: { ...redfishAuth, check_path }, password, url: device.url })
    redfish.onRead = () => 500
    expect((await signed.signIn.check(password)).kind).toBe(kind)
    expect(signed.events).toEqual(events)
    expect([redfish.logins.length, redfish.sessions.size]).toEqual([1, 0])
  })

  it('of a grant that another one has replaced is ended at the next login, or at stop', async () => {
    const account = await startAccountDevice()
    const ended: string[] = []
    account.onLogout = (id) => ended.push(id)
    const auth = {
      ...accountAuth('form', { logout: { method: 'GET', path: '/logout' } }),
      check_path: '/whoami',
    }
    const sidecar = await startSidecar({
      device: account.device,
      password: account.password,
      config: { upstream: { auth }, password: { file: undefined, device: true } },
    })
    for (let i = 0; i < 4; i += 1) await sidecar.grant()
    const [first, second] = account.opened
    expect([ended, account.opened.length]).toEqual([[first, second], 4])
    await sidecar.stop(10_000)
    expect(account.sessions.size).toBe(0)
  })

  it('is ended by the path that the configuration has', async () => {
    const router = await startRouterDevice()
    router.shownIn = ({ headers }) => headers.cookie?.slice(4)
    const sidecar = await start(router, {
      kind: 'session',
      session: {
        login: { path: '/api/login', form: { pass: '$password' } },
        token: { cookie: 'SID' },
        expired: [403],
        logout: { method: 'POST', path: '/api/logout' },
      },
    })
    await sidecar.request({ token: await sidecar.token() })
    await sidecar.stop(10_000)
    const last = router.device.requests.at(-1)
    expect([last?.method, last?.target]).toEqual(['POST', '/api/logout'])
    expect(last?.header('cookie')).toMatch(/^SID=\w+$/)
  })

  it.each([
    ['its path', (path: string) => path, 'preserve'],
    ['its address', (path: string, { url }: Device) => url + path, 'preserve'],
    ['the host that it was asked for', (path: string) => `http://bmc.test${path}`, 'bmc.test'],
    ['a further name of it', (path: string) => `http://BMC.local.:80${path}`, 'preserve'],
  ])('is ended where the device names %s', async (_what, location, host) => {
    const redfish = await startRedfishDevice()
    redfish.location = (path) => location(path, redfish.device)
    const sidecar = await start(redfish, redfishAuth, { upstream: { host, names: ['bmc.local'] } })
    await sidecar.request({ token: await sidecar.token() })
    await sidecar.stop(10_000)
    expect(redfish.logouts).toEqual(['/redfish/v1/SessionService/Sessions/1'])
  })

  it('is not ended at another origin, which the log names once', async () => {
    const redfish = await startRedfishDevice()
    const other = await startDevice()
    const { host } = new URL(other.url)
    redfish.location = (path) => `//${host}${path}/canary`
    const next = [`//${'d'.repeat(60)}.test`, `//${`${'e'.repeat(60)}.`.repeat(100)}test`]
    const sidecar = await start(redfish, redfishAuth)
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) {
      expect((await sidecar.request({ token })).status).toBe(200)
      redfish.sessions.clear()
      const [another] = next.splice(0, 1)
      if (another !== undefined) redfish.location = (path) => another + path
    }
    await sidecar.stop(10_000)
    expect([other.connections, redfish.logouts]).toEqual([0, []])
    const lines = sidecar.logLines().filter((line) => line.includes('cannot sign out'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(`Location of the login names ${other.url}, not the device`)
    expect(lines[0]).not.toContain('canary')
  })
})

describe('H238 Another session that a device sets', () => {
  it.each(SESSION_KINDS)('in the response to a request of Postern itself is taken (%s)', async (kind) => {
    const account = await startAccountDevice(kind === 'header' ? 'header' : 'cookie')
    account.rotates = true
    const auth = { ...accountAuth(kind), check_path: '/whoami' }
    const { signIn, request, clock } = await signedIn({
      ...{ auth, password: account.password, url: account.device.url },
    })
    const whoami = async () => {
      const { status, shown } = await request({ target: '/open' })
      expect([status, shown?.fields[1]]).toEqual([
        200,
        expect.stringContaining(String(account.opened.at(-1))),
      ])
    }
    await signIn.ready()
    await whoami()
    expect([account.opened.length, account.logins]).toEqual([2, 1])
    // Before a request that may change something, the session is looked at.
    await clock.advance(60_000)
    await signIn.ready(true)
    await whoami()
    expect([account.opened.length, account.logins]).toEqual([3, 1])
  })

  it('in the cookie of its token is taken from a response to Postern itself alone', async () => {
    const valid = { id: 'login1' }
    let logins = 0
    const device = await startDevice((request, response) => {
      const shown = /(?:^|; )id=(\w+)$/.exec(request.headers.cookie ?? '')?.[1]
      if (request.url === '/login') {
        logins += 1
        valid.id = `login${logins}`
        response.end(JSON.stringify(valid))
      } else if (shown !== valid.id) response.writeHead(401).end()
      else {
        if (request.url === '/check') valid.id = `checked${logins}`
        const gone = request.url === '/logout' ? '; Max-Age=0' : ''
        const set = request.url === '/check' ? valid.id : 'other'
        response.writeHead(200, { 'Set-Cookie': `id=${set}; Path=/${gone}` }).end()
      }
    })
    const session = {
      login: { path: '/login' },
      token: { json: '/id' },
      send: { header: 'Cookie: id=$token' },
    }
    const auth = { kind: 'session', check_path: '/check', session }
    const { signIn, request } = await signedIn({ auth, password: 'x', url: device.url })
    for (const [target, login] of [
      ['/rotate', 1],
      ['/logout', 2],
      ['/', 3],
    ] as const) {
      await signIn.ready()
      const response = await request({ target })
      expect([response.status, response.shown?.fields]).toEqual([200, ['Cookie', `id=checked${login}`]])
      signIn.accepted({ method: 'GET', target }, response, response.shown)
    }
  })
})

it('H170 a cookie beside a token causes no login when it changes, and is sent until the device deletes it', async () => {
  const device = await startDevice((request, response) => {
    const { url = '', method } = request
    if (method === 'POST') response.writeHead(200, { 'X-Auth-Token': 'one', 'Set-Cookie': 'lang=en' }).end()
    else
      response
        .writeHead(200, { 'Set-Cookie': `lang=de; Path=/${url === '/delete' ? '; Max-Age=0' : ''}` })
        .end()
  })
  const place = { header: 'X-Auth-Token' }
  const auth = { kind: 'session', session: { login: { path: '/login' }, token: place, send: place } }
  const { signIn, request, events } = await signedIn({ auth, password: 'x', url: device.url })
  const sent: unknown[] = []
  for (const target of ['/change', '/delete', '/']) {
    await signIn.ready()
    const response = await request({ target })
    sent.push(response.shown?.fields)
    signIn.accepted({ method: 'GET', target }, response, response.shown)
    expect(signIn.conceal(response.fields, response.shown).join()).not.toContain('lang')
  }
  const token = ['X-Auth-Token', 'one']
  expect(sent).toEqual([[...token, 'Cookie', 'lang=en'], [...token, 'Cookie', 'lang=en'], token])
  expect(events).toEqual(['signed in'])
})

it('H170 a client that signs in at the device, and is led back, asks for no login where a token is named', async () => {
  const { device, password } = await startRedfishDevice()
  const { path } = redfishAuth.session.login
  const { signIn } = await signedIn({ auth: redfishAuth, password, url: device.url })
  const back = { status: 302, fields: ['Location', path] }
  expect(signIn.isChallenge({ method: 'GET', target: '/' }, back)).toBe(true)
  expect(signIn.isChallenge({ method: 'POST', target: path }, back)).toBe(false)
})

describe('H170 A session by a named cookie', () => {
  const XSRF = {
    login: { path: '/api/auth/login', form: { name: 'admin', pw: '$password' } },
    token: { cookie: 'XSRF' },
    send: { header: 'X-XSRF' },
  }
  const startXsrfDevice = (cookies: readonly string[]) =>
    startDevice((request, response) => {
      response.setHeader('Set-Cookie', request.method === 'POST' ? [...cookies] : ['lang=de'])
      response.writeHead(200).end()
    })

  it('is asked for by no wrong login of a client', async () => {
    const device = await startXsrfDevice(['XSRF=one'])
    const { signIn } = await signedIn({
      auth: { kind: 'session', session: XSRF },
      password: 'x',
      url: device.url,
    })
    await signIn.ready()
    const refusal = { status: 401, fields: [] }
    expect(signIn.isChallenge({ method: 'POST', target: '/api/auth/login' }, refusal)).toBe(false)
    expect(signIn.isChallenge({ method: 'GET', target: '/api/auth/login' }, refusal)).toBe(true)
    expect(signIn.isChallenge({ method: 'POST', target: '/' }, refusal)).toBe(true)
  })

  it('goes into its field on every path, and another cookie that changes causes no login', async () => {
    const device = await startXsrfDevice(['XSRF=one', 'lang=en; Path=/'])
    const { signIn, request, events } = await signedIn({
      ...{ auth: { kind: 'session', session: XSRF }, password: 'x', url: device.url },
    })
    for (let i = 0; i < 6; i += 1) {
      await signIn.ready()
      const response = await request({ target: '/data' })
      expect(response.shown?.fields).toEqual(['X-XSRF', 'one', 'Cookie', 'lang=en'])
      signIn.accepted({ method: 'GET', target: '/data' }, response, response.shown)
    }
    expect(events).toEqual(['signed in'])
  })

  it('is removed from requests of clients before the first login, by the names of both cookies', async () => {
    const device = await startXsrfDevice([])
    const session = { ...XSRF, send: { header: 'Cookie: SID=$token' } }
    const { signIn } = await signedIn({
      ...{ auth: { kind: 'session', session }, password: 'x', url: device.url },
    })
    expect([...signIn.names(undefined).cookies]).toEqual(['xsrf', 'sid'])
  })

  it('that is sent as another cookie ends when it expires', async () => {
    const device = await startXsrfDevice(['XSRF=one; Path=/; Max-Age=60'])
    const session = { ...XSRF, send: { header: 'Cookie: SID=$token' } }
    const { signIn, clock, events } = await signedIn({
      ...{ auth: { kind: 'session', session }, password: 'x', url: device.url },
    })
    await signIn.ready()
    await clock.advance(59_999)
    await signIn.ready()
    expect(events).toEqual(['signed in'])
    await clock.advance(1)
    await signIn.ready()
    expect(events).toEqual(['signed in', 'signed in'])
  })
})

it('H170 a session that check_path has shown to work is no wrong password when a first response refuses it', async () => {
  const account = await startAccountDevice()
  const auth = { ...accountAuth('form'), check_path: '/whoami' }
  const { signIn, request, events } = await signedIn({
    ...{ auth, password: account.password, url: account.device.url },
  })
  await signIn.ready()
  const response = await request({ target: '/closed' })
  expect((await signIn.renew(response, response.shown, true)).kind).toBe('signed-in')
  expect(events).toEqual(['signed in', 'signed in'])
})

it.each([
  ['a one z', 'one'],
  ['one', 'one'],
  ['a one', 'a one'],
  ['one z', 'one z'],
  ['a z', 'a z'],
])('H170 a response field with %j shows the token %j', (value, token) => {
  expect(unwrapped(value, { name: 'X', before: 'a ', after: ' z' })).toBe(token)
})
