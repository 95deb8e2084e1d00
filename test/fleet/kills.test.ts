import { beforeAll, describe, expect, it } from 'vitest'
import type { Served } from '../process/serve.ts'
import { startDevice } from '../support/device.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import type { Tokens } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { type Fleet, oneOf, pause, report, startFleet, statusesOf, tryLogin, tryRefresh } from './fleet.ts'

let fleet: Fleet
let server: RedisServer

beforeAll(async () => {
  if (!isInstalled('redis-server')) return
  // Without `always`, the server may answer before it has written.
  server = await startRedis({ settings: ['appendonly yes', 'appendfsync always'] })
  fleet = await startFleet({
    device: await startDevice(),
    url: `valkey://${server.at}`,
    config: { tokens: { rotate_refresh: true, refresh_grace: '5m' } },
  })
})

/** How long clients log in while members are killed (ms). */
const LASTS = 6_000

describe('kill -9 of any member of a fleet', () => {
  it('H144 loses no token whose response has arrived, whichever sidecar or server is killed', async () => {
    needs('redis-server')
    const { sites, sidecars } = fleet
    const access: string[] = []
    const lastRefresh: Tokens[] = []
    const until = performance.now() + LASTS
    let falselyRefused = 0

    async function client(): Promise<void> {
      let tokens: Tokens | undefined
      while (performance.now() < until) {
        const sidecar = oneOf(sidecars)
        const before: Tokens | undefined = tokens
        // Rotation: after a lost response the client presents the same token again (C6).
        const next: Tokens | undefined =
          before === undefined ? await tryLogin(sidecar) : await tryRefresh(sidecar, before.refresh_token)
        if (next === undefined) {
          await pause(10)
          continue
        }
        access.push(next.access_token)
        if (before === undefined) tokens = next
        else if (Math.random() < 0.5) {
          lastRefresh.push(next)
          tokens = undefined
        } else tokens = next
        const status = await oneOf(sidecars)
          .use(oneOf(access))
          .catch(() => 0)
        if (status === 401) falselyRefused += 1
      }
      if (tokens !== undefined) lastRefresh.push(tokens)
    }

    let kills = 0
    async function killSidecars(): Promise<void> {
      while (performance.now() < until) {
        const index = Math.floor(Math.random() * sites.length)
        await pause(Math.random() * 300)
        await (sidecars[index] as Served).kill()
        sidecars[index] = await (sites[index] as Fleet['sites'][number]).serve()
        kills += 1
      }
    }
    async function killServer(): Promise<void> {
      while (performance.now() < until) {
        await pause(300 + Math.random() * 900)
        await server.restart()
        kills += 1
      }
    }
    await Promise.all([killSidecars(), killServer(), ...Array.from({ length: 6 }, client)])
    for (const sidecar of sidecars) await expect.poll(sidecar.ready).toBe(200)

    report('killed', `${kills} members, ${access.length} access tokens, ${lastRefresh.length} refresh tokens`)
    expect(kills).toBeGreaterThan(2)
    expect(access.length).toBeGreaterThan(20)
    expect(falselyRefused).toBe(0)
    expect(await statusesOf(sidecars, access)).toEqual([200])
    for (const { refresh_token: token } of lastRefresh)
      expect((await oneOf(sidecars).refresh(token)).status).toBe(200)
  })
})
