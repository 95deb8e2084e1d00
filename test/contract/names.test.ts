import { beforeAll, describe, expect, it } from 'vitest'
import { logInAs, makeNames, type Names, OF_MONITOR } from '../support/passwords.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

interface Attacked {
  readonly sidecar: TestSidecar
  readonly names: Names
  /** The access token of the name `monitor`, which is all that the attacker has. */
  readonly token: string
}

async function start(
  allow: unknown = OF_MONITOR,
  config: YamlPart = {},
  transport: Transport = 'http1',
): Promise<Attacked> {
  const names = makeNames({ admin: undefined, monitor: allow })
  const sidecar = await startSidecar({ transport, config: { ...names.config, ...config } })
  return { sidecar, names, token: (await logInAs(sidecar, 'monitor')).access_token }
}

describeProtocols('H193 a name with an allow', (transport) => {
  it('H193 makes the requests of its methods and paths, and no others; not a byte of those reaches the device, and they count', async () => {
    const { sidecar, token } = await start(OF_MONITOR, {}, transport)
    const admin = (await logInAs(sidecar, 'admin')).access_token
    const allowed = [
      ['GET', '/status'],
      ['HEAD', '/status?verbose=1'],
      ['GET', '/api/sensors/'],
      ['GET', '/api/sensors/7?x=/../y'],
    ] as const
    for (const [method, path] of allowed)
      expect((await sidecar.request({ method, path, token })).status, path).toBe(200)
    const before = await sidecar.request({ path: '/status', token })
    const others = [
      ['POST', '/status'],
      ['OPTIONS', '/status'],
      ['GET', '/status/'],
      ['GET', '/api/sensors'],
      ['GET', '/STATUS'],
      ['GET', '/'],
      ['PUT', '/api/sensors/7'],
      ['DELETE', '/firmware'],
    ] as const
    const reached = sidecar.device.requests.length
    for (const [method, path] of others) {
      const response = await sidecar.request({ method, path, token })
      expect([response.status, response.json()], `${method} ${path}`).toMatchObject([
        400,
        { error: 'insufficient_scope' },
      ])
      expect(response.header('www-authenticate')).toBeUndefined()
      expect((await sidecar.request({ method, path, token: admin })).status).toBe(200)
    }
    expect(sidecar.device.requests).toHaveLength(reached + others.length)
    const after = await sidecar.request({ path: '/status', token })
    const left = (response: typeof before): number => Number(response.header('x-ratelimit-remaining'))
    expect(left(before) - left(after)).toBe(2 * others.length + 1)
    expect(await sidecar.metric('postern_refusals_total', { reason: 'insufficient_scope' })).toBe(
      others.length,
    )
  })

  it('H193 C10 a refreshed token may do what its login may, and the refresh token is one of this sidecar alone', async () => {
    const { sidecar } = await start(OF_MONITOR, {}, transport)
    const { refresh_token } = await logInAs(sidecar, 'monitor')
    const { access_token: token } = await sidecar.refresh(refresh_token)
    expect((await sidecar.request({ path: '/status', token })).status).toBe(200)
    const refused = await sidecar.request({ method: 'POST', path: '/status', token })
    expect([refused.status, refused.json().error]).toEqual([400, 'insufficient_scope'])
    const { sidecar: another } = await start(OF_MONITOR, {}, transport)
    const foreign = await another.postToken({ grant_type: 'refresh_token', refresh_token })
    expect(foreign.json().error).toBe('invalid_grant')
  })

  it('H193 status_codes http: 403 with the challenge of RFC 6750', async () => {
    const { sidecar, token } = await start(OF_MONITOR, { status_codes: 'http' }, transport)
    const { status, header } = await sidecar.request({ path: '/', token }).then((response) => ({
      status: response.status,
      header: response.header('www-authenticate'),
    }))
    expect([status, header]).toEqual([403, 'Bearer realm="device", error="insufficient_scope"'])
  })

  it('H193 a path that two programs could read differently is in no list of paths', async () => {
    const { sidecar, token } = await start(OF_MONITOR, {}, transport)
    // `http/scope.test.ts` has many more.
    const paths = ['/api/sensors/../firmware', '/api/sensors/%2e%2e/firmware', '/api/sensors/..\\firmware']
    for (const path of [...paths, '/api//sensors/7', '/status;x', '/firmware?/status']) {
      const response = await sidecar.request({ path, token })
      expect([response.status, response.json().error], path).toEqual([400, 'insufficient_scope'])
    }
    expect(sidecar.device.requests).toHaveLength(0)
  })

  it('H193 cannot change the method or the path by a field: the device does not get it', async () => {
    const { sidecar, token } = await start(OF_MONITOR, {}, transport)
    const names = [
      'X-HTTP-Method-Override',
      'X-HTTP-Method',
      'X-Method-Override',
      'x_http_method_override',
      'X-HTTP_Method-Override',
      'X-Original-URL',
      'X-Rewrite-URL',
      'X-Original-Method',
      'X-Override-URL',
      'X-Forwarded-Uri',
      'HTTP-Method-Override',
      'Method',
      'X-Method',
    ]
    const fields = names.flatMap((name) => [name, 'DELETE'])
    await sidecar.request({ path: '/status', token, fields: ['X-Other', 'kept', ...fields] })
    const seen = sidecar.device.requests.at(-1) ?? expect.unreachable()
    expect(seen.header('x-other')).toBe('kept')
    for (const name of names) expect(seen.header(name.toLowerCase()), name).toBeUndefined()
    // A name that may do everything may do this, too.
    const admin = (await logInAs(sidecar, 'admin')).access_token
    await sidecar.request({ path: '/status', token: admin, fields: ['X-HTTP-Method-Override', 'DELETE'] })
    expect(sidecar.device.requests.at(-1)?.header('x-http-method-override')).toBe('DELETE')
  })
})

