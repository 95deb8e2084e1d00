import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { readBody, startDevice } from '../support/device.ts'
import type { Exchange } from '../support/message.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { type RpcDevice, rpcAuth, startRpcDevice } from './session-devices.ts'
import { signedIn } from './signed-in.ts'

const READ = { method: 'POST', path: '/api/jsonrpc', body: '{"method":"PlcProgram.Read","id":1}' }
/** What is looked at in all (bytes). */
const LOOKED_AT = 8 * 1024

async function start(
  rpc: Pick<RpcDevice, 'device' | 'password'>,
  auth: object = rpcAuth,
  transport: Transport = 'http1',
) {
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, rpc.password)
  const config = { upstream: { auth: { ...auth, password: { file } }, stream_after: '2s' } }
  const sidecar = await startSidecar({ transport, device: rpc.device, config })
  return { sidecar, token: await sidecar.token() }
}

describeProtocols('H365 auth.session.expired by a field of JSON', (transport) => {
  it('H365 signs in and repeats the request, whatever its method, also at the path of the login', async () => {
    const rpc = await startRpcDevice()
    const { sidecar, token } = await start(rpc, rpcAuth, transport)
    for (const logins of [1, 2]) {
      rpc.token = 'another'
      const response = await sidecar.request({ ...READ, token })
      expect([response.status, response.text]).toEqual([200, rpc.result])
      expect(response.header('content-length')).toBe(String(rpc.result.length))
      expect(rpc.logins).toHaveLength(logins)
      expect(rpc.device.requests.at(-1)?.body?.toString()).toBe(READ.body)
      await sidecar.clock.advance(5_000)
    }
    expect((await sidecar.request({ ...READ, token })).text).toBe(rpc.result)
    expect(rpc.logins).toHaveLength(2)
  })

  it('H365 in chunks, too', async () => {
    const rpc = await startRpcDevice()
    rpc.send = (response, text) => {
      response.write(text.slice(0, 10))
      response.end(text.slice(10))
    }
    const { sidecar, token } = await start(rpc, rpcAuth, transport)
    await sidecar.request({ ...READ, token })
    rpc.token = 'another'
    expect((await sidecar.request({ ...READ, token })).text).toBe(rpc.result)
    expect(rpc.logins).toHaveLength(2)
  })

  it('H365 streams a response that goes on for longer than stream_after, and one that is too long to be looked at', async () => {
    const rpc = await startRpcDevice()
    const { sidecar, token } = await start(rpc, rpcAuth, transport)
    await sidecar.request({ ...READ, token })
    let held: ServerResponse | undefined
    rpc.send = (response, text) => {
      held = response
      response.write(text)
    }
    const begin = async (result: string): Promise<Exchange> => {
      held = undefined
      rpc.result = result
      const connection = await sidecar.connect()
      const exchange = connection.start({ ...READ, fields: ['Authorization', `Bearer ${token}`] })
      await expect.poll(() => held, { interval: 1 }).toBeDefined()
      return exchange
    }
    const long = await begin(`"${'x'.repeat(LOOKED_AT)}`)
    await long.waitFor('"xxx')
    held?.end('"')
    expect((await long.response).text).toHaveLength(LOOKED_AT + 2)
    const slow = await begin('{"error":')
    await expect.poll(() => sidecar.metric('postern_upstream_in_flight'), { interval: 1 }).toBe(1)
    await sidecar.clock.advance(1_999)
    expect(slow.received).toHaveLength(0)
    await sidecar.clock.advance(1)
    await slow.waitFor('{"error":')
    held?.end('{"code":2}}')
    expect((await slow.response).text).toBe('{"error":{"code":2}}')
    expect(rpc.logins).toHaveLength(1)
  })
})

