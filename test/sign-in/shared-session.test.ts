import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { logInAs, makeNames, type Names } from '../support/passwords.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols, rowsOver, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import {
  type AccountDevice,
  accountAuth,
  SESSION_KINDS as KINDS,
  type SessionKind as Kind,
  startAccountDevice,
  VIEWER,
} from './account-device.ts'

interface Started {
  readonly account: AccountDevice
  readonly sidecar: TestSidecar
  /** The tokens of a name without `allow`, and of one with `allow: read`. */
  readonly operator: string
  readonly reader: string
}

/**
 * Starts a sidecar with an operator, a reader and a signed-in public page, in front of a device of which it is the viewer. Its clock stands
 * still between the steps of a test.
 */
async function start(
  kind: Kind,
  {
    transport = 'http1',
    settings = {},
    checkPath = '/',
    account,
    password,
  }: {
    readonly transport?: Transport
    readonly settings?: object
    readonly checkPath?: string
    readonly account?: AccountDevice
    readonly password?: string
  } = {},
): Promise<Started> {
  const device = account ?? (await startAccountDevice(kind === 'header' ? 'header' : 'cookie'))
  if (kind === 'cookie') device.asks = '401'
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, password ?? device.password)
  const names: Names = makeNames({ operator: undefined, reader: 'read' })
  const config = {
    ...names.config,
    upstream: {
      auth: {
        ...accountAuth(kind, settings),
        ...(checkPath === '/' ? {} : { check_path: checkPath }),
        password: { file },
      },
    },
    public_paths: [{ path: '/whoami', signed_in: true }, '/open'],
  }
  const sidecar = await startSidecar({ ...device, transport, config })
  const tokenOf = async (who: string) => (await logInAs(sidecar, who)).access_token
  return { account: device, sidecar, operator: await tokenOf('operator'), reader: await tokenOf('reader') }
}

/** The accounts under which the device answers the operator, the reader, and a visitor without a token. */
async function accountsOf({ sidecar, operator, reader }: Started): Promise<string[]> {
  const answers: string[] = []
  for (const token of [operator, reader, undefined]) {
    const response = await sidecar.request({ path: '/whoami', ...(token === undefined ? {} : { token }) })
    answers.push(response.text)
  }
  return answers
}

const VIEWERS = [VIEWER, VIEWER, VIEWER]
const AS_ROOT = { method: 'POST', body: '{"user":"root"}', fields: ['Content-Type', 'application/json'] }

describeProtocols('H238 The session of Postern at the device', (transport) => {
  it.each(rowsOver(transport, KINDS))(
    'is that of its account after a client has signed in as another one (%s)',
    async (kind) => {
      const started = await start(kind, { transport })
      const { sidecar, operator } = started
      expect(await accountsOf(started)).toEqual(VIEWERS)
      for (const path of ['/login', '/login/', '/Login', '/%6cogin', '/login?next=/', '/api/login']) {
        const response = await sidecar.request({ ...AS_ROOT, path, token: operator })
        expect(response.status).toBe(200)
        expect(response.header('x-auth-token')).toBeUndefined()
        expect(response.values('set-cookie').join()).not.toContain('SID')
        expect(await accountsOf(started), path).toEqual(VIEWERS)
        await sidecar.clock.advance(5_000)
      }
    },
  )

  it.each(rowsOver(transport, KINDS))(
    'is opened anew when a response to a client changes or ends it (%s)',
    async (kind) => {
      const started = await start(kind, { transport })
      const { account, sidecar, reader } = started
      for (const path of ['/rotate', '/logout']) {
        expect((await sidecar.request({ path, token: reader })).status).toBe(200)
        expect(await accountsOf(started)).toEqual(VIEWERS)
      }
      expect(account.logins).toBe(3)
    },
  )
})

it.each(KINDS)(
  'H238 the session is kept, with its new expiry, when a response to a client prolongs it (%s)',
  async (kind) => {
    const started = await start(kind)
    const { account, sidecar, reader } = started
    account.attributes = '; Path=/; Max-Age=60'
    await sidecar.request({ path: '/extend', token: reader })
    await sidecar.clock.advance(300_000)
    expect(await accountsOf(started)).toEqual(VIEWERS)
    expect(account.logins).toBe(1)
    if (kind === 'header') return
    await sidecar.clock.advance(301_000)
    await accountsOf(started)
    expect(account.logins).toBe(2)
  },
)

