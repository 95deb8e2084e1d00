// The default import, as the source has it: the calls on it are counted.
import crypto, { argon2Sync, randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { PASSWORD } from '../../src/commands/check/passwords.ts'
import { loadConfig } from '../../src/config/load.ts'
import { namesInText } from '../../src/http/scope.ts'
import { PasswordSource } from '../../src/password/source.ts'
import { openPasswords, type Passwords } from '../../src/password/sources.ts'
import { prepareSite } from '../process/serve.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { logInAs, makeNames, type Names, passwordOf } from '../support/passwords.ts'
import { startSidecar } from '../support/sidecar.ts'

/** Derivations since the last reset, those that run, and the most that ran at once. */
const derivations = { count: 0, now: 0, most: 0 }

const argon2 = crypto.argon2
const counting: typeof argon2 = (algorithm, parameters, done) => {
  derivations.count += 1
  derivations.now += 1
  derivations.most = Math.max(derivations.most, derivations.now)
  argon2(algorithm, parameters, (error, derived) => {
    derivations.now -= 1
    done(error, derived)
  })
}
beforeEach(() => {
  vi.spyOn(crypto, 'argon2').mockImplementation(counting)
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** A line for a password file, as cheap as the format allows. */
function argon2id(password: string): string {
  const nonce = randomBytes(16)
  const parameters = { message: password, nonce, parallelism: 1, tagLength: 32, memory: 8, passes: 1 }
  const [salt, tag] = [nonce, argon2Sync('argon2id', parameters)].map((bytes) =>
    Buffer.from(bytes).toString('base64').replace(/=+$/, ''),
  )
  return `$argon2id$v=19$m=8,t=1,p=1$${salt}$${tag}`
}

let clock = stillClock()
const ambiguous: (readonly string[])[] = []

async function open({ config }: Names): Promise<Passwords> {
  ambiguous.length = 0
  clock = stillClock()
  const sources = config.passwords.map(({ name, file }) => ({
    name: String(name),
    file: String(file),
    key: 'passwords',
  }))
  const passwords = await openPasswords(sources, {
    clock,
    events: { ambiguous: (names) => ambiguous.push(names) },
  })
  closeLater(() => passwords[Symbol.dispose]())
  return passwords
}

const SIXTEEN = Array.from({ length: 16 }, (_, at) => `name-${at}`)
const everything = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, undefined]))

it('H195 H308 each login verifies the password of every name, in one entry of the queue, whichever is right', async () => {
  const names = makeNames(everything(SIXTEEN))
  for (const name of SIXTEEN) names.set(name, argon2id(passwordOf(name)))
  const passwords = await open(names)
  for (const right of ['name-0', 'name-15', undefined]) {
    derivations.count = 0
    const password = right === undefined ? 'wrong' : passwordOf(right)
    expect(await passwords.verify(password, 'client')).toMatchObject(
      right === undefined ? { result: 'wrong' } : { result: 'right', name: right },
    )
    expect(derivations.count, right).toBe(16)
  }
  // A username is compared after that.
  for (const username of ['name-0', 'name-15', 'nobody']) {
    derivations.count = 0
    const result = username === 'nobody' ? 'right' : 'other-name'
    expect(await passwords.verify(passwordOf('name-7'), 'client', username)).toMatchObject({ result })
    expect(derivations.count, username).toBe(16)
  }
  // 66 of 200 different ones are accepted, as of one name, and two are verified at a time.
  derivations.most = 0
  const all = await Promise.all(
    Array.from({ length: 200 }, (_, at) => passwords.verify(`wrong ${at}`, `client ${at}`)),
  )
  expect(all.filter(({ result }) => result === 'wrong')).toHaveLength(66)
  expect(derivations.most).toBe(2)
})

it('H195 logins that share a verification are judged each by its own username', async () => {
  const names = makeNames(everything(['admin', 'monitor']))
  for (const name of ['admin', 'monitor']) names.set(name, argon2id(passwordOf(name)))
  const passwords = await open(names)
  derivations.count = 0
  // The first two begin, and the others wait for one verification.
  const usernames = ['admin', 'monitor', 'admin', 'monitor', undefined, 'nobody']
  const all = await Promise.all(
    usernames.map((username, at) => passwords.verify(passwordOf('monitor'), `client ${at}`, username)),
  )
  const results = all.map(({ result }) => result)
  expect(results).toEqual(['other-name', 'right', 'other-name', 'right', 'right', 'right'])
  expect(derivations.count).toBe(3 * 2)
})

