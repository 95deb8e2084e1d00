import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { digestToken } from '../../src/tokens/mint.ts'
import { limitsOf } from '../support/expectations.ts'
import { type RedisServer, startRedis, until } from '../support/redis.ts'
import { FORM_TYPE, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { passing, passWhile } from './passing.ts'
import { startNetwork } from './stalled-network.ts'

beforeEach(() => needs('redis-server'))

const LOST = 'it was emptied, or restored from a backup'
const LOST_TOKENS = 'it has lost tokens of live grants'

// So long that a busy machine is not taken for a server that does not reply.
function start(port: number, config: YamlPart = {}, timeout = 30_000): Promise<TestSidecar> {
  const tokens = { store: `valkey://127.0.0.1:${port}` }
  const paths = { oauth: { revocation_path: '/oauth/revoke' } }
  return startSidecar({ config: { ...paths, ...config, tokens }, bounds: { store: { timeout } } })
}

interface Bed {
  readonly server: RedisServer
  readonly one: TestSidecar
  readonly two: TestSidecar
}

async function startBed(config: YamlPart = {}): Promise<Bed> {
  const server = await startRedis()
  const [one, two] = await Promise.all([start(server.port, config), start(server.port, config)])
  return { server, one, two }
}

/** Another program fills the server, which removes these keys of the device, or deletes them. */
async function lose(server: RedisServer, pattern: string): Promise<void> {
  const keys = await server.command('--raw', 'KEYS', `{postern}:${pattern}`)
  await server.command('DEL', ...keys.split('\n'))
}

const use = async (sidecar: TestSidecar, token: string): Promise<number> =>
  (await sidecar.request({ token })).status

async function refresh(sidecar: TestSidecar, refreshToken: string): Promise<number> {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken }
  return (await sidecar.postToken(form)).status
}

async function revokeToken(sidecar: TestSidecar, token: string): Promise<number> {
  const fields = ['Content-Type', FORM_TYPE]
  const request = { method: 'POST', path: '/oauth/revoke', body: `token=${token}`, fields }
  return (await sidecar.request(request)).status
}

/** As `postern revoke`. Rejects while the store cannot revoke. */
const revoke = (sidecar: TestSidecar, which: object): Promise<unknown> =>
  control(join(sidecar.directory, 'state'), { method: 'POST', path: '/revoke', command: which })

const logged = (sidecar: TestSidecar, text: string): number =>
  sidecar.logLines().filter((line) => line.includes(text)).length

const lossesOf = (sidecar: TestSidecar): Promise<number> =>
  sidecar.metric('postern_store_errors_total', { store: 'shared', operation: 'lost' })

/** The sidecars look after some tokens every ten seconds. */
async function passTenSeconds({ one, two }: Bed): Promise<void> {
  for (const { clock } of [one, two]) await clock.advance(10_000)
}

