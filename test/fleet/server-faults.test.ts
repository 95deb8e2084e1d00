import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { send } from '../support/client.ts'
import { livedTime } from '../support/lived-time.ts'
import { unusedPort } from '../support/raw.ts'
import { type RedisServer, startRedis, until } from '../support/redis.ts'
import {
  FORM_TYPE,
  PASSWORD_GRANT,
  startSidecar,
  type TestSidecar,
  type YamlPart,
} from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { report } from './fleet.ts'
import { passing, passWhile } from './passing.ts'
import { startNetwork } from './stalled-network.ts'

beforeEach(() => needs('redis-server'))

/** @param user the user of the server and `@`; empty for the default user */
function start(port: number, config: YamlPart = {}, user = '', timeout = 30_000): Promise<TestSidecar> {
  const tokens = { store: `valkey://${user}127.0.0.1:${port}` }
  return startSidecar({
    config: {
      oauth: { revocation_path: '/oauth/revoke' },
      ...config,
      tokens: { ...tokens, ...(config.tokens as object | undefined) },
    },
    // So long that a busy machine is not taken for a server that does not reply.
    bounds: { store: { timeout } },
  })
}

const readinessOf = ({ adminUrl: url }: TestSidecar) => send({ transport: 'http1', url, path: '/readyz' })
const readiness = async (sidecar: TestSidecar): Promise<number> => (await readinessOf(sidecar)).status
const use = async (sidecar: TestSidecar, token: string): Promise<number> =>
  (await sidecar.request({ token })).status
const logIn = async (sidecar: TestSidecar): Promise<number> =>
  (await sidecar.postToken(PASSWORD_GRANT)).status
const logged = (sidecar: TestSidecar, text: string): number =>
  sidecar.logLines().filter((line) => line.includes(text)).length
const isReady = (sidecar: TestSidecar) => async () => (await readiness(sidecar)) === 200

const ANOTHER_GRANT = { grant_type: 'password', password: 'another password' }
const EMPTIED = 'it was emptied, or restored from a backup'

interface Bed {
  readonly server: RedisServer
  readonly one: TestSidecar
  readonly two: TestSidecar
  /** A token that both know. */
  readonly known: string
}

async function startBed(): Promise<Bed> {
  const server = await startRedis()
  const [one, two] = await Promise.all([start(server.port), start(server.port)])
  for (const each of [one, two]) await until(passing([each], isReady(each)))
  const known = await one.token()
  for (const each of [one, two]) expect(await use(each, known)).toBe(200)
  return { server, one, two, known }
}

/** Each of these is answered with 200 at each of these sidecars. */
async function expectWorking(sidecars: readonly TestSidecar[], ...tokens: readonly string[]): Promise<void> {
  for (const sidecar of sidecars) for (const token of tokens) expect(await use(sidecar, token)).toBe(200)
}

