import { describe, expect, it } from 'vitest'
import { logInAs, makeNames, OF_MONITOR, onTrial } from '../support/passwords.ts'
import { accessLines, explained } from '../support/records.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

interface Tried {
  readonly sidecar: TestSidecar
  /** The access token of the name `monitor`, whose `allow` is on trial. */
  readonly token: string
  /** That of the name `probe`, whose `allow` is the same and holds. */
  readonly held: string
}

async function start(config: YamlPart = {}, transport: Transport = 'http1'): Promise<Tried> {
  const names = onTrial(makeNames({ monitor: OF_MONITOR, probe: OF_MONITOR }), 'monitor')
  const sidecar = await startSidecar({ transport, config: { ...names, ...config } })
  const tokenOf = async (name: string): Promise<string> => (await logInAs(sidecar, name)).access_token
  return { sidecar, token: await tokenOf('monitor'), held: await tokenOf('probe') }
}

const named = (sidecar: TestSidecar, name: string, result: string): Promise<number | undefined> =>
  sidecar.metric('postern_named_requests_total', { name, result })

/** What the access lines say of the requests to the device. */
const found = (sidecar: TestSidecar): unknown[] =>
  accessLines(sidecar)
    .filter(({ endpoint }) => endpoint === 'api')
    .map(({ path, status, refusal, would_refuse: would }) => [path, status, refusal ?? would])

describeProtocols('H297 an allow on trial', (transport) => {
  it('H297 forwards what it would refuse as the client sent it, counts and logs it; that of another name holds', async () => {
    const { sidecar, token, held } = await start({}, transport)
    expect((await sidecar.request({ path: '/status', token })).status).toBe(200)
    expect((await sidecar.request({ method: 'POST', path: '/firmware?x', body: 'abc', token })).status).toBe(
      200,
    )
    expect((await sidecar.request({ path: '/status/../firmware', token })).status).toBe(200)
    const seen = sidecar.device.requests
    expect(seen.map(({ method, target, body }) => [method, target, String(body)])).toEqual([
      ['GET', '/status', ''],
      ['POST', '/firmware?x', 'abc'],
      ['GET', '/status/../firmware', ''],
    ])
    expect((await sidecar.request({ method: 'POST', path: '/firmware', token: held })).status).toBe(400)
    expect(seen).toHaveLength(3)
    expect(await named(sidecar, 'monitor', 'would_refuse')).toBe(2)
    expect(await named(sidecar, 'monitor', 'admitted')).toBe(1)
    expect(await named(sidecar, 'probe', 'insufficient_scope')).toBe(1)
    // It was refused nothing: the sums of refusals have only what was.
    expect(await sidecar.metric('postern_refusals_total', { reason: 'insufficient_scope' })).toBe(1)
    expect(found(sidecar)).toEqual([
      ['/status', 200, undefined],
      ['/firmware', 200, 'insufficient-scope'],
      ['/status/../firmware', 200, 'insufficient-scope'],
      ['/firmware', 400, 'insufficient-scope'],
    ])
  })

  it('H297 forwards what it would hold back: a field that names another request, and a Destination', async () => {
    const { sidecar, token, held } = await start({}, transport)
    const override = ['X-HTTP-Method-Override', 'DELETE']
    for (const fields of [override, ['Destination', '/firmware'], ['Destination', '/api/sensors/8']])
      expect((await sidecar.request({ path: '/status', token, fields })).status).toBe(200)
    await sidecar.request({ path: '/status', token: held, fields: override })
    const [first, second, , last] = sidecar.device.requests
    expect(first?.header('x-http-method-override')).toBe('DELETE')
    expect(second?.header('destination')).toBe('/firmware')
    expect(last?.header('x-http-method-override')).toBeUndefined()
    expect(found(sidecar).map((line) => (line as unknown[])[2])).toEqual([
      'insufficient-scope: override',
      'insufficient-scope',
      undefined,
      undefined,
    ])
    expect(await named(sidecar, 'monitor', 'would_refuse')).toBe(2)
    expect(await named(sidecar, 'probe', 'admitted')).toBe(1)
  })
})

