import { beforeEach, describe, expect, it } from 'vitest'
import { type Served, tokensOf } from '../process/serve.ts'
import { startDevice } from '../support/device.ts'
import { type RedisCluster, startCluster } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { type Fleet, report, startFleet, statusesOf } from './fleet.ts'

let fleet: Fleet
let cluster: RedisCluster

beforeEach(async () => {
  needs('redis-server')
  cluster = await startCluster()
  fleet = await startFleet({
    device: await startDevice(),
    url: `valkey+cluster://${cluster.nodes.map(({ at }) => at).join(',')}`,
    config: { store: { replicas: 0 }, tokens: { rotate_refresh: true } },
  })
})

describe('a cluster of three', () => {
  it('H146 serves logins, refreshes and revocations, and another node may end', async () => {
    const { sidecars } = fleet
    const [one, two, three] = sidecars as [Served, Served, Served]
    const first = tokensOf(await one.login())
    const second = tokensOf(await two.refresh(first.refresh_token))
    expect(await statusesOf(sidecars, [first.access_token, second.access_token])).toEqual([200])
    await cluster.others[0]?.kill()
    const third = tokensOf(await three.refresh(second.refresh_token))
    expect(await statusesOf(sidecars, [third.access_token])).toEqual([200])
    const start = performance.now()
    await three.revoke({ all: true })
    await expect.poll(() => statusesOf(sidecars, [third.access_token])).toEqual([401])
    report('revoked in a cluster', `${Math.round(performance.now() - start)} ms`)
  })

  it('H146 known tokens work while the node of the keys is gone, and everything works when it is back', async () => {
    const { sidecars } = fleet
    const [one, two] = sidecars as [Served, Served]
    const { access_token: known } = tokensOf(await one.login())
    const { access_token: unknown } = tokensOf(await one.login())
    expect(await two.use(known)).toBe(200)
    await cluster.owner.kill()
    expect(await two.use(known)).toBe(200)
    expect((await two.request({ token: unknown })).status).toBe(500)
    expect((await two.login()).status).toBe(500)
    await cluster.owner.restart()
    for (const sidecar of sidecars) await expect.poll(async () => (await sidecar.login()).status).toBe(200)
    expect(await two.use(known)).toBe(200)
  })
})
