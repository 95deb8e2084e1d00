import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { connect } from '../support/client.ts'
import { type Device, startDevice } from '../support/device.ts'
import type { Exchange } from '../support/message.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis } from '../support/redis.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { prepareSite, type Served, type Site } from './serve.ts'
import { type Held, holdResponses } from './streams.ts'

const CLEAN = { code: 0, signal: null }

interface Fleet {
  readonly url: string
  readonly device: Device
  readonly sites: readonly Site[]
  readonly sidecars: readonly [Served, Served, Served]
}

/** Starts three sidecars on one address, each with a state folder and an admin address of its own. */
async function startFleet(): Promise<Fleet> {
  const device = await startDevice()
  const address = `127.0.0.1:${await unusedPort()}`
  needs('redis-server')
  const { at } = await startRedis()
  const config = {
    listen: { address, reuse_port: true },
    tokens: { store: `valkey://${at}` },
    public_paths: ['/public/', '/events/'],
    shutdown_grace: '1m',
    upstream: { max_streams: 1000 },
  }
  const sites = await Promise.all([1, 2, 3].map(() => prepareSite({ device, config })))
  const [first, second, third] = await Promise.all(sites.map((site) => site.serve()))
  if (first === undefined || second === undefined || third === undefined) return expect.fail('three sites')
  return { url: `http://${address}`, device, sites, sidecars: [first, second, third] }
}

const open = (sidecar: Served): Promise<number> => sidecar.metric('postern_connections')

/** Opens connections, each with a response that the device has begun. */
async function openStreams(url: string, held: Held, paths: readonly string[]): Promise<readonly Exchange[]> {
  const exchanges = await Promise.all(
    paths.map(async (path) => {
      const exchange = (await connect({ transport: 'http1', url })).start({ path })
      await exchange.waitFor('first piece')
      return exchange
    }),
  )
  expect(held.size).toBeGreaterThanOrEqual(paths.length)
  return exchanges
}

/** The status of a request on a connection of its own, repeated once if the connection breaks. */
async function askTwice(url: string): Promise<string> {
  const ask = async (): Promise<string> => {
    const connection = await connect({ transport: 'http1', url })
    try {
      return String((await connection.send({ path: '/public/' })).status)
    } finally {
      connection.close()
    }
  }
  return ask().catch(() => ask().catch(String))
}

const paths = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `/events/${name}/${i}`)

describe('H141 three sidecars on one address, by listen.reuse_port', () => {
  let fleet: Fleet | undefined

  beforeAll(async () => {
    if (isInstalled('redis-server')) fleet = await startFleet()
  })

  function running(): Fleet {
    needs('redis-server')
    return fleet ?? expect.fail('beforeAll starts it')
  }

  it('share its connections', async () => {
    const { url, sidecars } = running()
    const connections = await Promise.all(
      Array.from({ length: 200 }, () => connect({ transport: 'http1', url })),
    )
    const answered = await Promise.all(connections.map((connection) => connection.send({ path: '/public/' })))
    expect(answered.filter(({ status }) => status !== 200)).toEqual([])
    const counts = await Promise.all(sidecars.map(open))
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(200)
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  it('accept the tokens of each other', async () => {
    const { sidecars } = running()
    for (const { grant } of sidecars) {
      const { access_token } = await grant()
      const statuses = await Promise.all(Array.from({ length: 20 }, () => sidecars[0].use(access_token)))
      expect(new Set(statuses)).toEqual(new Set([200]))
    }
  })

  it('are no problem for `check`', async () => {
    const { url, sites } = running()
    const checked = await sites[0]?.postern('check')
    const line = `ok      listen.address: ${url.slice('http://'.length)} is shared with programs of the same user`
    expect([checked?.code, checked?.stdout]).toEqual([0, expect.stringContaining(line)])
  })

  it('keep out one that does not set it', async () => {
    const { url, device } = running()
    const site = await prepareSite({ device, config: { listen: { address: url.slice('http://'.length) } } })
    const refused = site.launch()
    expect(await refused.exit).toEqual({ code: 1, signal: null })
    expect(await refused.stderr).toContain('the port is in use by programs that share it (EADDRINUSE)')
  })

  it('are restarted one after the other without a failed request, for clients that retry', async () => {
    const { url, sites, sidecars } = running()
    let restarting = true
    const outcomes = new Map<string, number>()
    const clients = Array.from({ length: 10 }, async () => {
      while (restarting) {
        const outcome = await askTwice(url)
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        await pause(20)
      }
    })
    for (const [i, site] of sites.entries()) {
      expect(await sidecars[i]?.stop()).toEqual(CLEAN)
      await site.serve()
    }
    restarting = false
    await Promise.all(clients)
    expect([...outcomes.keys()]).toEqual(['200'])
  })
})

describe('H141 three sidecars on one address, when one leaves', () => {
  it('go on when one drains: it finishes what it has, and the others get what is new', async () => {
    const { url, device, sidecars } = await startFleet()
    const held = holdResponses(device)
    const before = await openStreams(url, held, paths('before', 60))
    const [leaving, ...others] = sidecars
    const own = await open(leaving)
    expect(own).toBeGreaterThan(0)
    leaving.signal('SIGTERM')
    await expect.poll(() => leaving.ready(), { interval: 10 }).toBe(503)
    const after = await openStreams(url, held, paths('after', 60))
    expect(await open(leaving)).toBe(own)
    expect((await Promise.all(others.map(open))).reduce((sum, count) => sum + count, 0)).toBe(120 - own)
    for (const response of held.values()) response.end('last piece')
    for (const { response } of [...before, ...after]) {
      expect((await response).text).toBe('first piece\nlast piece')
    }
    expect(await leaving.exit).toEqual(CLEAN)
  })

  it('go on when one is killed: only its own connections break', async () => {
    const { url, device, sidecars } = await startFleet()
    const held = holdResponses(device)
    const streams = await openStreams(url, held, paths('before', 60))
    const [dying, ...others] = sidecars
    const own = await open(dying)
    const ended = Promise.allSettled(streams.map(({ response }) => response))
    await dying.kill()
    await openStreams(url, held, paths('after', 60))
    expect((await Promise.all(others.map(open))).reduce((sum, count) => sum + count, 0)).toBe(120 - own)
    for (const response of held.values()) response.end('last piece')
    expect((await ended).filter(({ status }) => status === 'rejected')).toHaveLength(own)
  })
})
