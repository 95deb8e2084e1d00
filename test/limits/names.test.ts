import { beforeAll, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { appliedTo } from '../../src/config/restart-keys.ts'
import { createOwnWindows, type LimitPolicy } from '../../src/limits/own-windows.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { FROM_PAGE, startWithLogin, submitLogin } from '../browser/browsing.ts'
import { stillClock } from '../support/clock.ts'
import { limitsOf } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { logInAs, makeNames, passwordOf } from '../support/passwords.ts'
import { explained } from '../support/records.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { describeProtocols } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

let redis: RedisServer
beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})

/** All names have five requests, but `monitor` has two in ten seconds. */
function config(more: YamlPart = {}): YamlPart {
  const { passwords } = makeNames({ admin: undefined, monitor: undefined }).config
  const [admin, monitor] = passwords
  const limit = { requests: 2, window: '10s' }
  const limits = { api: { requests: 5, window: '60s', per: 'name' }, ietf_headers: true }
  return { password: undefined, passwords: [admin, { ...monitor, limit }], limits, ...more }
}

const ask = (sidecar: TestSidecar, token: string): Promise<Response> =>
  sidecar.request({ path: '/status', token })

describeProtocols('H309 The limit of a name', (transport) => {
  it('H309 replaces that of the API for all logins of the name, in the headers, too', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, config: config() })
    const [one, other] = [await logInAs(sidecar, 'monitor'), await logInAs(sidecar, 'monitor')]
    const admin = await logInAs(sidecar, 'admin')
    const responses = [
      await ask(sidecar, one.access_token),
      await ask(sidecar, other.access_token),
      await ask(sidecar, one.access_token),
    ]
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(responses.map((each) => limitsOf(each)).map(({ limit, remaining }) => [limit, remaining])).toEqual(
      [
        [2, 1],
        [2, 0],
        [2, 0],
      ],
    )
    for (const each of responses) expect(each.header('ratelimit-policy')).toBe('"api";q=2;w=10')
    expect(Number(responses[2]?.header('retry-after'))).toBeLessThanOrEqual(10)
    const ofAdmin = await ask(sidecar, admin.access_token)
    expect(limitsOf(ofAdmin)).toMatchObject({ limit: 5, remaining: 4 })
    expect(ofAdmin.header('ratelimit-policy')).toBe('"api";q=5;w=60')
    // Without a valid token, the window is the client's.
    expect(limitsOf(await ask(sidecar, 'unknown'))).toMatchObject({ limit: 5, remaining: 4 })
  })
})

it('H309 a WebSocket counts, and a used-up window refuses it', async () => {
  const sidecar = await startSidecar({ clock: stillClock(), config: config() })
  acceptWebSockets(sidecar.device)
  const { access_token: token } = await logInAs(sidecar, 'monitor')
  for (let i = 0; i < 2; i += 1) await openWebSocket(sidecar.url, { token })
  expect((await refusedWebSocket(sidecar.url, { token })).status).toBe(429)
})

it('H309 the session of a browser counts in the window of its name, too', async () => {
  const sidecar = await startWithLogin({ clock: stillClock(), config: config() })
  const [set = ''] = (await submitLogin(sidecar, { password: passwordOf('monitor') })).values('set-cookie')
  const fields = ['Cookie', set.split(';', 1)[0] ?? '', ...FROM_PAGE]
  const responses: Response[] = []
  for (let i = 0; i < 3; i += 1) responses.push(await sidecar.request({ path: '/status', fields }))
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(limitsOf(responses[0] as Response)).toMatchObject({ limit: 2, remaining: 1 })
})

it('H309 explain, the metrics and the page follow it', async () => {
  const sidecar = await startSidecar({ config: config() })
  const { access_token: token } = await logInAs(sidecar, 'monitor')
  for (let i = 0; i < 3; i += 1) {
    // The latest is the one that is explained.
    await sidecar.clock.advance(1)
    await ask(sidecar, token)
  }
  expect((await explained(sidecar, '/status')).Window).toMatch(/of name monitor, .* All 2 requests were used/)
  const counted = (result: string): Promise<number> =>
    sidecar.metric('postern_named_requests_total', { name: 'monitor', result })
  expect([await counted('admitted'), await counted('rate_limited')]).toEqual([2, 1])
  expect(await sidecar.metric('postern_rate_windows', { endpoint: 'api' })).toBe(1)
  expect(sidecar.overview.condition().limits.api).toMatchObject({
    requests: 5,
    per: 'name',
    names: [{ name: 'monitor', requests: 2, window: 10_000 }],
    usedUp: [{ key: 'name monitor', refused: 1 }],
  })
})

it('H309 in a fleet the sidecars share the window of the name', async () => {
  needs('redis-server')
  const shared = {
    tokens: { store: `valkey://${redis.at}` },
    limits: { store: 'shared', api: { requests: 5, per: 'name' } },
  }
  const both = config(shared)
  const [one, other] = await Promise.all([startSidecar({ config: both }), startSidecar({ config: both })])
  const { access_token: token } = await logInAs(one, 'monitor')
  const responses = [
    await ask(one, token),
    await ask(other, token),
    await ask(one, token),
    await ask(other, token),
  ]
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 429, 429])
  const { access_token: admin } = await logInAs(other, 'admin')
  expect(limitsOf(await ask(one, admin))).toMatchObject({ limit: 5, remaining: 4 })
})

it('H309 a reload changes it; a name whose limit stays keeps its window', () => {
  const clock = stillClock()
  const others = { requests: 5, window: 60_000 }
  const own = { requests: 2, window: 10_000 }
  const table = createOwnWindows({ ...others, own: new Map([['name a', own]]) }, (policy) =>
    createWindowTable(policy, { clock, maxKeys: 10 }),
  )
  const left = (key: string): unknown => {
    const decision = table.count(key)
    return decision instanceof Promise ? expect.unreachable() : [decision.limit, decision.remaining]
  }
  expect([left('name a'), left('name b')]).toEqual([
    [2, 1],
    [5, 4],
  ])
  const ofBoth = new Map([
    ['name a', own],
    ['name b', { requests: 3, window: 60_000 }],
  ])
  const next: LimitPolicy = { ...others, own: ofBoth }
  table.applyPolicy(next)
  expect([left('name a'), left('name b'), left('name c')]).toEqual([
    [2, 0],
    [3, 2],
    [5, 4],
  ])
  expect(table.usedUp()).toMatchObject([{ key: 'name a' }])
  table.applyPolicy(others)
  expect([left('name a'), left('name b')]).toEqual([
    [5, 4],
    [5, 3],
  ])
})

it('H309 a change of a limit needs no restart', () => {
  const load = (...limit: object[]) =>
    loadConfig({
      object: {
        upstream: { url: 'http://192.0.2.1' },
        passwords: [Object.assign({ name: 'a', file: '/a' }, ...limit)],
        limits: { api: { per: 'name' } },
      },
    })
  const [before, after] = [load(), load({ limit: { requests: 2, window: '10s' } })]
  expect(appliedTo(before, after)).toEqual(after)
})
