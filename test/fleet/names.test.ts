import { hash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { storeTimeout } from '../process/other-bounds.ts'
import { prepareSite } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { logInAs, makeNames, type Names, OF_MONITOR, onTrial, passwordOf } from '../support/passwords.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { passing } from './passing.ts'

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
  prefix = `names-${prefixes}`
})

/** As `expect.poll`, while time passes. */
const poll = <T>(look: () => T | Promise<T>) => expect.poll(passing([{ clock }], look))

const ALLOWS = { admin: undefined, monitor: OF_MONITOR }

const shared = (): YamlPart => ({ tokens: { store: `valkey://${redis.at}` }, store: { prefix } })

/** A sidecar with files of its own. */
async function start(
  allows: Readonly<Record<string, unknown>> = ALLOWS,
): Promise<{ readonly sidecar: TestSidecar; readonly names: Names }> {
  const names = makeNames(allows)
  return { names, sidecar: await startSidecar({ clock, config: { ...names.config, ...shared() } }) }
}

const statusOf = async ({ sidecar }: { sidecar: TestSidecar }, token: string): Promise<number> =>
  (await sidecar.request({ path: '/status', token })).status

const refreshAt = async ({ sidecar }: { sidecar: TestSidecar }, token: string): Promise<number> =>
  (await sidecar.postToken({ grant_type: 'refresh_token', refresh_token: token })).status

it('H193 H194 in a fleet each sidecar knows the name of a token, and judges it by its own allow', async () => {
  const [one, two] = await Promise.all([start(), start()])
  const { access_token: token } = await logInAs(one.sidecar, 'monitor')
  for (const at of [one, two, two]) {
    expect(await statusOf(at, token)).toBe(200)
    const refused = await at.sidecar.request({ method: 'POST', path: '/status', token })
    expect([refused.status, refused.json().error]).toEqual([400, 'insufficient_scope'])
  }
  expect(two.sidecar.device.requests.map(({ method }) => method)).toEqual(['GET', 'GET'])
})

it('H297 in a fleet an allow on trial at one sidecar holds at the other, for the same token', async () => {
  const trial = await startSidecar({
    clock,
    config: { ...onTrial(makeNames(ALLOWS), 'monitor'), ...shared() },
  })
  const held = await start()
  const { access_token: token } = await logInAs(held.sidecar, 'monitor')
  for (const [sidecar, status] of [
    [trial, 200],
    [held.sidecar, 400],
  ] as const) {
    expect((await sidecar.request({ method: 'POST', path: '/firmware', token })).status).toBe(status)
    expect(sidecar.device.requests).toHaveLength(status === 200 ? 1 : 0)
  }
  expect(await trial.metric('postern_named_requests_total', { result: 'would_refuse' })).toBe(1)
})

it('C8 H194 in a fleet a password that one sidecar sees change ends the tokens of its name everywhere, and no others', async () => {
  const [one, two] = await Promise.all([start(), start()])
  const [admin, monitor] = [await logInAs(one.sidecar, 'admin'), await logInAs(two.sidecar, 'monitor')]
  for (const at of [one, two])
    for (const { access_token } of [admin, monitor]) expect(await statusOf(at, access_token)).toBe(200)
  one.names.set('monitor', 'another')
  for (const at of [one, two]) await poll(() => statusOf(at, monitor.access_token)).toBe(401)
  expect(await refreshAt(one, monitor.refresh_token)).toBe(400)
  expect(await refreshAt(two, monitor.refresh_token)).toBe(400)
  for (const at of [one, two]) expect(await statusOf(at, admin.access_token)).toBe(200)
  // The other sidecar has the old file, so it issues nothing.
  expect(
    (await two.sidecar.postToken({ grant_type: 'password', password: passwordOf('monitor') })).status,
  ).toBe(500)
  two.names.set('monitor', 'another')
  await poll(
    async () => (await two.sidecar.postToken({ grant_type: 'password', password: 'another' })).status,
  ).toBe(200)
  for (const at of [one, two]) {
    expect(await statusOf(at, admin.access_token)).toBe(200)
    expect(await refreshAt(at, admin.refresh_token)).toBe(200)
    expect(await statusOf(at, monitor.access_token)).toBe(401)
  }
  // Then the other one: the tokens that the first change left end, too.
  const fresh = await logInAs(two.sidecar, 'monitor', 'another')
  one.names.set('admin', 'another of admin')
  for (const at of [one, two]) await poll(() => statusOf(at, admin.access_token)).toBe(401)
  for (const at of [one, two]) expect(await statusOf(at, fresh.access_token)).toBe(200)
  expect(await refreshAt(one, monitor.refresh_token)).toBe(400)
})

