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
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { PASSWORDS, VECTORS } from '../password/vectors.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { prepareSite, type Served, type Site } from './serve.ts'
import { holdAnswers, openStreams, type Stream } from './streams.ts'

const CHANGED = 'the password has changed'
const NONE = ['', 'block', ''] as const
const TROUBLE = 'the password source cannot be used; the last good password stays valid'
const RESTORED = 'the password source can be used again'

const revoked = (sidecar: Served): Promise<number> =>
  sidecar.metric('postern_tokens_revoked_total', 'reason="password_changed"')

/** On a machine that is busy with other things, a second may pass before anybody gets a turn: so three attempts. */
const WITHIN_A_SECOND = { retry: 2 }

describe('C8 A changed password', () => {
  let site: Site
  let sidecar: Served
  let password = PASSWORD
  let changes = 0
  /** How often each text has been seen in the log. */
  const awaited = new Map<string, number>()

  beforeAll(async () => {
    site = await prepareSite({ transport: 'tls' })
    holdAnswers(site.device)
    sidecar = await site.serve()
  })

  /** Waits for the next line of this text; that there is no other is seen at the end. */
  async function expectLogged(msg: string, fields: object = {}): Promise<void> {
    const count = awaited.get(msg) ?? 0
    awaited.set(msg, count + 1)
    expect(await sidecar.waitForLog(msg, (line) => sidecar.logged(msg)[count] === line)).toMatchObject(fields)
  }

  /** Everything that C8 promises of one change to `next`, but for the time that it took, in ms, which is for the test to judge. */
  async function expectChange(
    act: (next: string) => void,
    next: string = `secret number ${changes}`,
  ): Promise<number> {
    const [before, one, other] = [
      await revoked(sidecar),
      await sidecar.grant(password),
      await sidecar.grant(password),
    ]
    const { refresh_token } = one
    const streams = await openStreams(sidecar, one.access_token)
    expect(await sidecar.use(one.access_token)).toBe(200)
    const earlier = password
    password = next // whatever comes of it: the next test begins with what stands in the file
    changes += 1
    const start = performance.now()
    act(next)
    await Promise.all(streams.map((stream) => stream.broken))
    const answers = await Promise.all([
      sidecar.use(one.access_token),
      sidecar.use(other.access_token),
      sidecar.refresh(refresh_token).then(({ status }) => status),
      sidecar.login(earlier).then(({ status }) => status),
    ])
    const elapsed = performance.now() - start
    expect(answers).toEqual([401, 401, 400, 400])
    expect(await revoked(sidecar)).toBe(before + 2)
    expect(await sidecar.use((await sidecar.grant(password)).access_token)).toBe(200)
    await sidecar.revoke({ all: true })
    return elapsed
  }

  it('H75 rewritten in place takes every token and stream within a second', WITHIN_A_SECOND, async () => {
    const elapsed = await expectChange((next) => writeFileSync(site.passwordFile, `${next}\n`))
    expect(elapsed).toBeLessThan(1000)
  })

  it('H75 brought by rename takes every token and stream within a second', WITHIN_A_SECOND, async () => {
    const elapsed = await expectChange((next) => site.setPassword(`${next}\n`))
    expect(elapsed).toBeLessThan(1000)
  })

  it(
    'H75 half written counts for nothing, and only the completed one takes the tokens',
    WITHIN_A_SECOND,
    async () => {
      const { access_token } = await sidecar.grant(password)
      const streams = await openStreams(sidecar, access_token)
      const stands = readFileSync(site.passwordFile, 'utf8')
      const [, which, line] =
        VECTORS.find(([tool, , hash]) => tool.startsWith('mkpasswd -m bcrypt -R') && hash !== stands) ?? NONE
      writeFileSync(site.passwordFile, line.slice(0, 30))
      await expectLogged(TROUBLE, { reason: expect.stringContaining('it is not a complete bcrypt hash') })
      expect(await sidecar.use(access_token)).toBe(200)
      expect((await sidecar.login(password)).status).toBe(200)
      expect(streams.every((stream) => stream.open)).toBe(true)
      await sidecar.revoke({ all: true })
      const complete = (): void => appendFileSync(site.passwordFile, line.slice(30))
      const elapsed = await expectChange(complete, PASSWORDS[which])
      await expectLogged(RESTORED)
      expect(elapsed).toBeLessThan(1000)
    },
  )

  it(
    'H75 emptied changes nothing but the log and a metric, and filled with another takes every token',
    WITHIN_A_SECOND,
    async () => {
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
      const elapsed = await expectChange((next) => writeFileSync(site.passwordFile, next))
      await expectLogged(RESTORED)
      expect(elapsed).toBeLessThan(1000)
    },
  )

  it(
    'H75 removed changes nothing but the log, restored unchanged neither, and restored as another takes every token',
    WITHIN_A_SECOND,
    async () => {
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
      const elapsed = await expectChange((next) => site.setPassword(`${next}\n`))
      await expectLogged(RESTORED)
      expect(elapsed).toBeLessThan(1000)
    },
  )

  it('H75 that is only touched, or written again as it was, takes nothing', async () => {
    const { access_token } = await sidecar.grant(password)
    const streams = await openStreams(sidecar, access_token)
    const before = await revoked(sidecar)
    utimesSync(site.passwordFile, new Date(), new Date())
    await delay(300)
    const content = readFileSync(site.passwordFile, 'utf8').trimEnd()
    writeFileSync(site.passwordFile, content)
    await delay(300)
    site.setPassword(`${content}\r\n`)
    // What is promised within a second would have happened by then: nothing must.
    await delay(1000)
    expect(await sidecar.use(access_token)).toBe(200)
    expect(streams.every((stream) => stream.open)).toBe(true)
    expect(await revoked(sidecar)).toBe(before)
    await sidecar.revoke({ all: true })
    await Promise.all(streams.map((stream) => stream.broken))
  })

  it('no login with the earlier password gets through, even one that was under way', async () => {
    const earlier = password
    const answered: string[] = []
    let streams: readonly Stream[] = []
    const { access_token } = await sidecar.grant(earlier)
    streams = await openStreams(sidecar, access_token)
    let over = false
    const clients = Array.from({ length: 4 }, async () => {
      for (;;) {
        const begun = over
        const answer = await sidecar.login(earlier)
        if (answer.status !== 200) return answer.status
        answered.push(String(answer.json().access_token))
        expect(begun).toBe(false)
      }
    })
    password = 'in a hurry'
    site.setPassword(password)
    changes += 1
    await Promise.all(streams.map((stream) => stream.broken))
    over = true
    expect(await Promise.all(clients)).toEqual([400, 400, 400, 400])
    expect(answered.length).toBeGreaterThan(0)
    const statuses = await Promise.all(answered.map((token) => sidecar.use(token)))
    expect(new Set(statuses)).toEqual(new Set([401]))
  })

  it('was logged once each time, and its revocation too', async () => {
    await sidecar.stop()
    expect(sidecar.logged(CHANGED)).toHaveLength(changes)
    const lines = sidecar.logged('tokens revoked').filter(({ reason }) => reason === 'password_changed')
    expect(lines).toHaveLength(changes)
    for (const [msg, count] of awaited) expect(sidecar.logged(msg)).toHaveLength(count)
    expect(JSON.stringify(sidecar.log)).not.toMatch(/in a hurry|secret number/)
  })
})