// How a request arrives does not matter to these.
describe('H297 an allow on trial', () => {
  it('H297 opens nothing else: a token is needed, limits and faults refuse, and the endpoints of Postern stay its own', async () => {
    const config = { limits: { api: { requests: 5 } }, oauth: { revocation_path: '/oauth/revoke' } }
    const { sidecar, token } = await start(config)
    const { access_token: revoked } = await logInAs(sidecar, 'monitor')
    await sidecar.postToken({ token: revoked }, { path: '/oauth/revoke' })
    const statusOf = async (more: Parameters<TestSidecar['request']>[0]): Promise<number> =>
      (await sidecar.request({ path: '/firmware', ...more })).status
    expect(await statusOf({})).toBe(401)
    expect(await statusOf({ token: 'no-token' })).toBe(401)
    expect(await statusOf({ token: revoked })).toBe(401)
    expect(await statusOf({ method: 'TRACE', token })).toBe(400)
    expect(await statusOf({ path: '/oauth/token', token })).toBe(400)
    expect(sidecar.device.requests).toHaveLength(0)
    expect(await statusOf({ token })).toBe(200)
    expect(await statusOf({ token })).toBe(429)
    expect(sidecar.device.requests).toHaveLength(1)
  })

  it('H297 ends with the password of its name', async () => {
    const names = makeNames({ monitor: OF_MONITOR, probe: OF_MONITOR })
    const sidecar = await startSidecar({ config: onTrial(names, 'monitor') })
    const { access_token: token } = await logInAs(sidecar, 'monitor')
    names.set('monitor', 'another password')
    const status = async (): Promise<number> => (await sidecar.request({ path: '/firmware', token })).status
    // The changed file is read after a pause.
    while ((await status()) !== 401) await sidecar.clock.advance(20)
  })

  it('H297 with enforce: false for all, the other names are held, and what is past the limit is one of its own finds', async () => {
    const { sidecar, token, held } = await start({ enforce: false, limits: { api: { requests: 1 } } })
    for (const path of ['/status', '/status', '/firmware'])
      expect((await sidecar.request({ path, token })).status).toBe(200)
    expect((await sidecar.request({ path: '/firmware', token: held })).status).toBe(400)
    expect(found(sidecar).map((line) => (line as unknown[])[2])).toEqual([
      undefined,
      'rate-limited',
      'insufficient-scope',
      'insufficient-scope',
    ])
    expect(await named(sidecar, 'monitor', 'would_refuse')).toBe(1)
    expect(await named(sidecar, 'monitor', 'admitted')).toBe(2)
  })

  it('H297 on a public path is no find, but for a field that would be held back', async () => {
    const { sidecar, token } = await start({ public_paths: ['/login'] })
    const fields = ['X-Original-URL', '/firmware']
    await sidecar.request({ method: 'POST', path: '/login', token })
    await sidecar.request({ method: 'POST', path: '/login', token, fields })
    expect(sidecar.device.requests[1]?.header('x-original-url')).toBe('/firmware')
    expect(found(sidecar).slice(-2)).toEqual([
      ['/login', 200, undefined],
      ['/login', 200, 'insufficient-scope: override'],
    ])
    expect(await named(sidecar, 'monitor', 'admitted')).toBe(1)
  })
})

it('H297 opens a WebSocket that allow does not have, with its fields', async () => {
  const { sidecar, token } = await start()
  const { upgrades } = acceptWebSockets(sidecar.device)
  const headers = { 'X-HTTP-Method-Override': 'DELETE' }
  await openWebSocket(sidecar.url, { path: '/live', token, headers })
  expect(upgrades.at(-1)?.headers['x-http-method-override']).toBe('DELETE')
})

it('H297 is explained', async () => {
  const { sidecar, token } = await start()
  await sidecar.request({ path: '/firmware', token })
  await sidecar.request({ path: '/status', token, fields: ['X-Original-URL', '/firmware'] })
  expect((await explained(sidecar, '/firmware')).Decision).toBe(
    'Admitted. The allow of monitor is on trial. Without enforce: false the refusal would be "insufficient-scope": The name of the login may not make this request: see its allow in passwords.',
  )
  expect((await explained(sidecar, '/status')).Decision).toBe(
    'Admitted. The allow of monitor is on trial. Without enforce: false a field that names another path, method or host would not reach the device.',
  )
})
