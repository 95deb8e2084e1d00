import { hash } from 'node:crypto'
import { once } from 'node:events'
import { renameSync, rmSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { accountIn } from '../../src/password/user-account.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil } from '../support/clock.ts'
import { logInAs } from '../support/passwords.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { PASSWORDS, VECTORS } from './vectors.ts'

const DAY = 86_400_000
/** Takes no time to verify. */
const HASH = VECTORS.find(([tool]) => tool === 'htpasswd -nb -s')?.[2] ?? ''
const NOW = 20_000 * DAY

it.each([
  ['!', 'the account is locked'],
  ['!!', 'the account is locked'],
  ['*', 'the account is locked'],
  ['*LK*', 'the account is locked'],
  [`!${HASH}`, 'the account is locked'],
  [`*LOCKED*${HASH}`, 'the account is locked'],
  ['', 'it is empty, and an empty password is never accepted'],
])('H234 an entry with %j has no password', (field, absent) => {
  for (const isShadow of [false, true])
    expect(accountIn(`a:x\nuser:${field}:1\n`, 'user', isShadow, NOW)).toMatchObject({ absent })
})

it('H234 a user without an entry is gone, but not in a file that may be cut before it', () => {
  const absent = 'it has no user "user"'
  for (const text of ['', 'other:x\n', 'users:x\n', '#user:x\n', 'other:x\r\n'])
    expect(accountIn(text, 'user', false, NOW), text).toEqual({ absent, isGone: true })
  expect(accountIn('other:x\nuse', 'user', false, NOW)).toEqual({
    reason: 'it has no user "user", and no end of line at its end',
  })
})

/** The dates of shadow(5) behind the hash: changed, min, max, warn, inactive, expiry, reserved. */
const entryOf = (dates: string): string => `user:${HASH}:${dates}\n`

it.each([
  ['19000:0:99999:7:::', undefined],
  ['19000:0:99999:7::20001:', 20_001],
  // The password has to be changed at the next login, which nobody can do here: it goes on.
  ['0:0:99999:7:::', undefined],
  ['19000:0:90:7:::', undefined],
  ['19000:0:999:7:30::', 20_030],
  ['19000:0:999:7:30:20010:', 20_010],
  ['19000:0:999:7:-1::', undefined],
])('H234 with the dates %s an account ends on the day %s', (dates, day) => {
  const until = day === undefined ? undefined : day * DAY
  expect(accountIn(entryOf(dates), 'user', true, NOW)).toEqual({ field: HASH, until })
  if (until === undefined) return
  expect(accountIn(entryOf(dates), 'user', true, until - 1)).toHaveProperty('field')
  expect(accountIn(entryOf(dates), 'user', true, until)).toMatchObject({ isGone: false })
})

it('H234 an expired account is told with its date, 0 is one that has always been over, and an htpasswd file has no dates', () => {
  const expired = entryOf('19000:0:99999:7::19999:')
  expect(accountIn(expired, 'user', true, NOW)).toEqual({
    absent: 'the account expired on 2024-10-03',
    isGone: false,
  })
  expect(accountIn(entryOf('19000:0:99999:7::0:'), 'user', true, NOW)).toHaveProperty('absent')
  expect(accountIn(entryOf('19000:0:1:7:2::'), 'user', true, NOW)).toMatchObject({
    absent: expect.stringMatching(/^its password became too old on /),
  })
  expect(accountIn(expired, 'user', false, NOW)).toHaveProperty('field', HASH)
  // A line that is cut in the middle of a date says nothing about it.
  expect(accountIn(entryOf('19000:0:99999:7::19'), 'user', true, NOW)).toHaveProperty('field', HASH)
})

interface Table {
  readonly file: string
  /** Replaces the file, as `usermod` and `htpasswd` do. */
  write(text: string): void
}

function tableOf(text: string): Table {
  const file = join(temporaryDirectory(), 'table')
  const write = (next: string): void => {
    writeFileSync(`${file}.new`, next, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
  write(text)
  return { file, write }
}

const line = (user: string, hash = HASH, dates = '19000:0:99999:7:::'): string => `${user}:${hash}:${dates}\n`
const password = PASSWORDS.unicode

const logIn = async (sidecar: TestSidecar): Promise<number> =>
  (await sidecar.postToken({ grant_type: 'password', password })).status
const use = async (sidecar: TestSidecar, token: unknown): Promise<number> =>
  (await sidecar.request({ token: String(token) })).status

/** Far longer than the two seconds after which a user is gone. */

it.each<[string, (user: string) => string]>([
  ['locked by usermod -L', (user) => line('root', '*') + line(user, `!${HASH}`)],
  ['locked as on Solaris', (user) => line(user, '*LK*')],
  ['expired', (user) => line(user, HASH, '19000:0:99999:7::19500:')],
  ['without a password', (user) => line(user, '')],
  ['gone, as after userdel', () => line('root', '*')],
  ['the last one that htpasswd -D deletes', () => ''],
])(
  'C8 H234 an account that is %s: logins are refused, tokens end, and do not come back',
  async (_how, change) => {
    const table = tableOf(line('user'))
    const config: YamlPart = { password: { file: undefined, shadow: { file: table.file, user: 'user' } } }
    const sidecar = await startSidecar({ config })
    const { access_token, refresh_token } = (
      await sidecar.postToken({ grant_type: 'password', password })
    ).json()
    expect(await use(sidecar, access_token)).toBe(200)
    table.write(change('user'))
    await passUntil(sidecar.clock, expect.poll(() => use(sidecar, access_token)).toBe(401))
    expect(await logIn(sidecar)).toBe(400)
    expect(sidecar.overview.condition().password).toMatchObject({
      problem: null,
      absent: expect.stringContaining(`password file ${table.file}: `),
    })
    expect(sidecar.logLines().filter((each) => each.includes('"there is no password: '))).toHaveLength(1)
    table.write(line('user'))
    await passUntil(sidecar.clock, expect.poll(() => logIn(sidecar)).toBe(200))
    expect(sidecar.overview.condition().password.absent).toBe(null)
    expect(await use(sidecar, access_token)).toBe(401)
    const refreshed = await sidecar.postToken({
      grant_type: 'refresh_token',
      refresh_token: String(refresh_token),
    })
    expect(refreshed.status).toBe(400)
  },
)

it('C8 H234 an account expires by time alone, and is valid again when a clock that was wrong is set back', async () => {
  const today = Math.floor(Date.now() / DAY)
  const table = tableOf(line('user', HASH, `19000:0:99999:7::${today + 2}:`))
  const config: YamlPart = { password: { file: undefined, shadow: { file: table.file, user: 'user' } } }
  const sidecar = await startSidecar({ config })
  const { access_token } = (await sidecar.postToken({ grant_type: 'password', password })).json()
  sidecar.clock.jumpWall(2 * DAY)
  await passUntil(sidecar.clock, expect.poll(() => use(sidecar, access_token)).toBe(401))
  expect(await logIn(sidecar)).toBe(400)
  sidecar.clock.jumpWall(-2 * DAY)
  await passUntil(sidecar.clock, expect.poll(() => logIn(sidecar)).toBe(200))
  expect(await use(sidecar, access_token)).toBe(401)
})

it('C8 H234 of several names only the one that is locked or gone ends, also over a restart', async () => {
  const [one, two] = ['first secret', 'second secret']
  const sha = (text: string): string => `{SHA}${hash('sha1', text, 'base64')}`
  const [first, second] = [line('one', sha(one)), line('two', sha(two))]
  const table = tableOf(first + second)
  const named = (name: string) => ({ name, htpasswd: { file: table.file, user: name } })
  const directory = temporaryDirectory()
  const config: YamlPart = {
    password: undefined,
    passwords: [named('one'), named('two')],
    tokens: { store: 'file' },
    state_dir: directory,
  }
  const running = await startSidecar({ config })
  const kept = await logInAs(running, 'one', one)
  const ended = await logInAs(running, 'two', two)
  table.write(first + line('two', `!${sha(two)}`))
  await passUntil(running.clock, expect.poll(() => use(running, ended.access_token)).toBe(401))
  expect(await use(running, kept.access_token)).toBe(200)
  expect(running.overview.condition().password.absent).toMatch(/^two: .*: the account is locked$/)
  await running.stop()

  const again = await startSidecar({ config })
  expect(await use(again, kept.access_token)).toBe(200)
  expect((await again.postToken({ grant_type: 'password', password: two })).status).toBe(400)
  table.write(first + second)
  const logInAgain = () => again.postToken({ grant_type: 'password', password: two })
  await passUntil(again.clock, expect.poll(async () => (await logInAgain()).status).toBe(200))
  expect(await use(again, ended.access_token)).toBe(401)
  await again.stop()
})

it.each([
  ['locked', line('user', `!${HASH}`)],
  ['expired', line('user', HASH, '19000:0:99999:7::19500:')],
])(
  'C8 H234 an account that is %s while Postern is stopped ends its tokens at the start, and unlocking revives none',
  async (_how, changed) => {
    const table = tableOf(line('user'))
    const config: YamlPart = {
      password: { file: undefined, shadow: { file: table.file, user: 'user' } },
      tokens: { store: 'file' },
      state_dir: temporaryDirectory(),
    }
    const before = await startSidecar({ config })
    const { access_token } = (await before.postToken({ grant_type: 'password', password })).json()
    await before.stop()
    table.write(changed)
    const meanwhile = await startSidecar({ config })
    expect(await use(meanwhile, access_token)).toBe(401)
    expect(await logIn(meanwhile)).toBe(400)
    expect(meanwhile.logLines().join('\n')).toContain('there is no password')
    await meanwhile.stop()
    table.write(line('user'))
    const after = await startSidecar({ config })
    expect(await use(after, access_token)).toBe(401)
    expect(await logIn(after)).toBe(200)
  },
)

/** While a file changes, it is read at this interval (ms). A user is gone after 27 reads without it. */
const LOOK = 75

it('H75 H234 a table that is empty, cut or missing for a moment ends nothing', async () => {
  const table = tableOf(line('root', '*') + line('user'))
  const config: YamlPart = { password: { file: undefined, shadow: { file: table.file, user: 'user' } } }
  const sidecar = await startSidecar({ config })
  const { access_token } = (await sidecar.postToken({ grant_type: 'password', password })).json()
  // The kernel tells it after the sidecar, which watches the folder, too.
  const notices = watch(dirname(table.file))
  closeLater(() => notices.close())
  // Written in place, in pieces, as `cp` and editors do. Each look at the file finds a part of it.
  for (const part of [
    '',
    'root:*',
    line('root', '*'),
    `${line('root', '*')}us`,
    line('root', '*') + line('user'),
  ]) {
    const notified = once(notices, 'change')
    writeFileSync(table.file, part)
    await notified
    for (let look = 0; look < 4; look += 1) {
      await sidecar.clock.advance(LOOK)
      expect(await use(sidecar, access_token), part).toBe(200)
    }
    expect(await logIn(sidecar), part).toBe(200)
  }
  rmSync(table.file)
  await passUntil(
    sidecar.clock,
    expect.poll(() => sidecar.overview.condition().password.problem).not.toBe(null),
  )
  expect(await use(sidecar, access_token)).toBe(200)
  expect(sidecar.overview.condition().password.absent).toBe(null)
})
