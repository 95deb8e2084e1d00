import { beforeEach, expect, it } from 'vitest'
import { flood } from '../support/client.ts'
import { limitsOf } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { startRedis } from '../support/redis.ts'
import { FORM_TYPE, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { passing } from './passing.ts'

beforeEach(() => needs('redis-server'))

/** Sidecars that share tokens and windows, with the documented limits. */
function startFleet(port: number, size: number, api = {}): Promise<readonly TestSidecar[]> {
  const config = {
    tokens: { store: `valkey://127.0.0.1:${port}` },
    limits: { store: 'shared', api },
  }
  const options = { config, bounds: { store: { timeout: 30_000 } }, documentedLimits: true }
  return Promise.all(Array.from({ length: size }, () => startSidecar(options)))
}

const passed = (responses: readonly Response[]): Response[] =>
  responses.filter(({ status }) => status !== 429)

it('C14 C16 H138 of 300 concurrent requests to three sidecars, exactly 60 pass and reach a device', async () => {
  const redis = await startRedis()
  const fleet = await startFleet(redis.port, 3)
  const [first] = fleet as [TestSidecar]
  const token = await first.token()
  const request = { fields: ['Authorization', `Bearer ${token}`] }
  const responses = (await Promise.all(fleet.map((sidecar) => flood(sidecar, 100, request)))).flat()
  expect(passed(responses).map(({ status }) => status)).toEqual(Array(60).fill(200))
  const left = passed(responses).map((response) => limitsOf(response).remaining)
  expect(left.sort((a, b) => b - a)).toEqual(Array.from({ length: 60 }, (_, i) => 59 - i))
  expect(fleet.reduce((sum, { device }) => sum + device.requests.length, 0)).toBe(60)
  for (const response of responses.filter(({ status }) => status === 429)) {
    expect(limitsOf(response)).toMatchObject({ limit: 60, remaining: 0 })
    expect(Number(response.header('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(Number(response.header('retry-after'))).toBeLessThanOrEqual(60)
  }
  for (const sidecar of fleet) expect(await sidecar.metric('postern_rate_fallback_total')).toBe(0)
})

it('C14 H138 exactly 30 of 120 concurrent token requests to three sidecars pass', async () => {
  const redis = await startRedis()
  const fleet = await startFleet(redis.port, 3)
  const request = {
    method: 'POST',
    path: '/oauth/token',
    fields: ['Content-Type', FORM_TYPE],
    body: 'grant_type=refresh_token&refresh_token=unknown',
  }
  const responses = (await Promise.all(fleet.map((sidecar) => flood(sidecar, 40, request)))).flat()
  expect(passed(responses).map(({ status }) => status)).toEqual(Array(30).fill(400))
})

it('H139 H140 without the store each sidecar counts alone, says so once, and shares again when it is back', async () => {
  const redis = await startRedis()
  const [sidecar, other] = (await startFleet(redis.port, 2)) as [TestSidecar, TestSidecar]
  const from = (address: string): Promise<Response> => sidecar.request({ from: address })
  for (let i = 0; i < 60; i += 1) expect((await from('127.0.0.2')).status).toBe(401)
  await redis.kill()
  await expect.poll(() => sidecar.metric('postern_store_up')).toBe(0)
  // Its window was used up before the store went away.
  expect((await from('127.0.0.2')).status).toBe(429)
  expect(await sidecar.metric('postern_rate_fallback_total')).toBe(0)
  expect(limitsOf(await from('127.0.0.3'))).toMatchObject({ limit: 60, remaining: 59 })
  expect(limitsOf(await from('127.0.0.3'))).toMatchObject({ limit: 60, remaining: 58 })
  expect(await sidecar.metric('postern_rate_fallback_total', { endpoint: 'api' })).toBe(2)
  expect(await sidecar.metric('postern_rate_fallback_total', { endpoint: 'oauth' })).toBe(0)
  await redis.restart()
  for (const each of [sidecar, other])
    await expect.poll(passing([each], () => each.metric('postern_store_up'))).toBe(1)
  expect(limitsOf(await from('127.0.0.4'))).toMatchObject({ remaining: 59 })
  expect(limitsOf(await other.request({ from: '127.0.0.4' }))).toMatchObject({ remaining: 58 })
  const said = sidecar.logLines().filter((line) => line.includes('rate limits: '))
  expect(said.map((line) => JSON.parse(line).msg)).toEqual([
    'rate limits: each sidecar counts alone',
    'rate limits: the sidecars share their windows again',
  ])
  const [alone = '{}'] = said
  expect(JSON.parse(alone)).toMatchObject({ reason: 'the shared store does not respond' })
  expect(JSON.parse(alone)).not.toHaveProperty('err')
})

it('H138 limits.store=local counts per sidecar', async () => {
  const redis = await startRedis()
  const config = { tokens: { store: `valkey://127.0.0.1:${redis.port}` } }
  const fleet = await Promise.all([0, 1].map(() => startSidecar({ config, documentedLimits: true })))
  for (const sidecar of fleet) expect(limitsOf(await sidecar.request())).toMatchObject({ remaining: 59 })
  expect(await redis.command('KEYS', '*:w:*')).toBe('')
})
