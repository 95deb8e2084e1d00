import { beforeEach, describe, expect, it } from 'vitest'
import { broken, holdResponses } from '../process/streams.ts'
import { send } from '../support/client.ts'
import type { Response } from '../support/message.ts'
import { type RedisServer, startRedis, until } from '../support/redis.ts'
import { PASSWORD_GRANT, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { openWebSocket } from '../support/websocket.ts'
import { report } from './fleet.ts'
import { passing, passWhile } from './passing.ts'
import { type Network, startNetwork } from './stalled-network.ts'

beforeEach(() => needs('redis-server'))

const TIMEOUT = 2_000
/** What a reply, or a session that begins anew, needs besides the time-outs (ms). */
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
  for (const each of [other, sidecar])
    await until(passing([each], async () => (await ready(each)).status === 200))
  return { server, network, other, sidecar }
}

/** Checks that what is asked of the sidecar during a stall is answered at the time-out. */
async function bounded<T>({ clock }: TestSidecar, asking: Promise<T>): Promise<T> {
  const start = clock.monotonic()
  const answer = await passWhile([{ clock }], asking)
  const passed = clock.monotonic() - start
  expect(passed).toBeGreaterThanOrEqual(TIMEOUT)
  expect(passed).toBeLessThan(TIMEOUT + MARGIN)
  return answer
}

/** No time passes, so it waits for no deadline. */
const use = async (sidecar: TestSidecar, token: string): Promise<number> =>
  (await sidecar.request({ token })).status
const logIn = (sidecar: TestSidecar): Promise<Response> => sidecar.postToken(PASSWORD_GRANT)
const ready = async ({ adminUrl: url }: TestSidecar): Promise<Response> =>
  send({ transport: 'http1', url, path: '/readyz' })
const logged = (sidecar: TestSidecar, text: string): number =>
  sidecar.logLines().filter((line) => line.includes(text)).length

/** Waits until the sidecar accepts the token. Until then it may say that it cannot tell, but not that the token is invalid. */
function accepted(sidecar: TestSidecar, token: string, unavailable = 500): Promise<void> {
  const look = async (): Promise<boolean> => {
    const status = await use(sidecar, token)
    expect([200, unavailable]).toContain(status)
    return status === 200
  }
  return until(passing([sidecar], look))
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
      const answers = Promise.all([
        ...strangers.map((token) => sidecar.request({ token })),
        ...[1, 2].map(() => logIn(sidecar)),
      ])
      for (let i = 0; i < 20; i++) expect(await use(sidecar, known)).toBe(200)
      for (const answer of await bounded(sidecar, answers)) expectUnavailable(answer, status)
      expect(await use(sidecar, known)).toBe(200)
      await until(passing([sidecar], async () => (await ready(sidecar)).status === 503))
      expect((await ready(sidecar)).text).toContain('the shared store does not respond')
      expect(await sidecar.metric('postern_store_up')).toBe(0)
      expect((await ready(other)).status).toBe(200)

      network.heal()
      const healing = sidecar.clock.monotonic()
      await until(passing([sidecar], async () => (await ready(sidecar)).status === 200))
      for (const token of strangers) await accepted(sidecar, token, status)
      expect((await logIn(sidecar)).status).toBe(200)
      const healed = sidecar.clock.monotonic() - healing
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
    // It has all places of its device, some seconds after its start.
    await until(passing([sidecar], () => logged(sidecar, '"limit":64') === 1))
    const { socket } = await openWebSocket(sidecar.url, { token })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    network.stall()
    const body = `token=${token}`
    const fields = ['Content-Type', 'application/x-www-form-urlencoded']
    expect((await other.request({ method: 'POST', path: '/oauth/revoke', body, fields })).status).toBe(200)
    expect(await use(other, token)).toBe(401)
    // The download keeps its place at the device, and the next request has another one.
    expect(await passWhile([sidecar], use(sidecar, token))).toBe(200)
    network.heal()
    await passWhile([sidecar], Promise.all([broken(exchange), closed]))
    expect(await use(sidecar, token)).toBe(401)
    expect(await use(sidecar, kept)).toBe(200)
  })

  it.concurrent('H147 after tokens.offline_grace known tokens are not answered for, and work again when it heals', async () => {
    const { network, other, sidecar } = await startBed({ tokens: { offline_grace: '60s' } })
    const known = await other.token()
    expect(await use(sidecar, known)).toBe(200)
    network.stall()
    await until(passing([sidecar], async () => (await ready(sidecar)).status === 503))
    await sidecar.clock.advance(40_000)
    expect(await use(sidecar, known)).toBe(200)
    await sidecar.clock.advance(20_000)
    expectUnavailable(await sidecar.request({ token: known }))
    network.heal()
    await accepted(sidecar, known)
  })

  it.concurrent('H139 windows count locally meanwhile, with a metric and one line in the log', async () => {
    const limits = { store: 'shared', api: { requests: 1_000 } }
    const { network, other, sidecar } = await startBed({ limits: { ...limits, oauth: { requests: 1_000 } } })
    const token = await other.token()
    expect(await use(sidecar, token)).toBe(200)
    network.stall()
    const answers = await bounded(
      sidecar,
      Promise.all(Array.from({ length: 20 }, () => sidecar.request({ token }))),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await sidecar.metric('postern_rate_fallback_total')).toBeGreaterThanOrEqual(20)
    expect(logged(sidecar, 'rate limits: each sidecar counts alone')).toBe(1)
    expect(sidecar.logLines().filter((line) => line.includes('"stack"'))).toEqual([])
    network.heal()
    await until(passing([sidecar], async () => (await ready(sidecar)).status === 200))
    const before = await sidecar.metric('postern_rate_fallback_total')
    expect(await use(sidecar, token)).toBe(200)
    expect(await sidecar.metric('postern_rate_fallback_total')).toBe(before)
    expect(logged(sidecar, 'rate limits: the sidecars share their windows again')).toBe(1)
  })
})