describe('H238 A WebSocket', () => {
  it.each(KINDS)('does not change the session (%s)', async (kind) => {
    const started = await start(kind)
    const { account, sidecar, operator } = started
    expect(await accountsOf(started)).toEqual(VIEWERS)
    const { server } = acceptWebSockets(account.device)
    account.sessions.set('guest', 'root')
    server.on('headers', (head) => head.push('Set-Cookie: SID=guest; Path=/', 'X-Auth-Token: guest'))
    const { socket, response } = await openWebSocket(sidecar.url, { path: '/ws', token: operator })
    socket.close()
    if (kind === 'header') expect(response.headers['x-auth-token']).toBeUndefined()
    else expect(response.headers['set-cookie']).toBeUndefined()
    expect(await accountsOf(started)).toEqual(VIEWERS)
  })
})

describeProtocols("H239 A client's own cookies with a name of the session", (transport) => {
  // How else they may be spelled: see request-credentials.
  it('never reach the device', async () => {
    const fields = ['Cookie', 'a=1', 'Cookie', 'SID=guest', 'cookie', 'b=2; "sid"=guest']
    const account = await startAccountDevice()
    account.sessions.set('guest', 'root')
    // The session does not go to the paths below, where the device would take another one.
    account.attributes = '; Path=/whoami'
    const started = await start('form', { transport, account })
    const { sidecar, operator, reader } = started
    const requests = [
      { path: '/whoami', token: operator },
      { path: '/other', token: operator },
      { path: '/rotate', token: reader },
      { path: '/login', token: operator },
      { path: '/%4cogin', token: reader },
    ]
    for (const { path, token } of requests) {
      const response = await sidecar.request({ path, token, fields })
      expect(response.text).not.toBe('root')
      const received = account.device.requests.at(-1)
      expect([received?.target, received?.values('cookie').join(';')]).toEqual([
        path,
        expect.not.stringContaining('guest'),
      ])
    }
    await sidecar.request({ path: '/whoami', fields })
    expect(account.device.requests.at(-1)?.header('cookie')).not.toContain('guest')
    expect(await accountsOf(started)).toEqual(VIEWERS)
    expect(account.logins).toBe(1)
  })

  it.each(rowsOver(transport, KINDS))(
    'never reach the device while Postern is not signed in (%s)',
    async (kind) => {
      const { account, sidecar, operator } = await start(kind, {
        transport,
        settings: kind === 'form' ? { token: { cookie: 'SID' } } : {},
        password: 'wrong',
      })
      account.sessions.set('guest', 'root')
      const fields = ['Cookie', 'SID=guest; a=1', 'X-Auth-Token', 'guest', 'x_auth_token', 'guest']
      const response = await sidecar.request({ path: '/whoami', token: operator, fields })
      expect(response.text).toBe('from the device')
      const received = account.device.requests.at(-1)
      if (kind === 'header') expect(received?.fields.join()).not.toMatch(/auth.token/i)
      else expect(received?.header('cookie')).toBe('a=1')
      expect(response.values('set-cookie')).toEqual([])
    },
  )
})

it('H239 a WebSocket carries no cookie of the client with a name of the session', async () => {
  const account = await startAccountDevice()
  account.attributes = '; Path=/whoami'
  const { sidecar, operator } = await start('form', { account })
  const { upgrades } = acceptWebSockets(account.device)
  const headers = { Cookie: 'a=1; sid=guest' }
  const { socket } = await openWebSocket(sidecar.url, { path: '/ws', token: operator, headers })
  socket.close()
  expect(upgrades[0]?.headers.cookie).toBe('a=1')
})

describeProtocols('H240 A redirect to the login page', (transport) => {
  const OVERRIDDEN = ['X-HTTP-Method-Override', 'DELETE']

  it('causes one login; a GET or HEAD is repeated once, and nothing that the device may have acted on', async () => {
    const started = await start('form', { transport })
    const { account, sidecar, operator } = started
    expect(await accountsOf(started)).toEqual(VIEWERS)
    for (const [method, acts, fields] of [
      ['POST', 1, []],
      ['GET', 2, []],
      ['PUT', 1, []],
      ['PATCH', 1, []],
      ['HEAD', 2, []],
      ['DELETE', 1, []],
      ['OPTIONS', 1, []],
      ['GET', 1, OVERRIDDEN],
    ] as const) {
      const [acted, { logins }] = [account.acts, account]
      const response = await sidecar.request({ method, path: '/pulse', token: operator, fields })
      expect([response.status, response.header('location')]).toEqual([303, '/login'])
      expect([account.acts - acted, account.logins - logins], method).toEqual([acts, acts - 1])
      expect(await accountsOf(started)).toEqual(VIEWERS)
      expect(account.logins - logins).toBe(1)
      await sidecar.clock.advance(5_000)
    }
  })
})