// How a request arrives does not matter to these.
describe('H193 a name with an allow', () => {
  it('H193 public paths stay public', async () => {
    const { sidecar, token } = await start(OF_MONITOR, { public_paths: ['/login'] })
    for (const request of [{ token }, {}])
      expect((await sidecar.request({ method: 'POST', path: '/login', ...request })).status).toBe(200)
    expect(sidecar.device.requests.map(({ target }) => target)).toEqual(['/login', '/login'])
    expect((await sidecar.request({ method: 'POST', path: '/login/x', token })).status).toBe(400)
  })

  it('H193 is refused with enforce: false, too, and past its limit; a request without a token is forwarded', async () => {
    const limits = { api: { requests: 3 } }
    const { sidecar, token } = await start(OF_MONITOR, { enforce: false, limits })
    for (let i = 0; i < 6; i += 1)
      expect((await sidecar.request({ method: 'POST', path: '/firmware', token })).status, `${i}`).toBe(400)
    expect(sidecar.device.requests).toHaveLength(0)
    expect((await sidecar.request({ path: '/status', token })).status).toBe(200)
    expect((await sidecar.request({ path: '/firmware' })).status).toBe(200)
  })
})

it('H193 an upgrade needs the method UPGRADE', async () => {
  const rules = [{ methods: ['GET'] }, { methods: ['UPGRADE'], paths: ['/live'] }, { paths: ['/every/'] }]
  const { sidecar, token } = await start(rules)
  const { upgrades } = acceptWebSockets(sidecar.device)
  for (const path of ['/', '/every/method', '/live/']) {
    const { status, text } = await refusedWebSocket(sidecar.url, { path, token })
    expect([status, JSON.parse(text).error], path).toEqual([400, 'insufficient_scope'])
  }
  expect(upgrades).toHaveLength(0)
  await openWebSocket(sidecar.url, { path: '/live', token })
  const headers = { 'X-HTTP-Method-Override': 'DELETE' }
  await openWebSocket(sidecar.url, { path: '/live?x', token, headers })
  expect(upgrades.at(-1)?.headers['x-http-method-override']).toBeUndefined()
})

describe('H193 a request line', () => {
  let attacked: Attacked
  beforeAll(async () => {
    attacked = await start([{ methods: ['GET', 'HEAD', 'UPGRADE'], paths: ['/status'] }])
  })

  it.each([
    ['absolute form', 'GET http://device/firmware HTTP/1.1', 'insufficient_scope'],
    ['absolute form without a path', 'GET http://device?/status HTTP/1.1', 'insufficient_scope'],
    ['absolute form with user and path', 'GET http://device@/status/../firmware HTTP/1.1', 'invalid_request'],
    ['asterisk form', 'OPTIONS * HTTP/1.1', 'invalid_request'],
    ['TRACE', 'TRACE /status HTTP/1.1', 'invalid_request'],
    ['CONNECT', 'CONNECT device:80 HTTP/1.1', 'invalid_request'],
    ['a method in lower case', 'get /status HTTP/1.1', 'invalid_request'],
    ['UPGRADE as a method', 'UPGRADE /status HTTP/1.1', 'invalid_request'],
    ['HTTP/1.0', 'GET /firmware HTTP/1.0', 'insufficient_scope'],
  ])('H193 %s is judged as it is forwarded', async (_what, line, error) => {
    const { sidecar, token } = attacked
    const connection = await rawConnection(sidecar.url)
    connection.write(`${line}\r\nHost: device\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`)
    expect(await connection.closed).toContain(`"error":"${error}"`)
    expect(sidecar.device.requests).toHaveLength(0)
  })
})

it('H193 the same head is judged anew for another token, also on one connection', async () => {
  const { sidecar, token } = await start()
  const admin = (await logInAs(sidecar, 'admin')).access_token
  const connection = await sidecar.connect()
  const statusWith = async (bearer: string): Promise<number> =>
    (await connection.send({ path: '/firmware', fields: ['Authorization', `Bearer ${bearer}`] })).status
  const statuses: number[] = []
  for (const each of [admin, token, admin, token, token]) statuses.push(await statusWith(each))
  expect(statuses).toEqual([200, 400, 200, 400, 400])
})
