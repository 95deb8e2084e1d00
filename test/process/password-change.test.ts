import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { PASSWORDS, VECTORS } from '../password/vectors.ts'
import { livedTime } from '../support/lived-time.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { prepareSite, type Serving, type Site } from './serve.ts'
import { holdResponses, openStreams, type Stream } from './streams.ts'

const CHANGED = 'the password has changed'
const NONE = ['', 'block', ''] as const
const TROUBLE = 'the password source cannot be used; the last good password stays valid'
const RESTORED = 'the password source can be used again'

const revoked = (sidecar: Serving): Promise<number> =>
  sidecar.metric('postern_tokens_revoked_total', 'reason="password_changed"')

/** By `fetch`, whose connection outlives the question: the sidecar is killed at the end of the test. */
const asked = async ({ adminUrl }: Serving): Promise<string> => (await fetch(`${adminUrl}/readyz`)).text()

describe('C8 A changed password', () => {
  let site: Site
  let sidecar: Serving
  let password = PASSWORD
  let changes = 0
  /** How often each log message has been awaited. */
  const awaited = new Map<string, number>()

  beforeAll(async () => {
    site = await prepareSite({ transport: 'tls' })
    holdResponses(site.device)
    sidecar = await site.serveHere()
  })

  /** Waits for the next line with this message. The last test checks that there were no others. */
  async function expectLogged(msg: string, fields: object = {}): Promise<void> {
    const count = awaited.get(msg) ?? 0
    awaited.set(msg, count + 1)
    expect(await sidecar.waitForLog(msg, (line) => sidecar.logged(msg)[count] === line)).toMatchObject(fields)
  }

  /** Checks everything that C8 promises of a change to `next`. */
  async function expectChange(
    act: (next: string) => void,
    next: string = `secret number ${changes}`,
  ): Promise<void> {
    const [before, one, other] = [
      await revoked(sidecar),
      await sidecar.grant(password),
      await sidecar.grant(password),
    ]
    const { refresh_token } = one
    const streams = await openStreams(sidecar, one.access_token)
    expect(await sidecar.use(one.access_token)).toBe(200)
    const earlier = password
    password = next // set before the checks: if one fails, the next test starts with the password in the file
    changes += 1
    const now = livedTime(() => asked(sidecar))
    act(next)
    await Promise.all(streams.map((stream) => stream.broken))
    expect(now()).toBeLessThan(1000)
    const statuses = await Promise.all([
      sidecar.use(one.access_token),
      sidecar.use(other.access_token),
      sidecar.refresh(refresh_token).then(({ status }) => status),
      sidecar.login(earlier).then(({ status }) => status),
    ])
    expect(statuses).toEqual([401, 401, 400, 400])
    expect(await revoked(sidecar)).toBe(before + 2)
    expect(await sidecar.use((await sidecar.grant(password)).access_token)).toBe(200)
    await sidecar.revoke({ all: true })
  }

  it('H75 revokes every token and closes every stream within a second of a write in place', async () => {
    await expectChange((next) => writeFileSync(site.passwordFile, `${next}\n`))
  })

  it('H75 revokes every token and closes every stream within a second of a rename', async () => {
    await expectChange((next) => site.setPassword(`${next}\n`))
  })

  it('H75 has no effect while it is half written, and revokes every token when it is complete', async () => {
    const { access_token } = await sidecar.grant(password)
    const streams = await openStreams(sidecar, access_token)
    const current = readFileSync(site.passwordFile, 'utf8')
    const [, which, line] =
      VECTORS.find(([tool, , hash]) => tool.startsWith('mkpasswd -m bcrypt -R') && hash !== current) ?? NONE
    writeFileSync(site.passwordFile, line.slice(0, 30))
    await expectLogged(TROUBLE, { reason: expect.stringContaining('it is not a complete bcrypt hash') })
    expect(await sidecar.use(access_token)).toBe(200)
    expect((await sidecar.login(password)).status).toBe(200)
    expect(streams.every((stream) => stream.open)).toBe(true)
    await sidecar.revoke({ all: true })
    const complete = (): void => appendFileSync(site.passwordFile, line.slice(30))
    await expectChange(complete, PASSWORDS[which])
    await expectLogged(RESTORED)
  })

  it('H75 leaves tokens valid while its file is empty, which is logged and counted, and revokes them when it has another content', async () => {
    const failures = await sidecar.metric('postern_store_errors_total', 'store="password"')
    const { access_token } = await sidecar.grant(password)
    const streams = await openStreams(sidecar, access_token)
    truncateSync(site.passwordFile)
    await expectLogged(TROUBLE, { level: 50, reason: expect.stringContaining('it is empty') })
    expect(await sidecar.metric('postern_store_errors_total', 'store="password"')).toBe(failures + 1)
    expect(await sidecar.use(access_token)).toBe(200)
    expect((await sidecar.login(password)).status).toBe(200)
    expect((await sidecar.login(' ')).status).toBe(400)
    expect(streams.every((stream) => stream.open)).toBe(true)
    await sidecar.revoke({ all: true })
    await expectChange((next) => writeFileSync(site.passwordFile, next))
    await expectLogged(RESTORED)
  })

  it('H75 leaves tokens valid while its file is missing or restored unchanged, and revokes them when it is restored as another', async () => {
    const { access_token } = await sidecar.grant(password)
    const streams = await openStreams(sidecar, access_token)
    rmSync(site.passwordFile)
    await expectLogged(TROUBLE, { reason: expect.stringContaining('there is no such file') })
    site.setPassword(`${password}\n`)
    await expectLogged(RESTORED)
    expect(await sidecar.use(access_token)).toBe(200)
    rmSync(site.passwordFile)
    await expectLogged(TROUBLE)
    expect(streams.every((stream) => stream.open)).toBe(true)
    await sidecar.revoke({ all: true })
    await expectChange((next) => site.setPassword(`${next}\n`))
    await expectLogged(RESTORED)
  })

  it('H75 revokes nothing if its file is only touched or written again unchanged', async () => {
    const { access_token } = await sidecar.grant(password)
    const streams = await openStreams(sidecar, access_token)
    const before = await revoked(sidecar)
    utimesSync(site.passwordFile, new Date(), new Date())
    await delay(300)
    const content = readFileSync(site.passwordFile, 'utf8').trimEnd()
    writeFileSync(site.passwordFile, content)
    await delay(300)
    site.setPassword(`${content}\r\n`)
    // A change takes effect within a second, so nothing will happen after this wait.
    await delay(1000)
    expect(await sidecar.use(access_token)).toBe(200)
    expect(streams.every((stream) => stream.open)).toBe(true)
    expect(await revoked(sidecar)).toBe(before)
    await sidecar.revoke({ all: true })
    await Promise.all(streams.map((stream) => stream.broken))
  })

  it('leaves no valid token of the earlier password, even of a login that was in flight', async () => {
    const earlier = password
    const issued: string[] = []
    let streams: readonly Stream[] = []
    const { access_token } = await sidecar.grant(earlier)
    streams = await openStreams(sidecar, access_token)
    let over = false
    const first = Promise.withResolvers<void>()
    const clients = Array.from({ length: 4 }, async () => {
      for (;;) {
        const begun = over
        const response = await sidecar.login(earlier)
        if (response.status !== 200) return response.status
        issued.push(String(response.json().access_token))
        first.resolve()
        expect(begun).toBe(false)
      }
    })
    await first.promise
    password = 'in a hurry'
    site.setPassword(password)
    changes += 1
    await Promise.all(streams.map((stream) => stream.broken))
    over = true
    expect(await Promise.all(clients)).toEqual([400, 400, 400, 400])
    const statuses = await Promise.all(issued.map((token) => sidecar.use(token)))
    expect(new Set(statuses)).toEqual(new Set([401]))
  })

  it('is logged once per change, and so is the revocation', async () => {
    await sidecar.stop()
    expect(sidecar.logged(CHANGED)).toHaveLength(changes)
    const lines = sidecar.logged('tokens revoked').filter(({ reason }) => reason === 'password_changed')
    expect(lines).toHaveLength(changes)
    for (const [msg, count] of awaited) expect(sidecar.logged(msg)).toHaveLength(count)
    expect(JSON.stringify(sidecar.log)).not.toMatch(/in a hurry|secret number/)
  })
})