describe('H240 A redirect to the login page', () => {
  it('that comes again and again causes one login in five seconds, and others are signed in', async () => {
    const started = await start('form')
    const { account, sidecar, operator } = started
    for (let i = 0; i < 5; i += 1) {
      expect(await accountsOf(started)).toEqual(VIEWERS)
      await sidecar.request({ method: 'POST', path: '/pulse', token: operator })
    }
    expect([account.acts, account.logins]).toEqual([5, 2])
    await sidecar.clock.advance(5_000)
    await sidecar.request({ method: 'POST', path: '/pulse', token: operator })
    expect(await accountsOf(started)).toEqual(VIEWERS)
    expect(account.logins).toBe(3)
  })

  it('is a refusal like any other where the device sends 401: a POST is repeated', async () => {
    const started = await start('form')
    const { account, sidecar, operator } = started
    account.asks = '401'
    expect(await accountsOf(started)).toEqual(VIEWERS)
    account.sessions.clear()
    const response = await sidecar.request({ method: 'POST', path: '/whoami', token: operator, body: 'x' })
    expect([response.status, response.text]).toEqual([200, VIEWER])
  })
})

describeProtocols('H241 A session that was not seen alive for long', (transport) => {
  it.each(
    rowsOver(transport, [
      ['by check_path', '/check', {}],
      ['by the root', '/', {}],
      ['by the root, with the name of its cookie', '/', { token: { cookie: 'SID' } }],
    ]),
  )('is looked at before a POST, %s', async (_how, target, settings) => {
    const started = await start('form', { transport, checkPath: target, settings })
    const { account, sidecar, operator } = started
    const post = { method: 'POST', path: '/whoami', token: operator, body: 'x' }
    const looks = () => account.device.requests.filter((request) => request.target === target).length
    expect(await accountsOf(started)).toEqual(VIEWERS)
    const before = looks()
    account.sessions.clear()
    await sidecar.clock.advance(60_000)
    const answers = await Promise.all(Array.from({ length: 5 }, () => sidecar.request(post)))
    expect(answers.map(({ status, text }) => [status, text])).toEqual(Array(5).fill([200, VIEWER]))
    expect([
      account.logins,
      account.device.requests.filter(({ method }) => method === 'POST').length,
    ]).toEqual([2, 7])
    expect(looks() - before).toBe(target === '/' ? 2 : 4)
  })
})

describe('H241 A session that was not seen alive for long', () => {
  it('is not looked at where the device says by a status that a token has expired, without check_path', async () => {
    const started = await start('header')
    const { account, sidecar, operator } = started
    expect(await accountsOf(started)).toEqual(VIEWERS)
    account.sessions.clear()
    await sidecar.clock.advance(60_000)
    const post = { method: 'POST', path: '/whoami', token: operator, body: 'x' }
    expect((await sidecar.request(post)).text).toBe(VIEWER)
    expect(account.device.requests.some(({ target }) => target === '/')).toBe(false)
  })

  it('is not looked at before a GET, nor again after a pause that a session has survived, but after a longer one', async () => {
    const started = await start('form')
    const { account, sidecar, operator } = started
    const post = { method: 'POST', path: '/whoami', token: operator, body: 'x' }
    const looks = () => account.device.requests.filter(({ target }) => target === '/').length
    expect(await accountsOf(started)).toEqual(VIEWERS)
    await sidecar.clock.advance(60_000)
    expect(await accountsOf(started)).toEqual(VIEWERS)
    await sidecar.clock.advance(59_000)
    expect((await sidecar.request(post)).text).toBe(VIEWER)
    expect(looks()).toBe(0)
    await sidecar.clock.advance(90_000)
    for (let i = 0; i < 3; i += 1) expect((await sidecar.request(post)).text).toBe(VIEWER)
    expect(looks()).toBe(1)
    await sidecar.clock.advance(89_000)
    expect((await sidecar.request(post)).text).toBe(VIEWER)
    expect([looks(), account.logins]).toEqual([1, 1])
    await sidecar.clock.advance(120_000)
    expect((await sidecar.request(post)).text).toBe(VIEWER)
    expect([looks(), account.logins]).toEqual([2, 1])
  })
})

