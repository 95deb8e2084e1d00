import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import type { Response } from '../support/message.ts'
import { makeNames, passwordOf } from '../support/passwords.ts'
import { startRedis } from '../support/redis.ts'
import {
  encodeForm,
  FORM_TYPE,
  HASHED_PASSWORD,
  PASSWORD,
  startSidecar,
  type TestSidecar,
  type YamlPart,
} from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { describeProtocols } from '../support/transports.ts'

/** The clock stands still, so no attempt waits until it is verified. */
const start = (bodyTimeout: number, limits: YamlPart = {}, others: YamlPart = {}): Promise<TestSidecar> =>
  startSidecar({
    config: { limits: { wrong_passwords: 'slow', ...limits }, ...others },
    bounds: { listen: { bodyTimeout } },
  })

const logIn = (sidecar: TestSidecar, password: string, from = '127.0.0.1'): Promise<Response> =>
  sidecar.postToken({ grant_type: 'password', password }, { from })

/** Sends wrong passwords one after the other, which do not wait. */
async function guess(sidecar: TestSidecar, times: number, from?: string): Promise<void> {
  for (let i = 0; i < times; i += 1)
    expect((await logIn(sidecar, 'wrong', from)).json()).toMatchObject({ error: 'invalid_grant' })
}

/** How many requests the window of the token endpoint has counted, this one included. */
async function countOf(sidecar: TestSidecar): Promise<number> {
  const response = await sidecar.request({ path: '/oauth/token' })
  return 1_000_000 - Number(response.header('x-ratelimit-remaining'))
}

const slowed = (sidecar: TestSidecar): Promise<number> => sidecar.metric('postern_logins_slowed_total')
const failures = (sidecar: TestSidecar): Promise<number> => sidecar.metric('postern_password_failures_total')

it('H181 the fifth wrong password of a client waits, and only of that client', async () => {
  const sidecar = await startSidecar({ config: { limits: { wrong_passwords: 'slow' } } })
  await guess(sidecar, 4)
  expect(await slowed(sidecar)).toBe(0)
  const fifth = logIn(sidecar, 'wrong')
  await expect.poll(() => slowed(sidecar)).toBe(1)
  await sidecar.clock.advance(249)
  expect(await failures(sidecar)).toBe(4)
  await sidecar.clock.advance(1)
  expect((await fifth).json()).toMatchObject({ error: 'invalid_grant' })
  expect(await failures(sidecar)).toBe(5)
  await guess(sidecar, 4, '127.0.0.2')
  expect(await slowed(sidecar)).toBe(1)
})

describeProtocols('Many logins at once', (transport) => {
  const slow = { limits: { wrong_passwords: 'slow' } }
  const bounds = { listen: { bodyTimeout: 600 } }

  /** Sends so many logins on one connection if the protocol allows it. */
  async function atOnce(sidecar: TestSidecar, password: string, count: number): Promise<readonly Response[]> {
    const form = { grant_type: 'password', password }
    if (transport !== 'h2') return Promise.all(Array.from({ length: count }, () => sidecar.postToken(form)))
    const connection = await sidecar.connect()
    const request = { method: 'POST', path: '/oauth/token', fields: ['Content-Type', FORM_TYPE] }
    const body = encodeForm(form)
    return Promise.all(Array.from({ length: count }, () => connection.send({ ...request, body })))
  }

  it('H212 of thirty wrong ones at most eight are verified, also after ten quiet minutes', async () => {
    const sidecar = await startSidecar({ transport, config: slow, bounds })
    for (let round = 0; round < 2; round += 1) {
      const before = await failures(sidecar)
      const counted = await countOf(sidecar)
      const responses = atOnce(sidecar, 'wrong', 30)
      let asked = 0
      await expect
        .poll(async () => {
          asked += 1
          return (await countOf(sidecar)) - counted - asked
        })
        .toBe(30)
      // Threads hash. The fifth waits for their verdicts, and no longer than 600 ms in all.
      await expect.poll(() => failures(sidecar)).toBe(before + 4)
      const statuses = new Set((await passUntil(sidecar.clock, responses)).map(({ status }) => status))
      expect(statuses).toEqual(new Set([400, 429]))
      const verified = (await failures(sidecar)) - before
      // Four that do not wait, and one that waits 250 ms. The next one would wait 500 ms more.
      expect(verified).toBe(5)
      await sidecar.clock.leap(601_000)
    }
  })

  it('H212 thirty right ones pass as fast as they hash', async () => {
    const sidecar = await startSidecar({ transport, password: HASHED_PASSWORD, config: slow, bounds })
    const statuses = (await atOnce(sidecar, PASSWORD, 30)).map(({ status }) => status)
    expect(statuses).toEqual(Array(30).fill(200))
    expect(await slowed(sidecar)).toBe(0)
  })
})