it('C8 H234 in a fleet an account that one sidecar sees locked ends its tokens everywhere, and unlocking revives none', async () => {
  const sha = (name: string): string => `${name}:{SHA}${hash('sha1', passwordOf(name), 'base64')}\n`
  const both = sha('admin') + sha('monitor')
  const begin = async () => {
    const file = join(temporaryDirectory(), 'htpasswd')
    writeFileSync(file, both)
    const passwords = ['admin', 'monitor'].map((name) => ({ name, htpasswd: { file, user: name } }))
    return {
      file,
      sidecar: await startSidecar({ clock, config: { password: undefined, passwords, ...shared() } }),
    }
  }
  const [one, two] = await Promise.all([begin(), begin()])
  const [admin, monitor] = [await logInAs(one.sidecar, 'admin'), await logInAs(two.sidecar, 'monitor')]
  for (const at of [one, two]) expect(await statusOf(at, monitor.access_token)).toBe(200)
  writeFileSync(one.file, both.replace('monitor:', 'monitor:!'))
  for (const at of [one, two]) {
    await poll(() => statusOf(at, monitor.access_token)).toBe(401)
    expect(await statusOf(at, admin.access_token)).toBe(200)
  }
  const logIn = ({ sidecar }: { sidecar: TestSidecar }) =>
    sidecar.postToken({ grant_type: 'password', password: passwordOf('monitor') })
  expect((await logIn(one)).status).toBe(400)
  // The other sidecar has the old file, so it issues nothing.
  expect((await logIn(two)).status).toBe(500)
  writeFileSync(one.file, both)
  for (const at of [one, two]) {
    await poll(async () => (await logIn(at)).status).toBe(200)
    expect(await statusOf(at, monitor.access_token)).toBe(401)
    expect(await statusOf(at, admin.access_token)).toBe(200)
  }
  expect(await refreshAt(two, monitor.refresh_token)).toBe(400)
})

it('C8 H234 in a fleet an account that is locked and unlocked while the store does not answer ends its tokens', async () => {
  const server = await startRedis()
  const sha = (name: string): string => `${name}:{SHA}${hash('sha1', passwordOf(name), 'base64')}\n`
  const both = sha('admin') + sha('monitor')
  const file = join(temporaryDirectory(), 'htpasswd')
  writeFileSync(file, both)
  const passwords = ['admin', 'monitor'].map((name) => ({ name, htpasswd: { file, user: name } }))
  const config = {
    password: undefined,
    passwords,
    tokens: { store: `valkey://${server.at}` },
  }
  const sidecar = await startSidecar({ clock, config, bounds: { store: { timeout: 2_000 } } })
  const at = { sidecar }
  const [admin, monitor] = [await logInAs(sidecar, 'admin'), await logInAs(sidecar, 'monitor')]
  const changes = () =>
    sidecar.logLines().filter((line) => /there is no password|password has changed/.test(line))
  server.freeze()
  for (const [index, text] of [both.replace('monitor:', 'monitor:!'), both].entries()) {
    writeFileSync(file, text)
    await poll(() => changes().length).toBe(index + 1)
  }
  server.thaw()
  const logIn = () => sidecar.postToken({ grant_type: 'password', password: passwordOf('monitor') })
  await poll(async () => (await logIn()).status).toBe(200)
  expect(await statusOf(at, monitor.access_token)).toBe(401)
  expect(await refreshAt(at, monitor.refresh_token)).toBe(400)
  expect(await statusOf(at, admin.access_token)).toBe(200)
})

it('C8 H194 a fleet that was stopped ends the tokens of the name whose password changed meanwhile', async () => {
  const one = await start()
  const [admin, monitor] = [await logInAs(one.sidecar, 'admin'), await logInAs(one.sidecar, 'monitor')]
  await one.sidecar.stop()
  one.names.set('monitor', 'another')
  const again = await startSidecar({ clock, config: { ...one.names.config, ...shared() } })
  const at = { sidecar: again }
  await poll(() => statusOf(at, admin.access_token)).toBe(200)
  expect(await statusOf(at, monitor.access_token)).toBe(401)
  expect(await refreshAt(at, monitor.refresh_token)).toBe(400)
})