describeProtocols('H242 A path that refuses every account', (transport) => {
  it.each(rowsOver(transport, KINDS))('does not stop the sign-in for others (%s)', async (kind) => {
    const started = await start(kind, { transport })
    const { account, sidecar, reader } = started
    expect(await accountsOf(started)).toEqual(VIEWERS)
    // Also as the first request after each login.
    for (let i = 0; i < 3; i += 1) {
      expect((await sidecar.request({ path: '/closed', token: reader })).status).toBe(401)
      expect(await accountsOf(started)).toEqual(VIEWERS)
      account.sessions.clear()
      expect((await sidecar.request({ path: '/closed', token: reader })).status).toBe(401)
      await sidecar.clock.advance(5_000)
      expect(await accountsOf(started)).toEqual(VIEWERS)
      await sidecar.clock.advance(5_000)
    }
    expect(sidecar.logLines().join('\n')).not.toContain('refuses the password')
  })
})

it.each([
  ['form', 429],
  ['cookie', 503],
  ['header', 503],
] as const)(
  'H259 while the device takes no further login, the session that works stays in use (%s, %i)',
  async (kind, status) => {
    const started = await start(kind)
    const { account, sidecar, reader, operator } = started
    expect(await accountsOf(started)).toEqual(VIEWERS)
    account.loginStatus = status
    for (let i = 0; i < 3; i += 1) {
      await sidecar.clock.advance(5_000)
      expect((await sidecar.request({ path: '/closed', token: reader })).status).toBe(401)
      if (kind === 'form') await sidecar.request({ method: 'POST', path: '/pulse', token: operator })
      expect(await accountsOf(started)).toEqual(VIEWERS)
    }
    // The pause after the login that failed: no further one until it is over.
    expect(account.logins).toBe(2)
    account.loginStatus = undefined
    await sidecar.clock.advance(30_000)
    account.sessions.clear()
    expect(await accountsOf(started)).toEqual(VIEWERS)
  },
)

it('H259 a login that the device refuses ends the session that worked', async () => {
  const started = await start('form')
  const { account, sidecar, reader } = started
  expect(await accountsOf(started)).toEqual(VIEWERS)
  account.password = 'changed at the device'
  expect((await sidecar.request({ path: '/closed', token: reader })).status).toBe(401)
  expect(sidecar.logLines().join('\n')).toContain('refuses the password')
  expect(await accountsOf(started)).not.toContain(VIEWER)
})

it('H242 the first request of all may be for a path that refuses every account', async () => {
  const started = await start('form')
  const { account, sidecar, reader } = started
  for (let i = 0; i < 5; i += 1) {
    expect((await sidecar.request({ path: '/closed', token: reader })).status).toBe(401)
  }
  expect(await accountsOf(started)).toEqual(VIEWERS)
  expect(account.logins).toBe(1)
})

it('H242 a password that never worked is not tried with every request, and a new one in the file at once', async () => {
  const account = await startAccountDevice()
  account.lenient = true
  const started = await start('form', { account, password: 'wrong' })
  const { sidecar } = started
  for (let i = 0; i < 5; i += 1)
    expect((await sidecar.request({ path: '/x', token: started.operator })).status).toBe(302)
  expect(account.logins).toBe(1)
  expect(sidecar.logLines().join('\n')).toContain('refuses the password')
  await sidecar.clock.advance(30_000)
  for (let i = 0; i < 5; i += 1) await sidecar.request({ path: '/x', token: started.operator })
  expect(account.logins).toBe(2)
  await sidecar.clock.advance(30_000)
  await sidecar.request({ path: '/x', token: started.operator })
  expect(account.logins).toBe(2)
  account.password = 'wrong'
  await sidecar.clock.advance(30_000)
  expect(await accountsOf(started)).toEqual(VIEWERS)
})

describe('H243 A device that changes its session with every response', () => {
  it.each(KINDS)('is named in the log, and causes one login in five seconds (%s)', async (kind) => {
    const started = await start(kind)
    const { account, sidecar, operator } = started
    account.rotates = true
    for (let i = 0; i < 20; i += 1) await sidecar.request({ path: '/whoami', token: operator })
    const { logins } = account
    expect(logins).toBeLessThan(6)
    for (let i = 0; i < 4; i += 1) {
      await sidecar.clock.advance(5_000)
      for (let n = 0; n < 5; n += 1) await sidecar.request({ path: '/whoami', token: operator })
    }
    expect(account.logins - logins).toBe(4)
    const lines = sidecar.logLines().filter((line) => line.includes('one login after the other'))
    expect(lines).toHaveLength(1)
    // The key can name the cookie of the session only where none is named.
    const remedy = kind === 'form' ? 'upstream.auth.session.token.cookie' : 'let the device keep its session'
    expect(lines[0]).toContain(remedy)
    for (const id of account.opened) expect(lines[0]).not.toContain(id)
  })
})
