import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import type { Status } from '../../src/commands/status.ts'
import { mintToken } from '../../src/tokens/mint.ts'
import { send } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { type RedisServer, startRedis, until } from '../support/redis.ts'
import { PASSWORD, type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { passing } from './passing.ts'

const ANOTHER = 'another password'

let redis: RedisServer
let prefix = ''
let prefixes = 0
/** All sidecars of a test have one. */
let clock = stillClock()

beforeAll(async () => {
  // Compressed, a text would not be found in a DUMP.
  if (isInstalled('redis-server')) redis = await startRedis({ settings: ['rdbcompression no'] })
})
beforeEach(() => {
  needs('redis-server')
  clock = stillClock()
  prefixes += 1
  prefix = `test-${prefixes}`
})

/** As `expect.poll`, while time passes. */
const poll = <T>(look: () => T | Promise<T>) => expect.poll(passing([{ clock }], look))

function sidecar(config: SidecarOptions['config'] = {}): Promise<TestSidecar> {
  const { tokens = {}, ...rest } = config as { tokens?: object }
  const store = `valkey://${redis.at}`
  return startSidecar({ clock, config: { ...rest, tokens: { store, ...tokens }, store: { prefix } } })
}

const logIn = (at: TestSidecar, password: string) => at.postToken({ grant_type: 'password', password })

const statusOf = async (at: TestSidecar, token: string): Promise<number> =>
  (await at.request({ token })).status

describe('sidecars that share a store', () => {
  it('H128 accept the tokens of each other, after one question each', async () => {
    const [one, two] = await Promise.all([sidecar(), sidecar()])
    const token = await one.token()
    expect(await statusOf(one, token)).toBe(200)
    expect(await statusOf(two, token)).toBe(200)
    const asked = await two.metric('postern_store_duration_seconds_count')
    for (let i = 0; i < 100; i++) expect(await statusOf(two, token)).toBe(200)
    // Looks of the sidecar itself fall between: a beat a second, the state, the issued tokens.
    expect(await two.metric('postern_store_duration_seconds_count')).toBeLessThan(asked + 50)
  })

  it('C10 take no token of a device with another prefix at the same store, neither to ask nor to refresh', async () => {
    const tokens = { store: `valkey://${redis.at}` }
    const [one, other] = await Promise.all([
      sidecar(),
      startSidecar({ clock, config: { tokens, store: { prefix: `${prefix}-other` } } }),
    ])
    const { access_token, refresh_token } = await one.grant()
    expect(await statusOf(one, access_token)).toBe(200)
    expect(await statusOf(other, access_token)).toBe(401)
    const refused = await other.postToken({ grant_type: 'refresh_token', refresh_token })
    expect([refused.status, refused.json()]).toEqual([
      400,
      expect.objectContaining({ error: 'invalid_grant' }),
    ])
  })

  it('H222 log which grants an operator revokes', async () => {
    const one = await sidecar()
    const revoke = async (command: object): Promise<unknown> => {
      const request = { method: 'POST', path: '/revoke', command }
      await control(join(one.directory, 'state'), request)
      const lines = one.logLines().filter((line) => line.includes('"tokens revoked"'))
      return JSON.parse(lines.at(-1) ?? '')
    }
    const ids: string[] = []
    for (let i = 0; i < 4; i += 1) {
      await one.token()
      const { grants } = await control<Status>(join(one.directory, 'state'), {
        method: 'GET',
        path: '/status',
      })
      ids.push(...(grants ?? []).map(({ id }) => id).filter((id) => !ids.includes(id)))
    }
    const [first = '', ...others] = ids
    expect(await revoke({ grant: first })).toMatchObject({ grants: 1, reason: 'operator', ids: [first] })
    expect(others).toHaveLength(3)
    const all = { grants: 3, ids: expect.arrayContaining(others) }
    expect(await revoke({ all: true })).toMatchObject(all)
  })

  it('H129 feel a revocation anywhere at once', async () => {
    const [one, two] = await Promise.all([
      sidecar({ oauth: { revocation_path: '/oauth/revoke' } }),
      sidecar(),
    ])
    const token = await one.token()
    expect(await statusOf(two, token)).toBe(200)
    await one.request({
      method: 'POST',
      path: '/oauth/revoke',
      body: `token=${token}`,
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    })
    await poll(() => statusOf(two, token)).toBe(401)
    expect(await statusOf(one, token)).toBe(401)
  })

  it('H128 C17 serve valid tokens, also those behind the same address, while a client makes up tokens', async () => {
    const server = await startRedis()
    const config = {
      listen: { trusted_proxies: ['127.0.0.1'] },
      limits: { api: { per: 'grant' } },
      tokens: { store: `valkey://${server.at}` },
    }
    const bounds = { store: { timeout: 50_000 } }
    const [one, two] = await Promise.all([
      startSidecar({ clock, config, bounds }),
      startSidecar({ clock, config, bounds, transport: 'h2' }),
    ])
    const tokens = await Promise.all(Array.from({ length: 6 }, () => one.token()))
    const as = (client: string): string[] => ['X-Forwarded-For', client]
    const [attacker, other] = [as('192.0.2.66'), as('192.0.2.1')]
    server.freeze()
    const connections = await Promise.all(Array.from({ length: 13 }, () => two.connect()))
    const invented = connections.map(async (connection) => {
      const sent = Array.from({ length: 99 }, () => {
        const authorization = ['Authorization', `Bearer ${mintToken(randomBytes)}`]
        return connection.send({ path: '/', fields: [...authorization, ...attacker] })
      })
      // The sidecar has read all that came before this on the connection.
      expect((await connection.send({ path: '/', fields: attacker })).status).toBe(401)
      return { sent: Promise.all(sent) }
    })
    const flood = await Promise.all(invented)
    const asked = tokens.map((token, at) => two.request({ token, fields: at === 0 ? attacker : other }))
    let refused = 0
    for (const each of asked) void each.then(() => (refused += 1))
    await until(
      passing([{ clock }], async () => {
        const open = await two.metric('postern_connections')
        return open + refused >= connections.length + tokens.length
      }),
    )
    server.thaw()
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(tokens.map(() => 200))
    for (const { sent } of flood)
      expect(new Set((await sent).map(({ status }) => status))).toEqual(new Set([401]))
  })

  it.each([false, true])('C6 refresh at each other, rotating %s', async (rotate) => {
    const config = { tokens: { rotate_refresh: rotate } }
    const [one, two] = await Promise.all([sidecar(config), sidecar(config)])
    const first = await one.grant()
    const second = await two.refresh(first.refresh_token)
    expect(await statusOf(one, second.access_token)).toBe(200)
    expect(await statusOf(two, first.access_token)).toBe(200)
    expect(second.refresh_token === first.refresh_token).toBe(!rotate)
    if (rotate) expect(await one.refresh(first.refresh_token)).toEqual(second)
  })

  it('C6 revoke a grant whose spent refresh token is used again after the grace', async () => {
    const config = { tokens: { rotate_refresh: true, refresh_grace: '0s' } }
    const [one, two] = await Promise.all([sidecar(config), sidecar(config)])
    const first = await one.grant()
    const second = await two.refresh(first.refresh_token)
    expect(await statusOf(two, second.access_token)).toBe(200)
    const again = await one.postToken({ grant_type: 'refresh_token', refresh_token: first.refresh_token })
    expect(again.status).toBe(400)
    await poll(() => statusOf(two, second.access_token)).toBe(401)
  })

  it('C8 H130 revoke all tokens when one of them sees the password change', async () => {
    const [one, two] = await Promise.all([sidecar(), sidecar()])
    const token = await one.token()
    expect(await statusOf(two, token)).toBe(200)
    writeFileSync(one.passwordFile, `${ANOTHER}\n`)
    // The other one may hear of it before the first one has the store's answer.
    for (const each of [one, two]) await poll(() => statusOf(each, token)).toBe(401)
    // The other one still has the old file, so it must give nothing for it.
    await poll(async () => (await logIn(two, PASSWORD)).status).toBe(500)
    const fresh = (await logIn(one, ANOTHER)).json() as { access_token: string }
    writeFileSync(two.passwordFile, `${ANOTHER}\n`)
    await poll(async () => (await logIn(two, ANOTHER)).status).toBe(200)
    expect(await statusOf(two, fresh.access_token)).toBe(200)
    expect(await statusOf(one, fresh.access_token)).toBe(200)
  })

  it('H134 issue nothing while their password is another one, and say so', async () => {
    const [one, two] = await Promise.all([sidecar(), sidecar()])
    writeFileSync(one.passwordFile, `${ANOTHER}\n`)
    const ready = async () => (await send({ transport: 'http1', url: two.adminUrl, path: '/readyz' })).status
    await poll(ready).toBe(503)
    expect((await logIn(two, PASSWORD)).status).toBe(500)
    expect(two.logLines().filter((line) => line.includes('is not the one of the shared store'))).toHaveLength(
      1,
    )
    writeFileSync(two.passwordFile, `${ANOTHER}\n`)
    await poll(ready).toBe(200)
    // The first to start with a different line is taken for the one with the newer password.
    const three = await sidecar()
    expect((await logIn(three, PASSWORD)).status).toBe(200)
    await poll(ready).toBe(503)
  })

  it('H132 keep no token and no password there', async () => {
    const config = { tokens: { rotate_refresh: true, refresh_grace: '10m' } }
    const [one, two] = await Promise.all([sidecar(config), sidecar(config)])
    const first = await one.grant()
    const second = await two.refresh(first.refresh_token)
    const keys = (await redis.command('--raw', 'KEYS', `{${prefix}}:*`)).split('\n')
    expect(keys.map((key) => key.replace(/^.*:([tgrp]):.*$/, '$1')).sort()).toEqual(
      [...'gppr', ...'tttt', `{${prefix}}:events`, `{${prefix}}:grants`, `{${prefix}}:state`].sort(),
    )
    const secrets = [first, second]
      .flatMap((each) => [each.access_token, each.refresh_token])
      .concat(PASSWORD)
    const held = async (): Promise<string[]> => {
      const dumps = await Promise.all(keys.map((key) => redis.command('DUMP', key)))
      const all = [...keys, ...dumps].join('\n')
      return secrets.filter((secret) => all.includes(secret))
    }
    expect(await held()).toEqual([])
    for (const key of keys.filter((each) => /:[tgr]:/.test(each)))
      expect(Number(await redis.command('PTTL', key)), key).toBeGreaterThan(0)

    // A secret would be found in each type of key.
    const [token = ''] = keys.filter((key) => key.includes(':t:'))
    const planting = [
      ['SET', token],
      ['HSET', `{${prefix}}:state`, 'planted'],
      ['XADD', `{${prefix}}:events`, '*', 'planted'],
      ['ZADD', `{${prefix}}:grants`, '1'],
    ]
    for (const [index, command] of planting.entries()) {
      await redis.command(...command, `${'x'.repeat(30)} ${secrets[index]} ${'x'.repeat(30)}`)
      expect(await held()).toEqual(secrets.slice(0, index + 1))
    }
  })

  it('H133 repeat a revocation that the server could make only in part', async () => {
    await redis.command('ACL', 'SETUSER', prefix, 'on', 'nopass', '~*', '+@all', '-zrem')
    const config = {
      oauth: { revocation_path: '/oauth/revoke' },
      tokens: { store: `valkey://${prefix}@${redis.at}` },
    }
    const [one, two] = await Promise.all([sidecar(config), sidecar(config)])
    const token = await one.token()
    expect(await statusOf(two, token)).toBe(200)
    const revoke = async (): Promise<number> => {
      const fields = ['Content-Type', 'application/x-www-form-urlencoded']
      const request = { method: 'POST', path: '/oauth/revoke', body: `token=${token}`, fields }
      return (await one.request(request)).status
    }
    expect(await revoke()).toBe(500)
    await redis.command('ACL', 'SETUSER', prefix, '+@all')
    await poll(revoke).toBe(200)
    await poll(() => statusOf(two, token)).toBe(401)
    expect(await statusOf(one, token)).toBe(401)
  })

  it('H147 mend a state that somebody has damaged', async () => {
    const one = await sidecar()
    for (const [field, value] of [
      ['salt', undefined],
      ['epoch', 'garbage'],
      ['fingerprint', undefined],
    ] as const) {
      const key = `{${prefix}}:state`
      if (value === undefined) await redis.command('HDEL', key, field)
      else await redis.command('HSET', key, field, value)
      await poll(async () => (await logIn(one, PASSWORD)).status).toBe(200)
      const token = await one.token()
      expect(await statusOf(one, token)).toBe(200)
    }
    expect(one.logLines().filter((line) => line.includes('internal error'))).toEqual([])
  })
})