it(
  'H75 C8 a password behind a swapped symbolic link, as Kubernetes does with its secrets, takes every token within a second',
  WITHIN_A_SECOND,
  async () => {
    const site = await prepareSite({ transport: 'tls' })
    holdAnswers(site.device)
    const folder = join(site.directory, 'secret')
    for (const version of ['old', 'new']) {
      mkdirSync(join(folder, `..${version}`), { recursive: true })
      writeFileSync(join(folder, `..${version}`, 'password'), version)
    }
    symlinkSync('..old', join(folder, '..data'))
    symlinkSync('..data/password', join(folder, 'password'))
    site.configure({ password: { file: join(folder, 'password') } })
    const sidecar = await site.serve()
    const { access_token } = await sidecar.grant('old')
    const streams = await openStreams(sidecar, access_token)
    const start = performance.now()
    symlinkSync('..new', join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    rmSync(join(folder, '..old'), { recursive: true })
    await Promise.all(streams.map((stream) => stream.broken))
    expect(await sidecar.use(access_token)).toBe(401)
    expect(performance.now() - start).toBeLessThan(1000)
    expect((await sidecar.login('old')).status).toBe(400)
    expect((await sidecar.login('new')).status).toBe(200)
  },
)

it('C8 a password that was changed while the sidecar was down takes every stored token at the start', async () => {
  const site = await prepareSite()
  const first = await site.serve()
  const { access_token, refresh_token } = await first.grant()
  await first.kill()
  utimesSync(site.passwordFile, new Date(), new Date())

  const second = await site.serve()
  expect(await second.use(access_token)).toBe(200) // touched is not changed
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

  // Changed back: what was dropped stays dropped.
  site.setPassword(`${PASSWORD}\n`)
  const fourth = await site.serve()
  expect(await Promise.all([access_token, fresh.access_token].map((token) => fourth.use(token)))).toEqual([
    401, 401,
  ])
})

it('H71 C8 a token given for a password that has just changed survives a kill straight afterwards', async () => {
  const site = await prepareSite({ transport: 'tls' })
  holdAnswers(site.device)
  const first = await site.serve()
  const streams = await openStreams(first, (await first.grant()).access_token)
  site.setPassword('just changed\n')
  await Promise.all(streams.map((stream) => stream.broken))
  const { access_token } = await first.grant('just changed')
  await first.kill()
  expect(await (await site.serve()).use(access_token)).toBe(200)
})