describe('a server that another program fills or empties', () => {
  it.concurrent('H277 a revocation ends all tokens of a grant whose list is lost', async () => {
    const { server, one, two } = await startBed()
    const [byToken, byClient] = [await one.grant(), await one.grant()]
    const more = await one.refresh(byToken.refresh_token)
    await lose(server, 'g:*')
    expect(await revokeToken(one, byToken.access_token)).toBe(200)
    await revoke(one, { client: '127.0.0.1' })
    for (const { access_token } of [byToken, byClient, more])
      for (const each of [one, two])
        await until(passing([each], async () => (await use(each, access_token)) === 401))
    for (const { refresh_token } of [byToken, byClient]) expect(await refresh(two, refresh_token)).toBe(400)
  })

  it.concurrent.each(['grants', 'state', '*'])(
    'H133 H277 that loses %s: every client logs in again, at every sidecar, which says so',
    async (keys) => {
      const { server, one, two } = await startBed()
      const known = await one.grant()
      const refreshed = await two.refresh(known.refresh_token)
      for (const token of [known.access_token, refreshed.access_token])
        for (const each of [one, two]) expect(await use(each, token)).toBe(200)
      await lose(server, keys)
      // A login notices it at once.
      await two.token()
      for (const token of [known.access_token, refreshed.access_token])
        for (const each of [one, two])
          await until(passing([each], async () => (await use(each, token)) === 401))
      expect(await refresh(two, known.refresh_token)).toBe(400)
      const fresh = await two.token()
      for (const each of [one, two])
        await until(passing([each], async () => (await use(each, fresh)) === 200))
      await until(passing([one, two], async () => logged(one, LOST) + logged(two, LOST) > 0))
    },
  )

  it.concurrent('H277 a revocation at a server that was emptied fails until an epoch has begun there', async () => {
    const { server, one, two } = await startBed()
    const { access_token } = await two.grant()
    await server.command('FLUSHALL')
    const statuses = new Set<number>()
    await until(
      passing([one, two], async () => {
        statuses.add(await revokeToken(one, access_token))
        return (await use(two, access_token)) === 401
      }),
    )
    expect([...statuses].every((status) => status === 500 || status === 200)).toBe(true)
    for (const each of [one, two]) expect(await use(each, access_token)).toBe(401)
  })

  it.concurrent('H133 a sidecar that is cut off meanwhile accepts no token from before the loss', async () => {
    const server = await startRedis()
    const network = await startNetwork(server.port)
    const [one, two] = await Promise.all([start(server.port), start(network.port, {}, 1_000)])
    const [revoked, known] = [await one.token(), await one.token()]
    for (const token of [revoked, known])
      await until(passing([two], async () => (await use(two, token)) === 200))
    network.stall()
    expect(await revokeToken(one, revoked)).toBe(200)
    await server.command('FLUSHALL')
    const fresh = await one.token()
    await until(passing([one], async () => logged(one, LOST) === 1))
    expect(await use(two, known)).toBe(200)
    network.heal()
    // Its question may still wait for a reply that was lost.
    const used = (each: TestSidecar, token: string): Promise<number> => passWhile([each], use(each, token))
    for (const token of [revoked, known]) await until(async () => (await used(two, token)) === 401)
    for (const each of [one, two]) await until(async () => (await used(each, fresh)) === 200)
  })

  it.concurrent('H133 H277 a sidecar notices that the stream of revocations began anew behind its last entry', async () => {
    const { server, one, two } = await startBed()
    const [missed, kept] = [await one.grant(), await one.grant()]
    for (const each of [one, two])
      for (const { access_token } of [missed, kept]) expect(await use(each, access_token)).toBe(200)
    // Between two questions of the sidecars for entries, a grant is revoked, its entry is lost, and another one comes.
    const script = `
      local grant = string.match(redis.call('GET', '{postern}:t:' .. ARGV[1]), '^%S+ %S+ (%S+)')
      redis.call('DEL', '{postern}:g:' .. grant, '{postern}:events')
      redis.call('ZREM', '{postern}:grants', grant)`
    const digest = digestToken(missed.access_token)
    await server.command('EVAL', script, '0', digest)
    await revoke(one, { grant: 'another' })
    for (const each of [one, two])
      await until(passing([each], async () => (await use(each, missed.access_token)) === 401))
    for (const each of [one, two]) expect(await use(each, kept.access_token)).toBe(200)
  })

  it.concurrent('H276 that loses windows lifts no limit, and the log and a metric say so', async () => {
    const limits = { store: 'shared', api: { requests: 10, window: '1h' } }
    const { server, one } = await startBed({ limits })
    const ask = (): Promise<number> => one.request().then(({ status }) => status)
    for (let i = 0; i < 4; i += 1) expect(await ask()).toBe(401)
    const { reset } = limitsOf(await one.request())
    await lose(server, 'w:*')
    for (let i = 5; i < 8; i += 1) expect(await ask()).toBe(401)
    await lose(server, 'w:*')
    expect(limitsOf(await one.request())).toMatchObject({ limit: 10, remaining: 1 })
    expect(await ask()).toBe(401)
    const refused = await one.request()
    expect(refused.status).toBe(429)
    expect(Math.abs(limitsOf(refused).reset - reset)).toBeLessThanOrEqual(1)
    expect(logged(one, 'the shared store has lost windows')).toBe(1)
    expect(await lossesOf(one)).toBe(2)
    await one.clock.leap(3_600_000)
    await until(passing([one], async () => (await one.request()).status === 401))
  })

  it.concurrent('H277 that loses the tokens of a login says so, and the login is over at every sidecar', async () => {
    const bed = await startBed()
    const { server, one, two } = bed
    const [lost, kept] = [await one.grant(), await two.grant()]
    for (const each of [one, two])
      for (const { access_token } of [lost, kept]) expect(await use(each, access_token)).toBe(200)
    await server.command('DEL', ...keysOf(lost))
    await passTenSeconds(bed)
    await until(passing([one, two], async () => logged(one, LOST_TOKENS) + logged(two, LOST_TOKENS) === 1))
    expect((await lossesOf(one)) + (await lossesOf(two))).toBe(1)
    for (const each of [one, two]) {
      await until(passing([each], async () => (await use(each, lost.access_token)) === 401))
      expect(await use(each, kept.access_token)).toBe(200)
    }
  })

  it.concurrent('H277 a revocation by client ends what only a sidecar still knows', async () => {
    const { server, one, two } = await startBed()
    const lost = await one.grant()
    for (const each of [one, two]) expect(await use(each, lost.access_token)).toBe(200)
    await server.command('DEL', ...keysOf(lost))
    await revoke(two, { client: '127.0.0.1' })
    for (const each of [one, two])
      await until(passing([each], async () => (await use(each, lost.access_token)) === 401))
  })
})

describe('a server whose clock was set back by 56 years', () => {
  it.concurrent('H278 leaves the tokens that it issued before no more than their lifetimes', async () => {
    const bed = await startBed()
    const { server, one } = bed
    const early = await one.grant()
    // As it looks after the step: the login is in the future, and so are the ends of its tokens.
    const script = `
      for _, key in ipairs(KEYS) do
        local kind, epoch, grant, client, granted = string.match(redis.call('GET', key), '^(%S+) (%S+) (%S+) (%S+) (%S+)')
        local future = string.format('%.0f', granted + 1767225600000)
        redis.call('SET', key, table.concat({kind, epoch, grant, client, future}, ' '), 'PX', 1767225600000)
        redis.call('ZADD', '{postern}:g:' .. grant, future, kind .. string.match(key, '[^:]+$'))
        redis.call('ZADD', '{postern}:grants', future, grant)
      end`
    const keys = keysOf(early)
    await server.command('EVAL', script, String(keys.length), ...keys)
    await passTenSeconds(bed)
    const [ofAccess = '', ofRefresh = ''] = keys
    const left = async (key: string): Promise<number> => Number(await server.command('PTTL', key))
    await until(async () => (await left(ofAccess)) <= 3_600_000 && (await left(ofRefresh)) <= 604_800_000)
    expect(await left(ofAccess)).toBeGreaterThan(3_500_000)
    expect(await refresh(one, early.refresh_token)).toBe(200)
    expect(logged(one, LOST_TOKENS)).toBe(0)
  })
})

const keysOf = ({ access_token, refresh_token }: { access_token: string; refresh_token: string }) =>
  [access_token, refresh_token].map((token) => `{postern}:t:${digestToken(token)}`)
