import { beforeEach, describe, expect, it } from 'vitest'
import { broken, holdResponses } from '../process/streams.ts'
import { send } from '../support/client.ts'
import { livedTime } from '../support/lived-time.ts'
import type { Response } from '../support/message.ts'
import { type RedisServer, startRedis, until } from '../support/redis.ts'
import { PASSWORD_GRANT, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { openWebSocket } from '../support/websocket.ts'
import { report } from './fleet.ts'
import { type Network, startNetwork } from './stalled-network.ts'

beforeEach(() => needs('redis-server'))

const TIMEOUT = 2_000
/** What a reply needs besides the time-out (ms of `livedTime`). */
const MARGIN = 2_000

interface Bed {
  readonly server: RedisServer
  readonly network: Network
  /** Has its own way to the server. */
  readonly other: TestSidecar
  /** Reaches the server through the network. */
  readonly sidecar: TestSidecar
}

async function startBed(config: YamlPart = {}): Promise<Bed> {
  const server = await startRedis()
  const network = await startNetwork(server.port)
  const { tokens = {}, ...rest } = config as { tokens?: object }
  const at = (port: number): Promise<TestSidecar> =>
    startSidecar({
      config: {
        oauth: { revocation_path: '/oauth/revoke' },
        ...rest,
        tokens: { store: `valkey://127.0.0.1:${port}`, ...tokens },
      },
      bounds: { store: { timeout: TIMEOUT } },
    })
  const [other, sidecar] = await Promise.all([at(server.port), at(network.port)])
  for (const each of [other, sidecar]) await until(async () => (await ready(each)).status === 200)
  return { server, network, other, sidecar }
}

/** Sends a request and checks that its response does not wait for longer than the time-out. */
async function bounded(asking: () => Promise<Response>): Promise<Response> {
  const now = livedTime()
  const response = await asking()
  expect(now()).toBeLessThan(TIMEOUT + MARGIN)
  return response
}

const use = async (sidecar: TestSidecar, token: string): Promise<number> =>
  (await bounded(() => sidecar.request({ token }))).status
const logIn = (sidecar: TestSidecar): Promise<Response> => bounded(() => sidecar.postToken(PASSWORD_GRANT))
const ready = async ({ adminUrl: url }: TestSidecar): Promise<Response> =>
  send({ transport: 'http1', url, path: '/readyz' })
const logged = (sidecar: TestSidecar, text: string): number =>
  sidecar.logLines().filter((line) => line.includes(text)).length

/** Waits until the sidecar accepts the token. Until then it may say that it cannot tell, but not that the token is invalid. */
function accepted(sidecar: TestSidecar, token: string, unavailable = 500): Promise<void> {
  return until(async () => {
    const status = await use(sidecar, token)
    expect([200, unavailable]).toContain(status)
    return status === 200
  })
}

function expectUnavailable(response: Response, status = 500): void {
  expect(response.status).toBe(status)
  expect(response.json()).toMatchObject({ error: 'server_error' })
  expect(response.header('proxy-status')).toContain('error=proxy_internal_error')
}

describe('a network that stalls between a sidecar and the store', () => {
  it.concurrent.each([500, 503])(
    'H147 bounds every wait, keeps known tokens, refuses none falsely (%s), and heals by itself',
    async (status) => {
      const config = status === 503 ? { status_codes: 'http' } : {}
      const { network, other, sidecar } = await startBed(config)
      const known = await other.token()
      expect(await use(sidecar, known)).toBe(200)
      const strangers = await Promise.all([1, 2, 3].map(() => other.token()))
      const lines = ['the shared store does not respond', '"the shared store responds"']
      const counts = (): number[] => lines.map((line) => logged(sidecar, line))
      const [downs = 0, ups = 0] = counts()
      network.stall()
      const answers = await Promise.all([
        ...strangers.map((token) => bounded(() => sidecar.request({ token }))),
        ...[1, 2].map(() => logIn(sidecar)),
        ...[1, 2, 3].map(() => bounded(() => sidecar.request({ token: known }))),
      ])
      for (const answer of answers.slice(0, 5)) expectUnavailable(answer, status)
      for (const answer of answers.slice(5)) expect(answer.status).toBe(200)
      const start = performance.now()
      for (let i = 0; i < 20; i++) expect(await use(sidecar, known)).toBe(200)
      report('20 requests with a known token during a stall', `${Math.round(performance.now() - start)} ms`)
      await until(async () => (await ready(sidecar)).status === 503)
      expect((await ready(sidecar)).text).toContain('the shared store does not respond')
      expect(await sidecar.metric('postern_store_up')).toBe(0)
      expect((await ready(other)).status).toBe(200)

      network.heal()
      const healing = livedTime()
      await until(async () => (await ready(sidecar)).status === 200)
      for (const token of strangers) await accepted(sidecar, token, status)
      expect((await logIn(sidecar)).status).toBe(200)
      const healed = healing()
      report('healed after a stall', `${Math.round(healed)} ms`)
      expect(healed).toBeLessThan(3_000 + MARGIN)
      expect(counts()).toEqual([downs + 1, ups + 1])
    },
  )

  it.concurrent('H147 a revocation elsewhere during the stall is applied when it heals, to a download and a tunnel, too', async () => {
    const { network, other, sidecar } = await startBed({ tokens: { rotate_refresh: true } })
    holdResponses(sidecar.device)
    const [token, kept] = [await other.token(), await other.token()]
    for (const each of [token, kept]) expect(await use(sidecar, each)).toBe(200)
    const exchange = (await sidecar.connect()).start({
      path: '/download',
      fields: ['Authorization', `Bearer ${token}`],
    })
    await exchange.waitFor('first piece')
    const { socket } = await openWebSocket(sidecar.url, { token })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    network.stall()
    const body = `token=${token}`
    const fields = ['Content-Type', 'application/x-www-form-urlencoded']
    expect((await other.request({ method: 'POST', path: '/oauth/revoke', body, fields })).status).toBe(200)
    expect(await use(other, token)).toBe(401)
    expect(await use(sidecar, token)).toBe(200)
    network.heal()
    await Promise.all([broken(exchange), closed])
    expect(await use(sidecar, token)).toBe(401)
    expect(await use(sidecar, kept)).toBe(200)
  })

  it.concurrent('H147 after tokens.offline_grace known tokens are not answered for, and work again when it heals', async () => {
    const { network, other, sidecar } = await startBed({ tokens: { offline_grace: '60s' } })
    const known = await other.token()
    expect(await use(sidecar, known)).toBe(200)
    network.stall()
    await until(async () => (await ready(sidecar)).status === 503)
    await sidecar.clock.advance(40_000)
    expect(await use(sidecar, known)).toBe(200)
    await sidecar.clock.advance(20_000)
    expectUnavailable(await bounded(() => sidecar.request({ token: known })))
    network.heal()
    await accepted(sidecar, known)
  })

  it.concurrent('H139 windows count locally meanwhile, with a metric and one line in the log', async () => {
    const limits = { store: 'shared', api: { requests: 1_000 } }
    const { network, other, sidecar } = await startBed({ limits: { ...limits, oauth: { requests: 1_000 } } })
    const token = await other.token()
    expect(await use(sidecar, token)).toBe(200)
    network.stall()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => bounded(() => sidecar.request({ token }))),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await sidecar.metric('postern_rate_fallback_total')).toBeGreaterThanOrEqual(20)
    expect(logged(sidecar, 'rate limits: each sidecar counts alone')).toBe(1)
    expect(sidecar.logLines().filter((line) => line.includes('"stack"'))).toEqual([])
    network.heal()
    await until(async () => (await ready(sidecar)).status === 200)
    const before = await sidecar.metric('postern_rate_fallback_total')
    expect(await use(sidecar, token)).toBe(200)
    expect(await sidecar.metric('postern_rate_fallback_total')).toBe(before)
    expect(logged(sidecar, 'rate limits: the sidecars share their windows again')).toBe(1)
  })
})
