import { once } from 'node:events'
import { join } from 'node:path'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Issued, Revoked, StatusAnswer } from '../../src/admin/control-socket.ts'
import { control } from '../../src/commands/control.ts'
import { MOST_ISSUED } from '../../src/tokens/grant-rules.ts'
import { stillClock } from '../support/clock.ts'
import { makeNames, type Names } from '../support/passwords.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { passing } from './passing.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

let redis: RedisServer
let prefix = ''
let prefixes = 0
/** All sidecars of a test have one. */
let clock = stillClock()

beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})
beforeEach(() => {
  needs('redis-server')
  clock = stillClock()
  prefixes += 1
  prefix = `issued-${prefixes}`
})

/** As `expect.poll`, while time passes. */
const poll = <T>(look: () => T | Promise<T>) => expect.poll(passing([{ clock }], look))

/** Two sidecars with one store, and files of their own. */
async function startTwo(tokens: YamlPart = {}) {
  const start = async (): Promise<{ readonly sidecar: TestSidecar; readonly names: Names }> => {
    const names = makeNames({ admin: undefined, monitor: 'read' })
    const shared = { tokens: { store: `valkey://${redis.at}`, ...tokens }, store: { prefix } }
    return { names, sidecar: await startSidecar({ clock, config: { ...names.config, ...shared } }) }
  }
  return Promise.all([start(), start()])
}

type Member = Awaited<ReturnType<typeof startTwo>>[number]

const tell = <Answer extends object>({ sidecar }: Member, method: string, path: string, command?: object) =>
  control<Answer>(join(sidecar.directory, 'state'), { method, path, ...(command && { command }) })

const issueAt = (member: Member, handout: object = {}): Promise<Issued> =>
  tell<Issued>(member, 'POST', '/issue', { name: 'monitor', label: 'probe', lifetime: 90 * DAY, ...handout })

const statusOf = async ({ sidecar }: Member, token: string): Promise<number> =>
  (await sidecar.request({ path: '/status', token })).status

/** Waits until a token works. Behind an hour, or where the clock passed more quickly than the store answers, the connections to it begin anew. */
async function works(at: Member, token: string): Promise<void> {
  await poll(async () => {
    const status = await statusOf(at, token)
    expect([200, 500]).toContain(status)
    return status
  }).toBe(200)
}

it('H296 an issued token works at every sidecar beyond the life of access tokens, and both tell of it', async () => {
  const [one, two] = await startTwo({ access_lifetime: '1s', capacity: 4 })
  const { accessToken, grant } = await issueAt(one)
  for (const at of [one, two, one, two]) {
    await works(at, accessToken)
    await clock.leap(HOUR)
  }
  const refused = async () =>
    (await two.sidecar.request({ method: 'POST', path: '/status', token: accessToken })).json().error
  await poll(refused).toBe('insufficient_scope')
  // Logins evict each other, and not the issued one.
  const password = 'the password of admin'
  const logIn = async () => (await two.sidecar.postToken({ grant_type: 'password', password })).status
  await poll(logIn).toBe(200)
  for (let i = 0; i < 9; i++) expect(await logIn()).toBe(200)
  for (const at of [one, two]) {
    await poll(() => statusOf(at, accessToken)).toBe(200)
    const { grants } = await tell<StatusAnswer>(at, 'GET', '/status')
    expect(grants?.filter(({ label }) => label !== undefined)).toMatchObject([
      { id: grant, label: 'probe', client: 'operator', accessTokens: 1, refreshTokens: 0 },
    ])
    expect(grants).toHaveLength(3)
    await poll(() => at.sidecar.metric('postern_issued_tokens')).toBe(1)
  }
  expect(
    (await two.sidecar.postToken({ grant_type: 'refresh_token', refresh_token: accessToken })).status,
  ).toBe(400)
})

it('H296 C8 an issued token that one sidecar revokes, or whose password one sees change, ends at all with its streams', async () => {
  const [one, two] = await startTwo()
  acceptWebSockets(two.sidecar.device)
  const [revoked, monitor, admin] = await Promise.all([
    issueAt(one, { name: 'admin' }),
    issueAt(one),
    issueAt(two, { name: 'admin' }),
  ])
  for (const { accessToken } of [revoked, monitor, admin]) expect(await statusOf(two, accessToken)).toBe(200)
  const { socket } = await openWebSocket(two.sidecar.url, { token: revoked.accessToken })
  const closed = once(socket, 'close')
  expect(await tell<Revoked>(one, 'POST', '/revoke', { grant: revoked.grant })).toMatchObject({ revoked: 1 })
  await closed
  for (const at of [one, two]) await poll(() => statusOf(at, revoked.accessToken)).toBe(401)
  one.names.set('monitor', 'another')
  for (const at of [one, two]) {
    await poll(() => statusOf(at, monitor.accessToken)).toBe(401)
    expect(await statusOf(at, admin.accessToken)).toBe(200)
  }
  // The other one has the old file still, so it must not issue for it.
  await expect(issueAt(two)).rejects.toThrow('shared store')
  const fresh = await issueAt(one)
  for (const at of [one, two]) expect(await statusOf(at, fresh.accessToken)).toBe(200)
  await tell(two, 'POST', '/revoke', { all: true })
  for (const at of [one, two])
    for (const { accessToken } of [fresh, admin]) await poll(() => statusOf(at, accessToken)).toBe(401)
})

it('H293 H296 however many are issued at once at both, no more pass than the bound, and the refusal names one', async () => {
  const [one, two] = await startTwo()
  const answers = await Promise.allSettled(
    Array.from({ length: MOST_ISSUED + 15 }, (_, i) =>
      issueAt(i % 2 === 0 ? one : two, { lifetime: (i + 1) * HOUR }),
    ),
  )
  const issued = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  expect(issued).toHaveLength(MOST_ISSUED)
  const [unused, ...used] = issued
  for (const { accessToken } of used) expect(await statusOf(one, accessToken)).toBe(200)
  await expect(issueAt(one)).rejects.toThrow(`${unused?.grant} (probe) was not used`)
  await tell(two, 'POST', '/revoke', { grant: unused?.grant })
  expect(await statusOf(two, (await issueAt(two)).accessToken)).toBe(200)
  await expect(issueAt(one)).rejects.toThrow('as many tokens as may be valid')
})

it('H296 the list of issued grants may get lost: the bound and the logins know them again', async () => {
  const [one, two] = await startTwo({ capacity: 4 })
  const { accessToken } = await issueAt(one)
  for (let i = 1; i < MOST_ISSUED; i += 1) await issueAt(one)
  const list = `{${prefix}}:issued`
  expect((await redis.command('DEL', list)).trim()).toBe('1')
  // A look after the tokens is due every ten seconds, and sees fifty of the grants.
  await poll(async () => {
    await clock.advance(1_000)
    return (await redis.command('ZCARD', list)).trim()
  }).toBe(String(MOST_ISSUED))
  await works(two, accessToken)
  await expect(issueAt(two)).rejects.toThrow('as many tokens as may be valid')
})
