import { utimesSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Overview } from '../../src/overview/overview.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startRedis } from '../support/redis.ts'
import { startSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'

it('H150 the condition tells of the device, as postern_upstream_up does, and of its breaker', async () => {
  const device = await startDevice()
  const port = Number(new URL(device.url).port)
  const sidecar = await startSidecar({ device })
  const { overview } = sidecar
  const main = {
    route: null,
    url: device.url,
    checked: false,
    tolerant: false,
    quirks: [],
    ceiling: null,
    queue: expect.anything(),
  }
  const untried = { ...main, up: null, since: null, breaker: 'closed', failure: null, failedAt: null }
  expect(overview.condition().services).toEqual([untried])

  const token = await sidecar.token()
  await sidecar.request({ token })
  const since = expect.any(Number)
  expect(overview.condition().services).toEqual([{ ...untried, up: true, since }])

  await device.stop()
  for (let i = 0; i < 3; i += 1) await passUntil(sidecar.clock, sidecar.request({ token }))
  const failed = { failure: 'connection_refused', failedAt: since }
  expect(overview.condition().services).toEqual([{ ...main, up: false, since, breaker: 'open', ...failed }])
  expect(await sidecar.metric('postern_upstream_up')).toBe(0)

  await startDevice(undefined, { port })
  await sidecar.clock.advance(1001)
  await sidecar.request({ token })
  expect(overview.condition().services).toEqual([{ ...main, up: true, since, breaker: 'closed', ...failed }])
})

it('H150 the condition tells why a health check failed, and no request did', async () => {
  const device = await startDevice((_, response) => response.writeHead(503).end())
  const sidecar = await startSidecar({
    device,
    config: { upstream: { health: { path: '/' } } },
  })
  const main = () => sidecar.overview.condition().services[0]
  const failedAt = expect.any(Number)
  await passUntil(
    sidecar.clock,
    expect.poll(main).toMatchObject({ up: false, failure: 'status 503', failedAt }),
  )
  await device.stop()
  await passUntil(
    sidecar.clock,
    expect.poll(main).toMatchObject({ up: false, failure: 'connection_refused', failedAt }),
  )
  expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
})

it('H150 the condition tells who has used up a window, until when, and how often it was refused', async () => {
  const sidecar = await startSidecar({
    config: { limits: { api: { requests: 2, window: '60s', per: 'grant' }, oauth: { requests: 3 } } },
  })
  const { overview, clock } = sidecar
  expect(overview.condition().limits.api).toEqual({
    requests: 2,
    window: 60_000,
    per: 'grant',
    names: [],
    usedUp: [],
    usedUpCount: 0,
  })
  const token = await sidecar.token()
  const [grant] = await rows(overview)
  const opened = clock.wall()
  for (let i = 0; i < 5; i += 1) await sidecar.request({ token })
  for (let i = 0; i < 2; i += 1) await sidecar.request({ from: '127.0.0.9' })
  const { usedUp, usedUpCount } = overview.condition().limits.api
  expect(usedUp).toEqual([
    { key: `grant ${grant?.id}`, until: expect.any(Number), refused: 3 },
    { key: '127.0.0.9', until: expect.any(Number), refused: 0 },
  ])
  expect(overview.condition().totals).toEqual({ requests: 8, refused: 3 + 2, serverErrors: 0 })
  expect(usedUpCount).toBe(2)
  expect((usedUp[0]?.until ?? 0) - opened - 60_000).toBeGreaterThanOrEqual(0)
  expect((usedUp[0]?.until ?? 0) - clock.wall()).toBeLessThanOrEqual(60_001)

  await clock.advance(60_000)
  expect(overview.condition().limits.api.usedUp).toEqual([])
})

it('H150 the grants tell of their last use, the most recently used first, and hold no token', async () => {
  const sidecar = await startSidecar({ clock: stillClock() })
  const { overview, clock } = sidecar
  const first = await sidecar.grant()
  await clock.advance(10_000)
  const second = await sidecar.grant()
  const [newest, oldest] = await rows(overview)
  expect([newest?.usedAt, oldest?.usedAt]).toEqual([null, null])
  await clock.advance(10_000)
  await sidecar.request({ token: first.access_token })
  const used = await rows(overview)
  expect(used.map(({ id }) => id)).toEqual([oldest?.id, newest?.id])
  expect(used[0]?.usedAt).toBe(clock.wall())
  await clock.advance(10_000)
  await sidecar.refresh(second.refresh_token)
  expect((await rows(overview)).map(({ id }) => id)).toEqual([newest?.id, oldest?.id])
  const shown = JSON.stringify(await rows(overview))
  for (const secret of [...Object.values(first), ...Object.values(second)].filter(
    (each) => String(each).length > 20,
  ))
    expect(shown).not.toContain(secret)
})

async function rows(overview: Overview) {
  const grants = await overview.grants()
  if (grants === 'unavailable') throw new Error('unavailable')
  return grants.rows
}

it('H150 the condition has readiness, load, tokens, certificate and password', async () => {
  const sidecar = await startSidecar({ transport: 'tls' })
  const { overview } = sidecar
  await sidecar.grant()
  const changed = new Date('2026-01-02T03:04:05Z')
  writeFileSync(sidecar.passwordFile, 'another password\n')
  utimesSync(sidecar.passwordFile, changed, changed)
  const { clock } = sidecar
  await passUntil(clock, expect.poll(() => overview.condition().password.changedAt).toBe(changed.getTime()))
  await passUntil(clock, expect.poll(() => overview.condition().tokens.access).toBe(0))
  await sidecar.postToken({ grant_type: 'password', password: 'another password' })
  expect(overview.condition()).toMatchObject({
    ready: true,
    reasons: [],
    enforce: true,
    trials: [],
    load: { inFlight: 0, maxInFlight: 2, queued: 0, queueSize: 256, tunnels: 0, maxTunnels: 64 },
    tokens: {
      access: 1,
      refresh: 1,
      capacity: 1000,
      unsaved: null,
      setAsideAt: null,
      copiedAt: null,
      unreplaced: [],
    },
    certificate: { from: expect.any(Number), until: expect.any(Number), selfSigned: expect.any(Boolean) },
    password: { source: 'file', changedAt: changed.getTime(), problem: null },
    store: null,
  })
  expect(overview.about).toMatchObject({
    run: expect.stringMatching(/^[0-9a-f-]{36}$/),
    node: process.versions.node,
  })
  const texts = overview.timeline(0).map(({ text }) => text)
  expect(texts).toEqual(expect.arrayContaining(['listening', 'the password has changed']))
})

it('H150 with a shared store: whether it answers, the grants of all sidecars, and the used-up windows that this one knows', async () => {
  needs('redis-server')
  const redis = await startRedis()
  const config = {
    tokens: { store: `valkey://${redis.at}` },
    store: { prefix: 'overview' },
    limits: { store: 'shared', api: { requests: 2 } },
  }
  const clock = stillClock()
  const one = await startSidecar({ config, clock })
  const two = await startSidecar({ config, clock })
  await two.grant()
  const { access_token: token } = await two.grant()
  // The server has issued the grants by its own clock, which does not stand still.
  clock.jumpWall(3_600_000)
  for (let i = 0; i < 3; i += 1) await one.request({ token })
  expect(one.overview.condition()).toMatchObject({
    store: { up: true },
    limits: { api: { usedUp: [{ key: '127.0.0.1', refused: 1 }] } },
  })
  const unused = { client: '127.0.0.1', usedAt: null }
  expect(await one.overview.grants()).toMatchObject({
    total: 2,
    rows: [{ client: '127.0.0.1', usedAt: expect.any(Number) }, unused],
  })
  // The other sidecar saw no request of these grants.
  expect(await two.overview.grants()).toMatchObject({ total: 2, rows: [unused, unused] })
  await redis.kill()
  await passUntil(clock, expect.poll(() => one.overview.condition().store?.up).toBe(false))
})

/** Answers each request: with garbage, with half a body, or whole. */
const ANSWERS = {
  garbage: 'SSH-2.0-dropbear\r\n\r\n',
  half: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
  whole: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
}

it.each([
  ['garbage', 'http_protocol_error', [0, null]],
  ['half', 'http_response_incomplete', [1, true]],
] as const)(
  'H150 a device that answers five requests in a row with %s is down, until a whole answer; the breaker stays closed',
  async (kind, failure, [before, up]) => {
    let answer: string = ANSWERS[kind]
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      peer.end(answer)
    })
    const sidecar = await startSidecar({ device })
    const main = () => sidecar.overview.condition().services[0]
    const ask = async () => sidecar.request({ token }).catch(() => undefined)
    const token = await sidecar.token()
    for (let i = 0; i < 4; i += 1) await ask()
    expect(main()).toMatchObject({ up, failure, breaker: 'closed' })
    expect(await sidecar.metric('postern_upstream_up')).toBe(before)
    await ask()
    await expect.poll(main).toMatchObject({ up: false, since: expect.any(Number), breaker: 'closed' })
    expect(await sidecar.metric('postern_upstream_up')).toBe(0)
    expect((await fetch(`${sidecar.adminUrl}/readyz`)).status).toBe(200)
    answer = ANSWERS.whole
    expect((await ask())?.status).toBe(200)
    await expect.poll(main).toMatchObject({ up: true })
  },
)