it('H212 with a shared store, each sidecar makes guessing slower by itself', async () => {
  needs('redis-server')
  const { at } = await startRedis()
  const sidecar = await start(40, {}, { tokens: { store: `valkey://${at}` } })
  await expect.poll(async () => (await logIn(sidecar, PASSWORD)).status).toBe(200)
  await guess(sidecar, 4)
  expect((await logIn(sidecar, 'wrong')).status).toBe(429)
  await sidecar.clock.advance(1_000)
  expect((await logIn(sidecar, PASSWORD)).status).toBe(200)
})

it('H181 an attempt that would wait past the body deadline gets 429, and may begin when Retry-After says', async () => {
  const sidecar = await start(100)
  await guess(sidecar, 4)
  const refused = await logIn(sidecar, PASSWORD)
  expect(refused.status).toBe(429)
  expect(refused.json()).toMatchObject({ error: 'rate_limited' })
  expect(refused.header('retry-after')).toBe('1')
  expect(refused.header('x-ratelimit-remaining')).toBe('999995')
  expect(await failures(sidecar)).toBe(4)
  expect(await sidecar.metric('postern_refusals_total', { reason: 'wrong_passwords' })).toBe(1)
  await sidecar.clock.advance(1_000)
  expect((await logIn(sidecar, PASSWORD)).status).toBe(200)
  // A right password ends it.
  await guess(sidecar, 4)
})

it('H181 asking again while it is refused neither prolongs the wait nor is verified', async () => {
  const sidecar = await start(40)
  await guess(sidecar, 4)
  for (const left of [250, 150, 50]) {
    expect((await logIn(sidecar, 'wrong')).status, `${left} ms left`).toBe(429)
    await sidecar.clock.advance(100)
  }
  await guess(sidecar, 1)
  expect(await failures(sidecar)).toBe(5)
})

it('H181 wrong passwords are forgotten after ten quiet minutes', async () => {
  const sidecar = await start(40)
  await guess(sidecar, 4)
  await sidecar.clock.leap(599_000)
  expect((await logIn(sidecar, 'wrong')).status).toBe(429)
  await sidecar.clock.leap(601_000)
  await guess(sidecar, 4)
})

it('H181 many addresses together are slowed, too, but no client with a live grant', async () => {
  const sidecar = await start(40)
  expect((await logIn(sidecar, PASSWORD, '127.0.0.99')).status).toBe(200)
  for (let i = 1; i <= 25; i += 1) await guess(sidecar, 2, `127.0.1.${i}`)
  expect((await logIn(sidecar, PASSWORD, '127.0.0.98')).status).toBe(429)
  expect((await logIn(sidecar, PASSWORD, '127.0.0.99')).status).toBe(200)
  // One wrong password of a client in twelve seconds slows nobody else.
  await sidecar.clock.advance(60_000)
  await guess(sidecar, 1, '127.0.1.99')
})

it('H181 past limits.max_keys all further clients count together', async () => {
  const sidecar = await start(40, { max_keys: 2 })
  for (const client of ['127.0.0.1', '127.0.0.2']) await guess(sidecar, 1, client)
  for (const client of ['127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6']) await guess(sidecar, 1, client)
  expect((await logIn(sidecar, 'wrong', '127.0.0.7')).status).toBe(429)
  await guess(sidecar, 3, '127.0.0.1')
})

it('H181 nothing waits by default, as the API documents', async () => {
  const sidecar = await startSidecar({ bounds: { listen: { bodyTimeout: 40 } } })
  await guess(sidecar, 20)
})

it('H181 a right password of a name with an allow forgives no wrong one, that of another name does', async () => {
  const names = makeNames({ admin: undefined, monitor: 'read' })
  const sidecar = await start(40, {}, names.config)
  await guess(sidecar, 3)
  expect((await logIn(sidecar, passwordOf('monitor'))).status).toBe(200)
  await guess(sidecar, 1)
  expect((await logIn(sidecar, 'wrong')).status).toBe(429)
  await sidecar.clock.advance(1_000)
  expect((await logIn(sidecar, passwordOf('admin'))).status).toBe(200)
  await guess(sidecar, 4)
})

it('H181 a live grant of a name with an allow does not spare its client when all are slowed', async () => {
  const names = makeNames({ admin: undefined, monitor: 'read' })
  const sidecar = await start(40, {}, names.config)
  expect((await logIn(sidecar, passwordOf('monitor'), '127.0.0.98')).status).toBe(200)
  expect((await logIn(sidecar, passwordOf('admin'), '127.0.0.99')).status).toBe(200)
  for (let i = 1; i <= 25; i += 1) await guess(sidecar, 2, `127.0.1.${i}`)
  expect((await logIn(sidecar, passwordOf('monitor'), '127.0.0.98')).status).toBe(429)
  expect((await logIn(sidecar, passwordOf('admin'), '127.0.0.99')).status).toBe(200)
})
