import { beforeEach, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'

beforeEach(() => needs('redis-server'))

const REQUESTS = 200
/** Fewer than the connections that a client may have. */
const TOGETHER = 20

/** A sidecar that knows a token of another one, and a request with it. */
async function startBed(server: RedisServer, limits: YamlPart): Promise<[TestSidecar, readonly string[]]> {
  const tokens = { store: `valkey://${server.at}` }
  const config = { tokens, limits: { api: { requests: 1_000_000 }, ...limits } }
  const [issuer, sidecar] = await Promise.all([startSidecar({ config }), startSidecar({ config })])
  const token = await issuer.token()
  expect((await sidecar.request({ token })).status).toBe(200)
  return [sidecar, ['Authorization', `Bearer ${token}`]]
}

/** A counter of the server. */
async function counter(server: RedisServer, pattern: RegExp): Promise<number> {
  return Number(pattern.exec(await server.command('INFO', 'all'))?.[1] ?? 0)
}

async function askEach(sidecar: TestSidecar, fields: readonly string[]): Promise<void> {
  const connection = await sidecar.connect()
  for (let i = 0; i < REQUESTS; i += 1) expect((await connection.send({ fields })).status).toBe(200)
}

it('H143 requests with a known token cost the shared store nothing', async () => {
  const server = await startRedis()
  const [sidecar, fields] = await startBed(server, { store: 'local' })
  const commands = (): Promise<number> => counter(server, /^cmdstat_evalsha:calls=(\d+)/m)
  const before = await commands()
  await askEach(sidecar, fields)
  // The sidecars look at the state, and after some tokens, every few seconds.
  expect((await commands()) - before).toBeLessThan(REQUESTS / 4)
})

it('H143 with shared windows a request costs one command, and requests that arrive together share it', async () => {
  const server = await startRedis()
  const [sidecar, fields] = await startBed(server, { store: 'shared' })
  const commands = (): Promise<number> => counter(server, /^cmdstat_evalsha:calls=(\d+)/m)
  const before = await commands()
  await askEach(sidecar, fields)
  const alone = (await commands()) - before
  expect(alone).toBeGreaterThanOrEqual(REQUESTS)
  expect(alone).toBeLessThan(REQUESTS * 1.25)
  const connections = await Promise.all(Array.from({ length: TOGETHER }, () => sidecar.connect()))
  const together = (): Promise<number[]> =>
    Promise.all(connections.map(async (connection) => (await connection.send({ fields })).status))
  // The sidecar accepts a connection a turn.
  await together()
  const between = await commands()
  // Written in one turn of the loop that the sidecar runs in, too: they all wait when it reads next.
  expect(await together()).toEqual(Array(TOGETHER).fill(200))
  expect((await commands()) - between).toBeLessThan(TOGETHER / 2)
})
