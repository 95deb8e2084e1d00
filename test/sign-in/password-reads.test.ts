import { expect, it } from 'vitest'
import type { LoginResult, Session } from '../../src/sign-in/scheme.ts'
import { sessionNames } from '../../src/sign-in/session-cookies.ts'
import { createSignIn } from '../../src/sign-in/sign-in.ts'
import { stillClock } from '../support/clock.ts'

const REFUSED = { status: 401, fields: [], body: Buffer.alloc(0) }
const LINE = { method: 'GET', target: '/' }

/** A sign-in with a password that the test sets; undefined: the file cannot be read. Counts how often it is read. */
function signInWith(login: (password: string) => LoginResult) {
  const clock = stillClock()
  const file: { password: string | undefined; reads: number } = { password: 'first', reads: 0 }
  const scheme = {
    login: async (password: string) => login(password),
    isChallenge: () => true,
    names: sessionNames([]),
  }
  async function read(): Promise<string> {
    file.reads += 1
    if (file.password === undefined) throw new Error('it cannot be read')
    return file.password
  }
  const events = { signedIn() {}, refused() {}, unusable() {}, changing() {}, notSignedOut() {} }
  return { file, clock, signIn: createSignIn(scheme, read, clock, events) }
}

const session = (): Session => ({
  proven: false,
  credentialsFor: () => ({ fields: ['Cookie', 'a=b'], nonce: '' }),
})

it('H281 a session that a first response refused costs one read of the password file a second, not one for each request', async () => {
  const { signIn, file, clock } = signInWith(() => ({ kind: 'right', session: session() }))
  await signIn.ready()
  const sent = signIn.credentialsFor(LINE)
  await signIn.renew(REFUSED, sent, true)
  const before = file.reads
  for (let i = 0; i < 20; i += 1) await signIn.ready()
  expect(file.reads - before).toBe(1)
  expect(signIn.credentialsFor(LINE)?.session).toBe(sent?.session)
  await clock.advance(1_000)
  file.password = 'second'
  await signIn.ready()
  expect(file.reads - before).toBe(2)
  expect(signIn.credentialsFor(LINE)?.session).not.toBe(sent?.session)
})

it('H281 nor does a refused password, or a file that cannot be read; a new password is tried within a second', async () => {
  const tried: string[] = []
  const { signIn, file, clock } = signInWith((password) => {
    tried.push(password)
    return password === 'right' ? { kind: 'right', session: session() } : { kind: 'wrong' }
  })
  for (let i = 0; i < 20; i += 1) await signIn.ready()
  // The read of the login, and the one that found the same password again.
  expect(file.reads).toBe(2)
  await clock.advance(1_000)
  file.password = undefined
  for (let i = 0; i < 20; i += 1) await signIn.ready()
  expect(file.reads).toBe(3)
  await clock.advance(1_000)
  file.password = 'right'
  await signIn.ready()
  expect(tried).toEqual(['first', 'right'])
  expect(signIn.credentialsFor(LINE)).toBeDefined()
})
