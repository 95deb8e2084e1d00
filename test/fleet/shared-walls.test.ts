import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { passing, passWhile } from './passing.ts'

beforeEach(() => needs('redis-server'))

/** A device that goes away at the fifth connection, and counts them. */
async function startFragile(clock: MovableClock) {
  const device = await startDevice((_request, response) => clock.after(5, () => response.end('ok')))
  const seen = { device, most: 0 }
  device.server.on('connection', () => {
    seen.most = Math.max(seen.most, device.openConnections)
    if (device.openConnections > 4) void device.stop()
  })
  return seen
}

/** A state folder of a sidecar that has broken the device with its fifth request. */
function stateAfterCrash({ url }: Pick<Device, 'url'>): string {
  const stateDir = join(temporaryDirectory(), 'state')
  mkdirSync(stateDir, { mode: 0o700 })
  const wall = { places: 4 }
  writeFileSync(join(stateDir, 'ceilings.json'), JSON.stringify({ '': { device: `${url} 1-64`, wall } }))
  return stateDir
}

/** What a sidecar knows to have broken the device, as it keeps it. */
function wallIn(stateDir: string): unknown {
  const path = join(stateDir, 'ceilings.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8'))['']?.wall : undefined
}

function start(
  clock: MovableClock,
  redis: RedisServer,
  device: Pick<Device, 'url'>,
  stateDir: string,
): Promise<TestSidecar> {
  const tokens = { store: `valkey://127.0.0.1:${redis.port}` }
  return startSidecar({
    clock,
    device,
    config: { tokens, state_dir: stateDir },
    bounds: { store: { timeout: 30_000 } },
  })
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
      await expect.poll(passing(sidecars, () => answered)).toBeGreaterThanOrEqual(until)
    },
    async end(): Promise<void> {
      asks = false
      await passWhile(sidecars, Promise.all(clients.flat()))
    },
  }
}

describe('two sidecars at a device that breaks at the fifth connection', () => {
  it('H286 H287 H288 H290 share its wall, over an outage of the store and a restart, until it is lifted', async () => {
    const redis = await startRedis()
    const clock = stillClock()
    const fragile = await startFragile(clock)
    const folders = [stateAfterCrash(fragile.device), join(temporaryDirectory(), 'state')] as const
    const [first, second] = folders
    const sidecars = [
      await start(clock, redis, fragile.device, first),
      await start(clock, redis, fragile.device, second),
    ]
    const [one, two] = sidecars as [TestSidecar, TestSidecar]
    // The store was not emptied: it has always known the shares.
    const [key = ''] = (await redis.command('KEYS', '*p:*')).split('\n').sort((a, b) => a.length - b.length)
    await redis.command('HSET', key, 'since', '1')
    const wall = { places: 4, fleet: expect.any(Number) }
    await expect.poll(passing([one], () => folders.map(wallIn))).toEqual([wall, wall])

    const clients = await load(sidecars)
    await clients.answers(60)
    const limits = () => Promise.all(sidecars.map((each) => each.metric('postern_upstream_limit')))
    await expect.poll(passing(sidecars, limits)).toEqual([2, 2])
    await redis.kill()
    await expect.poll(passing([one], () => one.metric('postern_store_up'))).toBe(0)
    await clients.answers(20)
    await clients.end()
    expect(fragile.most).toBeLessThanOrEqual(4)

    await two.stop()
    expect(wallIn(second)).toEqual(wall)
    const restarted = await start(clock, redis, fragile.device, second)
    expect([wallIn(second), await restarted.metric('postern_upstream_limit')]).toEqual([wall, 1])

    await control(first, { method: 'POST', path: '/retry' })
    await redis.restart()
    await expect.poll(passing([restarted], () => restarted.metric('postern_store_up'))).toBe(1)
    await expect.poll(passing([one], () => folders.map(wallIn))).toEqual([undefined, undefined])
  })
})
