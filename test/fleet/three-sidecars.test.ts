import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Served, tokensOf } from '../process/serve.ts'
import { broken, type Held, holdResponses } from '../process/streams.ts'
import { type Flood, flood } from '../support/autocannon.ts'
import { type Device, startDevice } from '../support/device.ts'
import { livedTime } from '../support/lived-time.ts'
import { type RedisServer, startRedis, until } from '../support/redis.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { openWebSocket } from '../support/websocket.ts'
import { type Fleet, pause, report, startFleet, statusesOf, summary, tryLogin } from './fleet.ts'

let fleet: Fleet
let server: RedisServer
let held: Held
let device: Device

beforeAll(async () => {
  if (!isInstalled('redis-server')) return
  server = await startRedis()
  device = await startDevice()
  held = holdResponses(device)
  fleet = await startFleet({
    device,
    url: `valkey://${server.at}`,
    config: {
      tokens: { rotate_refresh: true, refresh_grace: '0s' },
      limits: { store: 'shared', api: { per: 'device' } },
    },
    // So long that a busy machine is not taken for a server that does not reply.
    timeout: 30_000,
  })
})

let paths = 0
/** Opens a download and a tunnel under a token. Both promises resolve with the moment at which the sidecar cut them. */
async function openStreams(
  sidecar: Served,
  token: string,
  now: () => number,
): Promise<readonly Promise<number>[]> {
  const connection = await sidecar.connect()
  paths += 1
  const path = `/download/${paths}`
  const exchange = connection.start({ path, fields: ['Authorization', `Bearer ${token}`] })
  await exchange.waitFor('first piece')
  const { socket } = await openWebSocket(sidecar.url, { token })
  const closed = new Promise<number>((resolve) => socket.once('close', () => resolve(now())))
  return [broken(exchange).then(now), closed]
}

/** Asks with the token until it is refused, and returns when that was. */
async function refusedAt(sidecar: Served, token: string, now: () => number): Promise<number> {
  for (;;) {
    const status = await sidecar.use(token)
    if (status === 401) return now()
    if (status !== 200) throw new Error(`a revoked token is answered with ${status}`)
    await pause(10)
  }
}

type Act = (issuer: Served, tokens: { access_token: string; refresh_token: string }) => Promise<unknown>

const revokeAtEndpoint: Act = async (issuer, { refresh_token: token }) => {
  const fields = ['Content-Type', 'application/x-www-form-urlencoded']
  const body = `token=${encodeURIComponent(token)}`
  const response = await issuer.request({ method: 'POST', path: '/oauth/revoke', body, fields })
  expect(response.status).toBe(200)
}

/** The grant of the token that was issued last. */
async function newestGrant(sidecar: Served): Promise<string> {
  const { grants } = await sidecar.status()
  return [...grants].sort((a, b) => b.issuedAt - a.issuedAt)[0]?.id ?? ''
}

const ways: readonly (readonly [string, string, Act])[] = [
  ['H129', 'a client at the revocation endpoint', revokeAtEndpoint],
  ['H129', 'the operator: this grant', async (issuer) => issuer.revoke({ grant: await newestGrant(issuer) })],
  ['H129', 'the operator: this client', (issuer) => issuer.revoke({ client: '127.0.0.1' })],
  ['H129', 'the operator: all', (issuer) => issuer.revoke({ all: true })],
  [
    'C6',
    'the reuse of a spent refresh token',
    async (issuer, { refresh_token: token }) => {
      await issuer.refresh(token)
      expect((await issuer.refresh(token)).status).toBe(400)
    },
  ],
  ['C8', 'a change of the password', async () => fleet.sites[0]?.setPassword('the second password\n')],
]

/** Sets the limit of requests at each sidecar. */
async function limitTo(requests: number, window: string): Promise<void> {
  await Promise.all(
    fleet.sites.map(async (site, index) => {
      const sidecar = fleet.sidecars[index] as Served
      const before = sidecar.logged('configuration reloaded').length
      site.configure({ limits: { api: { requests, window } } })
      await until(async () => sidecar.logged('configuration reloaded').length > before)
    }),
  )
}

/** Floods all sidecars at once. Returns how many requests reached the device, and the responses by status. */
async function floodAll(token: string, end: Flood['until']): Promise<[number, Map<number, number>]> {
  const before = device.requests.length
  const statuses = new Map<number, number>()
  const reports = await Promise.all(
    fleet.sidecars.map(({ url }) =>
      flood({
        url,
        requests: [{ method: 'GET', path: '/', headers: { Authorization: `Bearer ${token}` } }],
        connections: 5,
        pipelining: 4,
        until: end,
        onResponse: (_request, { status }) => statuses.set(status, (statuses.get(status) ?? 0) + 1),
      }),
    ),
  )
  expect(reports.flatMap(({ faults }) => faults)).toEqual([])
  return [device.requests.length - before, statuses]
}

