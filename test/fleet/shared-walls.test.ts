import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { type Device, startDevice } from '../support/device.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'

beforeEach(() => needs('redis-server'))

/** A device that goes away at the fifth connection, and counts them. */
async function startFragile(port?: number) {
  const device = await startDevice(
    (_request, response) => setTimeout(() => response.end('ok'), 5),
    port === undefined ? {} : { port },
  )
  const seen = { device, most: 0, away: undefined as Promise<void> | undefined }
  device.server.on('connection', () => {
    seen.most = Math.max(seen.most, device.openConnections)
    if (device.openConnections > 4) seen.away ??= device.stop()
  })
  return seen
}

interface Place {
  readonly limit: number
  readonly wall: string | null
  readonly fleet: number | null
}

async function placeOf(sidecar: TestSidecar): Promise<Place> {
  const { places } = (await control(join(sidecar.directory, 'state'), {
    method: 'GET',
    path: '/status',
  })) as {
    places: readonly Place[] // `PlacesCondition`
  }
  return places[0] ?? { limit: 0, wall: null, fleet: null }
}

function start(redis: RedisServer, device: Pick<Device, 'url'>, stateDir?: string): Promise<TestSidecar> {
  const tokens = { store: `valkey://127.0.0.1:${redis.port}` }
  const config = { tokens, store: { timeout: '5s' }, ...(stateDir && { state_dir: stateDir }) }
  return startSidecar({ device, config })
}

/** Eight clients of each sidecar ask until `end` is called. */
async function load(sidecars: readonly TestSidecar[]) {
  let asks = true
  let answered = 0
  const clients = await Promise.all(
    sidecars.map(async (sidecar) => {
      const token = await sidecar.token()
      return Array.from({ length: 8 }, async () => {
        while (asks) if ((await sidecar.request({ token })).status === 200) answered += 1
      })
    }),
  )
  return {
    /** Waits until so many more requests were answered. */
    async answers(count: number): Promise<void> {
      const until = answered + count
      await expect.poll(() => answered, { timeout: 20_000 }).toBeGreaterThanOrEqual(until)
    },
    async end(): Promise<void> {
      asks = false
      await Promise.all(clients.flat())
    },
  }
}

describe('two sidecars at a device that breaks at the fifth connection', () => {
  it('H300 H301 H302 break it once: they share the wall, over an outage of the store and a restart, until it is lifted', async () => {
    const redis = await startRedis()
    const fragile = await startFragile()
    const port = Number(new URL(fragile.device.url).port)
    const sidecars = await Promise.all([start(redis, fragile.device), start(redis, fragile.device)])
    const [one, two] = sidecars as [TestSidecar, TestSidecar]
    const limits = async () => (await Promise.all(sidecars.map(placeOf))).map(({ limit }) => limit)
    const clients = await load(sidecars)
    await expect.poll(() => fragile.away !== undefined, { timeout: 20_000 }).toBe(true)
    await fragile.away
    for (const each of sidecars)
      await expect.poll(() => placeOf(each), { timeout: 20_000 }).toMatchObject({ wall: 'broke' })
    expect((await limits()).reduce((sum, limit) => sum + limit, 0)).toBeLessThanOrEqual(4)
    const { fleet: sum } = await placeOf(one)
    expect(sum).toBeGreaterThanOrEqual(2)
    expect(sum).toBeLessThanOrEqual(4)

    const again = await startFragile(port)
    await clients.answers(200)
    await redis.kill()
    await expect.poll(() => one.metric('postern_store_up')).toBe(0)
    await clients.answers(50)
    await clients.end()
    expect([again.most <= 4, again.away]).toEqual([true, undefined])

    await two.stop()
    const stateDir = join(two.directory, 'state')
    expect(JSON.parse(readFileSync(join(stateDir, 'ceilings.json'), 'utf8'))).toMatchObject({
      '': { wall: { kind: 'broke', fleet: { sum } } },
    })
    const restarted = await start(redis, again.device, stateDir)
    expect(await restarted.metric('postern_upstream_limit')).toBeLessThanOrEqual(4)

    await control(join(one.directory, 'state'), { method: 'POST', path: '/retry' })
    await redis.restart()
    await expect.poll(() => restarted.metric('postern_store_up'), { timeout: 20_000 }).toBe(1)
    const lifted = async () =>
      JSON.parse(readFileSync(join(stateDir, 'ceilings.json'), 'utf8'))['']?.wall ?? 'none'
    await expect.poll(lifted, { timeout: 20_000 }).toBe('none')
    expect((await placeOf(one)).wall).toBeNull()
  })
})