describe('H365 auth.session.expired by a field of JSON', () => {
  it.each([
    ['another type', { 'Content-Type': 'text/plain' }],
    ['a JSON-like type', { 'Content-Type': 'application/jsonx' }],
    ['a content coding', { 'Content-Encoding': 'gzip' }],
    ['a content coding beside none', { 'Content-Encoding': 'identity, gzip' }],
    ['no type', { 'Content-Type': [] }],
  ])('H365 %s is not looked at', async (_name, fields) => {
    const rpc = await startRpcDevice()
    const { sidecar, token } = await start(rpc)
    await sidecar.request({ ...READ, token })
    rpc.token = 'another'
    const { send } = rpc
    rpc.send = (response, text) => {
      for (const [name, value] of Object.entries(fields)) response.setHeader(name, value)
      send(response, text)
    }
    expect((await sidecar.request({ ...READ, token })).text).toContain('Permission denied')
    expect(rpc.logins).toHaveLength(1)
  })

  it.each<[string, string[]]>([
    ['{"error":{"code":"2"}}', []],
    ['{ "error" : {"code" : 2 } }', []],
    ['{"error":{"code":2.0}}', []],
    ['{"error":{"code":20E-1}}', []],
    ['\ufeff{"error":{"code":2}}', []],
    ['{"error":{"code":2}}', ['']],
    ['{"error":{"code":2}}', ['identity']],
    ['{"error":{"code":2}}', [' Identity, ']],
  ])('H365 finds the value in %j, with the codings %j', async (text, codings) => {
    const rpc = await startRpcDevice()
    const { sidecar, token } = await start(rpc)
    const { send } = rpc
    rpc.send = (response, body) => {
      response.setHeader('Content-Encoding', codings)
      send(response, body)
    }
    rpc.result = text
    await sidecar.request({ ...READ, token })
    expect(rpc.logins).toHaveLength(2)
  })

  it.each([
    '{"error":{"code":20}}',
    '{"error":{"code":2.5}}',
    '{"error":{"code":" 2"}}',
    '{"error":{"code":"0x2"}}',
    '{"error":{"code":[2]}}',
    '{"error":{"code":null}}',
    '{"code":2}',
    '[{"error":{"code":2}}]',
    '{"error":{"code":2}',
    '',
  ])('H365 passes %j on', async (text) => {
    const rpc = await startRpcDevice()
    const { sidecar, token } = await start(rpc)
    rpc.result = text
    const response = await sidecar.request({ ...READ, token })
    expect([response.status, response.text, response.header('content-length')]).toEqual([
      200,
      text,
      String(text.length),
    ])
    expect(rpc.logins).toHaveLength(1)
  })

  it('H365 a method that is closed to the account gets the refusal of the device, and leads to one login in five seconds', async () => {
    const rpc = await startRpcDevice()
    const { sidecar, token } = await start(rpc)
    rpc.result = '{"error":{"code":2}}'
    for (let count = 0; count < 5; count += 1)
      expect((await sidecar.request({ ...READ, token })).text).toBe(rpc.result)
    expect(rpc.logins).toHaveLength(2)
  })

  it("H365 a client's own login that fails with another code passes", async () => {
    const rpc = await startRpcDevice()
    const { sidecar, token } = await start(rpc)
    const body = '{"method":"Api.Login","params":{"user":"eve","password":"x"}}'
    expect((await sidecar.request({ ...READ, token, body })).text).toContain('Login failed')
    // That of Postern, before the request of the client.
    expect(rpc.logins).toHaveLength(2)
  })

  /** A device with a session in a cookie, whose answers say whether the client is signed in. */
  async function startTruthful(password: string) {
    const logins: string[] = []
    let session = ''
    const device = await startDevice(async (request, response) => {
      const body = (await readBody(request)).toString()
      response.setHeader('Content-Type', 'application/json')
      if (request.url === '/login') {
        const id = `s${logins.push(body)}`
        // As many devices do, it sets a cookie for a wrong password, too.
        response.setHeader('Set-Cookie', `SID=${id}; Path=/`)
        if (body.endsWith(password)) session = id
      }
      const success =
        request.url === '/login' ? body.endsWith(password) : request.headers.cookie === `SID=${session}`
      response.end(JSON.stringify({ success }))
    })
    const auth = {
      kind: 'session',
      user: 'admin',
      session: {
        login: { path: '/login', form: { name: '$user', pass: '$password' } },
        expired: [{ json: '/success', value: false }],
      },
    }
    const expire = (): void => {
      session = 'over'
    }
    return { device, logins, auth, password, expire }
  }

  it('H365 a truth value is a value, and the response to a request for check_path is looked at, too', async () => {
    const { expire, ...truthful } = await startTruthful('x')
    const { sidecar, token } = await start(truthful, { ...truthful.auth, check_path: '/status' })
    expect((await sidecar.request({ token, path: '/page' })).text).toBe('{"success":true}')
    expire()
    const change = { token, path: '/page', method: 'PUT', body: 'x' }
    expect((await sidecar.request(change)).text).toBe('{"success":true}')
    expect(truthful.logins).toHaveLength(2)
  })

  it("H365 a client's own login that fails with the same value passes, where cookies are the session", async () => {
    const truthful = await startTruthful('x')
    const { sidecar, token } = await start(truthful, truthful.auth)
    expect((await sidecar.request({ token, path: '/page' })).text).toBe('{"success":true}')
    const own = { token, path: '/login', method: 'POST', body: 'name=eve&pass=y' }
    expect((await sidecar.request(own)).text).toBe('{"success":false}')
    expect(truthful.logins).toHaveLength(2)
  })

  it('H365 in the response to a login it means a wrong password', async () => {
    const { device, auth } = await startTruthful('x')
    const { signIn, events } = await signedIn({ auth, password: 'y', url: device.url })
    await signIn.ready()
    expect(events).toEqual([expect.stringMatching(/^refused/)])
  })
})