describe('a server', () => {
  it.concurrent('H147 that is slow only slows down what needs it', async () => {
    const { server, one, two, known } = await startBed()
    const token = await one.token()
    server.freeze()
    let answered = 0
    const counted = (status: number): number => {
      answered += 1
      return status
    }
    const answers = Promise.all([use(two, token).then(counted), logIn(one).then(counted)])
    await expectWorking([one, two], known)
    expect(answered).toBe(0)
    server.thaw()
    expect(await answers).toEqual([200, 200])
    for (const each of [one, two]) {
      expect(logged(each, 'the shared store does not respond')).toBe(0)
      expect(await readiness(each)).toBe(200)
    }
  })

  it.concurrent.each(['killed and restarted', 'emptied without a disconnect'])(
    'H133 H136 that is %s without its data: every client logs in again, and each sidecar says so once',
    async (how) => {
      const { server, one, two, known } = await startBed()
      const emptied = livedTime()
      if (how.startsWith('killed')) {
        await server.kill()
        await until(passing([one], async () => (await readiness(one)) === 503))
        await expectWorking([one, two], known)
        expect(await logIn(one)).toBe(500)
        await server.restart()
      } else await server.command('FLUSHALL')
      await until(passing([one, two], async () => logged(one, EMPTIED) > 0 && logged(two, EMPTIED) > 0))
      report(`a server that was ${how}`, `noticed after ${Math.round(emptied())} ms`)
      if (!how.startsWith('killed')) expect(emptied()).toBeLessThan(10_000)
      for (const each of [one, two]) {
        await until(passing([each], isReady(each)))
        expect(await use(each, known)).toBe(401)
      }
      await expectWorking([one, two], await one.token(), await two.token())
      for (const each of [one, two]) {
        expect(logged(each, EMPTIED)).toBe(1)
        expect(await each.metric('postern_store_errors_total', { store: 'shared', operation: 'lost' })).toBe(
          1,
        )
      }
    },
  )

  it.concurrent('H133 that is emptied and then used first by a sidecar that starts anew: a sidecar that was cut off accepts no earlier token', async () => {
    const server = await startRedis()
    const network = await startNetwork(server.port)
    const one = await start(network.port, {}, '', 1_000)
    await until(passing([one], isReady(one)))
    const known = await one.token()
    network.stall()
    await server.restart()
    const two = await start(server.port)
    await until(passing([two], isReady(two)))
    const fresh = await two.token()
    network.heal()
    // Its question may still wait for a reply that was lost.
    const used = (token: string): Promise<number> => passWhile([one], use(one, token))
    await until(async () => (await used(known)) === 401)
    await until(async () => (await used(fresh)) === 200)
    await until(passing([one], async () => logged(one, EMPTIED) === 1))
    // What comes after it is an epoch like every other one.
    writeFileSync(two.passwordFile, 'another password\n')
    await until(passing([one, two], async () => (await use(one, fresh)) === 401))
  })

  it.concurrent('H133 C8 that is restored from a backup brings back no token that was revoked since, and none of an earlier password', async () => {
    const directory = temporaryDirectory()
    const server = await startRedis({ settings: [`dir ${directory}`] })
    const [one, two] = await Promise.all([start(server.port), start(server.port)])
    for (const each of [one, two]) await until(passing([each], isReady(each)))
    const [revoked, kept] = [await one.grant(), await one.grant()]
    await expectWorking([one, two], revoked.access_token, kept.access_token)
    await server.command('SAVE')
    const backup = join(directory, 'dump.rdb')
    const copy = readFileSync(backup)
    const restore = async (): Promise<void> => {
      await server.kill()
      writeFileSync(backup, copy)
      await server.restart()
    }
    const state = join(one.directory, 'state')
    await control(state, { method: 'POST', path: '/revoke', command: { client: '127.0.0.1' } })
    const later = await one.token()
    await expectWorking([one, two], later)
    // It has heard of no revocation.
    const three = await start(server.port)
    await until(passing([three], isReady(three)))
    await restore()
    const answers = new Set<number>()
    await until(
      passing([three], async () => {
        answers.add(await use(three, revoked.access_token))
        return logged(three, EMPTIED) === 1
      }),
    )
    expect(answers).not.toContain(200)
    const refused = [revoked.access_token, kept.access_token, later]
    for (const each of [one, two])
      for (const token of refused) await until(passing([each], async () => (await use(each, token)) === 401))
    const again = { grant_type: 'refresh_token', refresh_token: revoked.refresh_token }
    /** Refused as unknown; until it has the store again, the sidecar says that it cannot tell. */
    const expectRefused = async (form: Parameters<TestSidecar['postToken']>[0]): Promise<void> => {
      const statuses = new Set<number>()
      const ask = async (): Promise<boolean> => {
        const { status } = await two.postToken(form)
        statuses.add(status)
        return status === 400
      }
      await until(passing([two], ask))
      expect(statuses).not.toContain(200)
    }
    await expectRefused(again)
    for (const each of [one, two]) await until(passing([each], async () => logged(each, EMPTIED) === 1))

    // The backup knows only the first password.
    for (const each of [one, two]) writeFileSync(each.passwordFile, 'another password\n')
    await until(passing([one], async () => (await one.postToken(ANOTHER_GRANT)).status === 200))
    await restore()
    for (const each of [one, two]) await until(passing([each], async () => logged(each, EMPTIED) === 2))
    for (const each of [one, two]) for (const token of refused) expect(await use(each, token)).toBe(401)
    await expectRefused(again)
    await expectRefused(PASSWORD_GRANT)
  })

  it.concurrent('H147 that is made a replica of another one serves nothing, and falsely refuses nothing', async () => {
    const { server, one, two, known } = await startBed()
    const elsewhere = await startRedis()
    const strangers = await Promise.all(Array.from({ length: 30 }, () => one.token()))
    const statuses = new Set<number>()
    await server.command('REPLICAOF', '127.0.0.1', String(elsewhere.port))
    for (const token of strangers) {
      statuses.add(await use(two, token))
      await expectWorking([one, two], known)
    }
    expect(statuses).not.toContain(401)
    for (const each of [one, two]) {
      await until(passing([each], async () => (await readiness(each)) === 503))
      expect((await readinessOf(each)).text).toContain('the shared store does not respond')
      expect(logged(each, 'a replica, which accepts no writes')).toBe(1)
    }
    expect(await logIn(one)).toBe(500)
    await expectWorking([one, two], known)
    // It has taken over the data of the other one, which has none.
    await server.command('REPLICAOF', 'NO', 'ONE')
    for (const each of [one, two]) await until(passing([each], async () => (await use(each, known)) === 401))
    for (const each of [one, two]) await until(passing([each], isReady(each)))
    await expectWorking([one, two], await two.token())
  })

  it.concurrent('H147 that has too few replicas issues and revokes nothing, says so, and refuses no live token', async () => {
    const { server, one, two, known } = await startBed()
    const stranger = await one.token()
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1')
    expect(await logIn(one)).toBe(500)
    const fields = ['Content-Type', FORM_TYPE]
    const revocation = { method: 'POST', path: '/oauth/revoke', body: `token=${known}`, fields }
    expect((await one.request(revocation)).status).toBe(500)
    await expectWorking([one, two], known, stranger)
    expect((await readinessOf(one)).text).toContain(
      'the shared store refuses commands: the server has too few replicas (min-replicas-to-write)',
    )
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0')
    await until(passing([one], isReady(one)))
    expect((await one.request(revocation)).status).toBe(200)
    for (const each of [one, two]) await until(passing([each], async () => (await use(each, known)) === 401))
  })

  it.concurrent('H147 that is out of memory issues nothing, and loses nothing', async () => {
    const { server, one, two, known } = await startBed()
    const stranger = await one.token()
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    expect(await logIn(one)).toBe(500)
    await expectWorking([one, two], known, stranger)
    expect((await readinessOf(one)).text).toContain(
      'the shared store refuses commands: the server is out of memory',
    )
    expect(await one.metric('postern_store_up')).toBe(0)
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
    expect(await logIn(one)).toBe(200)
    await until(passing([one], isReady(one)))
    expect(await one.metric('postern_store_up')).toBe(1)
    expect(logged(one, 'the shared store refuses commands')).toBe(1)
    expect(logged(one, 'the shared store accepts all commands again')).toBe(1)
    await expectWorking([one, two], known, stranger)
  })

  it.concurrent('H129 H147 that is out of memory still revokes one grant: by its token, its id, and reuse of a refresh token', async () => {
    const server = await startRedis()
    const rotating = { tokens: { rotate_refresh: true, refresh_grace: '0s' } }
    const [one, two] = await Promise.all([start(server.port, rotating), start(server.port, rotating)])
    for (const each of [one, two]) await until(passing([each], isReady(each)))
    const state = join(one.directory, 'state')
    const byId = await one.grant()
    const status = await control(state, { method: 'GET', path: '/status' })
    const [{ id }] = (status as { readonly grants: readonly [{ readonly id: string }] }).grants
    const [byToken, byReuse, kept] = await Promise.all([one.grant(), one.grant(), one.grant()])
    const { access_token: reused } = await one.refresh(byReuse.refresh_token)
    const revoked = [byToken.access_token, byId.access_token, reused]
    await expectWorking([one, two], ...revoked, kept.access_token)
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await server.command('CONFIG', 'SET', 'maxmemory', '1')

    const body = `token=${byToken.refresh_token}`
    const fields = ['Content-Type', FORM_TYPE]
    expect((await one.request({ method: 'POST', path: '/oauth/revoke', body, fields })).status).toBe(200)
    const command = { method: 'POST', path: '/revoke', command: { grant: id } }
    expect(await control(state, command)).toEqual({ revoked: 1, elsewhere: 'uncounted' })
    const again = { grant_type: 'refresh_token', refresh_token: byReuse.refresh_token }
    expect((await two.postToken(again)).status).toBe(400)
    for (const each of [one, two])
      for (const token of revoked) await until(passing([each], async () => (await use(each, token)) === 401))
    await expectWorking([one, two], kept.access_token)
  })

  it.concurrent('H137 whose password is wrong is tried again until the file is right', async () => {
    const server = await startRedis({
      settings: ['requirepass the-right-one'],
      cli: ['-a', 'the-right-one', '--no-auth-warning'],
    })
    const file = join(temporaryDirectory(), 'store-password')
    writeFileSync(file, 'the-wrong-one\n', { mode: 0o600 })
    const sidecar = await start(server.port, { store: { password_file: file } })
    expect(await readiness(sidecar)).toBe(503)
    expect(await logIn(sidecar)).toBe(500)
    expect(logged(sidecar, 'the server refuses the user or the password')).toBe(1)
    expect(sidecar.logLines().join('')).not.toContain('the-wrong-one')
    writeFileSync(file, 'the-right-one\n')
    await until(passing([sidecar], isReady(sidecar)))
    expect(await logIn(sidecar)).toBe(200)
    expect(logged(sidecar, 'the server refuses the user or the password')).toBe(1)
  })

  it.concurrent('H133 that sends no revocations makes a sidecar say so; later it learns of those that it missed', async () => {
    const server = await startRedis({ settings: ['user deaf on nopass ~* +@all'] })
    const [one, deaf] = await Promise.all([start(server.port), start(server.port, {}, 'deaf@')])
    for (const each of [one, deaf]) await until(passing([each], isReady(each)))
    const [known, kept] = [await one.token(), await one.token()]
    await expectWorking([one, deaf], known, kept)
    await server.command('ACL', 'SETUSER', 'deaf', '-xread')
    const says = async (text: string): Promise<boolean> => (await readinessOf(deaf)).text.includes(text)
    await until(passing([deaf], () => says('the user of the server may not run XREAD; see its ACL')))
    const fields = ['Content-Type', FORM_TYPE]
    await one.request({ method: 'POST', path: '/oauth/revoke', body: `token=${known}`, fields })
    await expectWorking([deaf], known, kept, await deaf.token())
    await server.command('ACL', 'SETUSER', 'deaf', '+xread')
    await until(passing([deaf], isReady(deaf)))
    await until(passing([deaf], async () => (await use(deaf, known)) === 401))
    await expectWorking([one, deaf], kept)
  })

  it.concurrent('H136 that starts after the sidecar is used when it is there', async () => {
    const port = await unusedPort()
    const sidecar = await start(port)
    expect(await readiness(sidecar)).toBe(503)
    expect(await logIn(sidecar)).toBe(500)
    const store = `127.0.0.1:${port}`
    const [down] = sidecar.logLines().filter((line) => line.includes('"the shared store does not respond: '))
    expect(JSON.parse(down ?? '{}')).toMatchObject({
      level: 50,
      store,
      reason: expect.stringContaining('ECONNREFUSED'),
    })
    expect(sidecar.overview.condition().alarms.map(({ what }) => what)).toContainEqual(
      expect.stringMatching(
        `^The shared store at ${store} does not respond, or refuses commands: .*ECONNREFUSED`,
      ),
    )
    await startRedis({ port })
    await until(passing([sidecar], isReady(sidecar)))
    expect(await logIn(sidecar)).toBe(200)
    expect(logged(sidecar, 'the shared store does not respond')).toBe(1)
    expect(sidecar.overview.condition().store).toEqual({ up: true, address: store, reason: null })
  })
})