it('H75 C8 a changed password behind a swapped symbolic link, as Kubernetes swaps its secrets, revokes every token within a second', async () => {
  const site = await prepareSite({ transport: 'tls' })
  holdResponses(site.device)
  const folder = join(site.directory, 'secret')
  for (const version of ['old', 'new']) {
    mkdirSync(join(folder, `..${version}`), { recursive: true })
    writeFileSync(join(folder, `..${version}`, 'password'), version)
  }
  symlinkSync('..old', join(folder, '..data'))
  symlinkSync('..data/password', join(folder, 'password'))
  site.configure({ password: { file: join(folder, 'password') } })
  const sidecar = await site.serveHere()
  const { access_token } = await sidecar.grant('old')
  const streams = await openStreams(sidecar, access_token)
  const now = livedTime(() => asked(sidecar))
  symlinkSync('..new', join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  rmSync(join(folder, '..old'), { recursive: true })
  await Promise.all(streams.map((stream) => stream.broken))
  expect(now()).toBeLessThan(1000)
  expect(await sidecar.use(access_token)).toBe(401)
  expect((await sidecar.login('old')).status).toBe(400)
  expect((await sidecar.login('new')).status).toBe(200)
})

it('C8 a password that changed while the sidecar was down revokes every stored token at the start', async () => {
  const site = await prepareSite()
  const first = await site.serve()
  const { access_token, refresh_token } = await first.grant()
  await first.kill()
  utimesSync(site.passwordFile, new Date(), new Date())

  const second = await site.serveHere()
  expect(await second.use(access_token)).toBe(200) // the file was touched, the password is the same
  await second.stop()
  site.setPassword('changed meanwhile\n')

  const third = await site.serve()
  expect((await third.status()).tokens).toEqual({ access: 0, refresh: 0 })
  expect(await third.use(access_token)).toBe(401)
  expect((await third.refresh(refresh_token)).status).toBe(400)
  expect((await third.login()).status).toBe(400)
  expect(await revoked(third)).toBe(1)
  const fresh = await third.grant('changed meanwhile')
  await third.kill()
  expect(third.logged('tokens revoked')).toHaveLength(1)

  // A change back to the first password does not restore revoked tokens.
  site.setPassword(`${PASSWORD}\n`)
  const fourth = await site.serveHere()
  expect(await Promise.all([access_token, fresh.access_token].map((token) => fourth.use(token)))).toEqual([
    401, 401,
  ])
})

it('C8 the token file holds the fingerprint of the password from the first login on, and not before', async () => {
  const site = await prepareSite()
  /** The derivation of a start takes 15 ms; these take longer. */
  const settle = async (sidecar: Serving): Promise<void> => {
    for (let i = 0; i < 30; i += 1) await sidecar.status()
  }
  const names = (): readonly unknown[] => {
    const db = new DatabaseSync(join(site.stateDir, 'tokens.db'))
    const rows = db.prepare("SELECT key FROM meta WHERE key LIKE 'password%' ORDER BY key").all()
    db.close()
    return rows.map(({ key }) => key)
  }

  const first = await site.serveHere()
  await settle(first)
  await first.stop()
  expect(names()).toEqual([])

  const second = await site.serveHere()
  await second.grant()
  await second.stop()
  expect(names()).toEqual(['password_fingerprint', 'password_salt'])
})

it('H71 C8 a token issued right after a password change survives an immediate kill', async () => {
  const site = await prepareSite({ transport: 'tls' })
  holdResponses(site.device)
  const first = await site.serve()
  const streams = await openStreams(first, (await first.grant()).access_token)
  site.setPassword('just changed\n')
  await Promise.all(streams.map((stream) => stream.broken))
  const { access_token } = await first.grant('just changed')
  await first.kill()
  expect(await (await site.serveHere()).use(access_token)).toBe(200)
})
