import { beforeAll, describe, expect, it } from 'vitest'
import type { Served } from '../process/serve.ts'
import { createRandom, type Random } from '../soak/random.ts'
import { startDevice } from '../support/device.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import type { Tokens } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { type Fleet, pause, report, startFleet, statusesOf, tryLogin, tryRefresh } from './fleet.ts'

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

/** How long clients log in while members are killed (ms). On a busy machine it lasts until this many have been killed, and tokens issued. */
const LASTS = 3_000
const KILLS = 3
const ISSUED = 20

/** Decides what is killed and when, and what the clients do. `POSTERN_FLEET_SEED` repeats the seed of a run that failed. */
const SEED = Number(process.env.POSTERN_FLEET_SEED ?? Math.floor(Math.random() * 2 ** 32))

function oneOf<T>(items: readonly T[], random: Random): T {
  const [first, ...others] = items
  if (first === undefined) throw new Error('there is none')
  return random.pick([first, ...others])
}

describe('kill -9 of any member of a fleet', () => {
  it('H144 loses no token whose response has arrived, whichever sidecar or server is killed', async () => {
    needs('redis-server')
    const { sites, sidecars } = fleet
    const random = createRandom(SEED)
    const seed = `POSTERN_FLEET_SEED=${SEED}`
    const access: string[] = []
    const lastRefresh: Tokens[] = []
    const until = performance.now() + LASTS
    let kills = 0
    const lasts = (): boolean => kills < KILLS || access.length <= ISSUED || performance.now() < until
    let falselyRefused = 0

    async function client(random: Random): Promise<void> {
      let tokens: Tokens | undefined
      while (lasts()) {
        const sidecar = oneOf(sidecars, random)
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
        else if (random.below(2) === 0) {
          lastRefresh.push(next)
          tokens = undefined
        } else tokens = next
        const status = await oneOf(sidecars, random)
          .use(oneOf(access, random))
          .catch(() => 0)
        if (status === 401) falselyRefused += 1
      }
      if (tokens !== undefined) lastRefresh.push(tokens)
    }

    async function killSidecars(random: Random): Promise<void> {
      while (lasts()) {
        const index = random.below(sites.length)
        await pause(random.below(300))
        await (sidecars[index] as Served).kill()
        sidecars[index] = await (sites[index] as Fleet['sites'][number]).serve()
        kills += 1
      }
    }
    async function killServer(random: Random): Promise<void> {
      while (lasts()) {
        await pause(300 + random.below(900))
        await server.restart()
        kills += 1
      }
    }
    const clients = Array.from({ length: 6 }, () => client(random.fork()))
    await Promise.all([killSidecars(random.fork()), killServer(random.fork()), ...clients])
    for (const sidecar of sidecars) await expect.poll(sidecar.ready).toBe(200)

    report('killed', `${kills} members, ${access.length} access tokens, ${lastRefresh.length} refresh tokens`)
    expect(access.length, seed).toBeGreaterThan(ISSUED)
    expect(falselyRefused, seed).toBe(0)
    expect(await statusesOf(sidecars, access), seed).toEqual([200])
    for (const { refresh_token: token } of lastRefresh)
      expect((await oneOf(sidecars, random).refresh(token)).status, seed).toBe(200)
  })
})