it('H195 a password of two names, however they are stored, logs nobody in, and is reported once until one changes', async () => {
  const names = makeNames(everything(['admin', 'monitor', 'other']))
  names.set('admin', argon2id('the same'))
  names.set('monitor', argon2id('the same'))
  const passwords = await open(names)
  for (let i = 0; i < 3; i += 1)
    expect(await passwords.verify('the same', '')).toMatchObject({ result: 'wrong' })
  expect(ambiguous).toEqual([['admin', 'monitor']])
  expect(await passwords.verify(passwordOf('other'), '')).toMatchObject({ result: 'right', name: 'other' })
  names.set('monitor', 'another')
  await passUntil(clock, expect.poll(() => passwords.generation).toBe(1))
  expect(await passwords.verify('the same', '')).toMatchObject({ result: 'right', name: 'admin' })
  names.set('monitor', 'the same')
  await passUntil(clock, expect.poll(() => passwords.generation).toBe(2))
  expect(await passwords.verify('the same', '')).toMatchObject({ result: 'wrong' })
  expect(ambiguous).toHaveLength(2)
})

it('H195 a fingerprint of each name tells whose password has changed', async () => {
  const names = makeNames(everything(['admin', 'monitor']))
  const passwords = await open(names)
  const salt = randomBytes(16)
  const before = namesInText(await passwords.fingerprint(salt))
  names.set('monitor', 'another')
  await passUntil(clock, expect.poll(() => passwords.generation).toBe(1))
  const after = namesInText(await passwords.fingerprint(salt))
  expect([...before.keys()].sort()).toEqual(['admin', 'monitor'])
  expect(after.get('admin')).toBe(before.get('admin'))
  expect(after.get('monitor')).not.toBe(before.get('monitor'))
})

it('H195 the log and `postern check` name the two, as far as check can see it', async () => {
  const names = makeNames({ admin: undefined, monitor: 'read', other: undefined })
  names.set('monitor', argon2id(passwordOf('admin')))
  const sidecar = await startSidecar({ config: names.config })
  const refused = await sidecar.postToken({ grant_type: 'password', password: passwordOf('admin') })
  expect([refused.status, refused.json().error]).toEqual([400, 'invalid_grant'])
  const [line = ''] = sidecar
    .logLines()
    .filter((each) => each.includes('several names have the same password'))
  expect(JSON.parse(line)).toMatchObject({ level: 50, names: ['admin', 'monitor'] })
  expect(line).not.toContain(passwordOf('admin'))
  await logInAs(sidecar, 'other')

  const site = await prepareSite({ config: names.config })
  const check = await site.postern('check', '--json')
  expect(check.code).not.toBe(0)
  expect(check.stdout).toContain('admin and monitor have the same password')
  expect(check.stdout).not.toContain(passwordOf('admin'))
  names.set('monitor', argon2id('another'))
  expect((await site.postern('check', '--json')).stdout).not.toContain('have the same password')
})

it('H195 two names with the same hash are found by check, too', async () => {
  const names = makeNames({ admin: undefined, monitor: 'read' })
  const line = argon2id('unknown to check')
  for (const name of ['admin', 'monitor']) names.set(name, line)
  const passwords = await open(names)
  expect(await passwords.twins()).toEqual(['admin', 'monitor'])
})

it('`postern check` closes the passwords also if it cannot compare them', async () => {
  const names = makeNames(everything(['admin', 'monitor']))
  names.set('monitor', argon2id('another'))
  const config = loadConfig({
    file: {
      path: 'postern.yaml',
      text: JSON.stringify({ upstream: { url: 'http://192.0.2.7' }, ...names.config }),
    },
  })
  vi.spyOn(crypto, 'argon2').mockImplementation((_algorithm, _parameters, done) =>
    done(new Error('no memory is left'), Buffer.alloc(0)),
  )
  const close = vi.spyOn(PasswordSource.prototype, 'close')
  expect((await PASSWORD.run(config)).result).toMatchObject({
    result: 'failed',
    message: expect.stringContaining('no memory is left'),
  })
  expect(close).toHaveBeenCalledTimes(2)
})