describe('a flood at three sidecars at once', () => {
  afterAll(async () => {
    if (isInstalled('redis-server')) await limitTo(1_000_000, '1h')
  })

  it('C14 H138 lets exactly N requests per window through to the device', async () => {
    needs('redis-server')
    const token = tokensOf(await (fleet.sidecars[0] as Served).login()).access_token
    await limitTo(200, '1h')
    const [inOne, statuses] = await floodAll(token, { requestsEach: 400 })
    expect([...statuses.keys()].sort()).toEqual([200, 429])
    expect(inOne).toBe(200)
    await limitTo(100, '1s')
    const start = performance.now()
    const [inSome, also] = await floodAll(token, { seconds: 1.5 })
    const windows = Math.floor((performance.now() - start) / 1_000) + 1
    report('a flood at three sidecars', `${[...also.values()]} responses, ${inSome} of 100 per s`)
    expect([200, 429]).toEqual(expect.arrayContaining([...also.keys()]))
    // A machine that is too slow for a hundred requests a second has no 429.
    const sent = [...also.values()].reduce((sum, count) => sum + count, 0)
    expect(inSome).toBeGreaterThanOrEqual(Math.min(100, sent))
    expect(inSome).toBeLessThanOrEqual(windows * 100)
    for (const sidecar of fleet.sidecars) expect(await sidecar.metric('postern_rate_fallback_total')).toBe(0)
  })
})

describe('a revocation at one sidecar is felt at all within a second', () => {
  let password = PASSWORD
  it.each(ways)('%s by %s: requests, a download and a tunnel', async (_id, name, act) => {
    needs('redis-server')
    const [one, two, three] = fleet.sidecars as [Served, Served, Served]
    const delays: number[] = []
    const now = livedTime(() => Promise.all(fleet.sidecars.map((sidecar) => sidecar.ready())))
    const rounds = name.includes('password') ? 1 : 2
    for (let round = 0; round < rounds; round++) {
      const tokens = tokensOf(await one.login(password))
      const { access_token: token } = tokens
      expect(await statusesOf(fleet.sidecars, [token])).toEqual([200])
      const streams = (
        await Promise.all([one, two, three].map((each) => openStreams(each, token, now)))
      ).flat()
      const start = now()
      const ends = [...streams, ...fleet.sidecars.map((sidecar) => refusedAt(sidecar, token, now))]
      await act(one, tokens)
      const moments = await Promise.all(ends)
      // A change of the password begins when the first sidecar has read it.
      const from = name.includes('password') ? Math.min(...moments) : start
      delays.push(...moments.map((moment) => moment - from))
    }
    report(`revoked by ${name}`, summary(delays))
    expect(Math.max(...delays)).toBeLessThan(1_000)
    if (name.includes('password')) password = 'the second password'
  })

  it('C8 no token of the old password works after the change, however the logins race with it', async () => {
    needs('redis-server')
    const old = 'the second password'
    const fresh = 'the third password'
    for (const site of fleet.sites) site.setPassword(`${old}\n`)
    for (const sidecar of fleet.sidecars)
      await expect.poll(async () => (await sidecar.login(old)).status).toBe(200)
    const collected: string[] = []
    const witness = tokensOf(await (fleet.sidecars[0] as Served).login(old)).access_token
    let [over, attempts] = [false, 0]
    const hammer = async (sidecar: Served): Promise<void> => {
      while (!over) {
        const tokens = await tryLogin(sidecar, old)
        attempts += 1
        if (tokens !== undefined) collected.push(tokens.access_token)
      }
    }
    const hammers = fleet.sidecars.flatMap((sidecar) => [sidecar, sidecar]).map(hammer)
    /** Each of the clients tries twice more, as far as they are equally fast. */
    const twiceMore = async (): Promise<void> => {
      const before = attempts
      await expect.poll(() => attempts).toBeGreaterThanOrEqual(before + 2 * hammers.length)
    }
    await expect.poll(() => collected.length).toBeGreaterThan(5)
    fleet.sites[0]?.setPassword(`${fresh}\n`)
    await refusedAt(fleet.sidecars[0] as Served, witness, Date.now)
    await twiceMore()
    const others = fleet.sidecars.slice(1)
    const changes = others.map((sidecar) => sidecar.logged('the password has changed').length)
    for (const site of fleet.sites.slice(1)) site.setPassword(`${fresh}\n`)
    for (const [index, sidecar] of others.entries())
      await expect
        .poll(() => sidecar.logged('the password has changed').length)
        .toBeGreaterThan(changes[index] ?? 0)
    await twiceMore()
    over = true
    await Promise.all(hammers)
    report('tokens of the old password', String(collected.length))
    expect(await statusesOf(fleet.sidecars, collected)).toEqual([401])
    const tokens: string[] = []
    for (const sidecar of fleet.sidecars) {
      await expect.poll(async () => (await sidecar.login(fresh)).status).toBe(200)
      tokens.push(tokensOf(await sidecar.login(fresh)).access_token)
    }
    expect(await statusesOf(fleet.sidecars, tokens)).toEqual([200])
    expect(held.size).toBeGreaterThan(0)
  })
})