it('H194 the tokens of a name that a sidecar does not have do not work there', async () => {
  const one = await start()
  const { access_token, refresh_token } = await logInAs(one.sidecar, 'monitor')
  const other = makeNames({ admin: undefined })
  const two = await startSidecar({ clock, config: { ...other.config, ...shared() } })
  await poll(() => statusOf({ sidecar: two }, access_token)).toBe(401)
  await poll(() => statusOf(one, access_token)).toBe(401)
  expect(await refreshAt(one, refresh_token)).toBe(400)
})

it('H194 a sidecar with one password does not take the tokens of a name for its own', async () => {
  const two = await startSidecar({ clock, config: shared() })
  await two.token()
  const one = await start()
  const { access_token } = await logInAs(one.sidecar, 'monitor')
  expect(await statusOf(one, access_token)).toBe(200)
  for (const method of ['GET', 'POST'])
    expect((await two.request({ method, path: '/status', token: access_token })).status).toBe(401)
  expect(two.device.requests).toHaveLength(0)
})

it('H194 H196 in a fleet a reload that removes a name ends its tokens everywhere', async () => {
  const names = makeNames(ALLOWS)
  const sites = await Promise.all([1, 2].map(() => prepareSite({ config: { ...names.config, ...shared() } })))
  const sidecars = await Promise.all(sites.map((site) => site.serve()))
  const [one = expect.unreachable(), two = expect.unreachable()] = sidecars
  const { access_token: token, refresh_token: refresh } = await logInAs(one, 'monitor')
  const use = async (at: typeof one): Promise<number> => (await at.request({ path: '/status', token })).status
  for (const at of sidecars) expect(await use(at)).toBe(200)
  sites[0]?.configure({ passwords: names.config.passwords.filter(({ name }) => name === 'admin') })
  for (const at of sidecars) await poll(() => use(at)).toBe(401)
  expect((await two.refresh(refresh)).status).toBe(400)
})

it('H194 H196 H274 in a fleet a name that is removed and brought back while the store does not answer has none of its tokens back', async () => {
  const server = await startRedis()
  const names = makeNames(ALLOWS)
  const config = { ...names.config, tokens: { store: `valkey://${server.at}` } }
  const site = await prepareSite({ config })
  const [sidecar, two] = await Promise.all([
    site.serve({ bounds: storeTimeout(2_000) }),
    startSidecar({ clock, config, bounds: { store: { timeout: 2_000 } } }),
  ])
  const { access_token: token, refresh_token: refresh } = await logInAs(sidecar, 'monitor')
  const { access_token: admin } = await logInAs(sidecar, 'admin')
  const use = async (at: Pick<TestSidecar, 'request'>, token: string): Promise<number> =>
    (await at.request({ path: '/status', token })).status
  for (const at of [sidecar, two]) for (const each of [token, admin]) expect(await use(at, each)).toBe(200)
  const told = (message: string): number => sidecar.lines.filter((line) => line.includes(message)).length
  server.freeze()
  site.configure({ passwords: names.config.passwords.filter(({ name }) => name === 'admin') })
  await poll(() => told('they end when it does')).toBe(1)
  site.configure({ passwords: names.config.passwords })
  await poll(() => told('configuration reloaded')).toBe(2)
  // The other sidecar cannot know it yet.
  expect([await use(sidecar, token), await use(two, token)]).toEqual([401, 200])
  server.thaw()
  await poll(() => told('"reason":"name_removed"')).toBe(1)
  expect(await use(sidecar, token)).toBe(401)
  await poll(() => use(two, token)).toBe(401)
  expect((await sidecar.refresh(refresh)).status).toBe(400)
  const { access_token: fresh } = await logInAs(two, 'monitor')
  for (const at of [sidecar, two]) for (const each of [fresh, admin]) expect(await use(at, each)).toBe(200)
  expect(await sidecar.metric('postern_tokens_revoked_total', 'reason="name_removed"')).toBe(1)
})

it('H308 in a fleet a username that is a name needs the password of that name at every sidecar', async () => {
  for (const { sidecar } of await Promise.all([start(), start()])) {
    const statusOf = async (username: string, name: string): Promise<number> =>
      (await sidecar.postToken({ grant_type: 'password', username, password: passwordOf(name) })).status
    await poll(() => statusOf('monitor', 'monitor')).toBe(200)
    expect(await statusOf('monitor', 'admin')).toBe(400)
    expect(await statusOf('nobody', 'admin')).toBe(200)
  }
})
