import { describe, expect, it } from 'vitest'
import type { Hook, HookAnswer, HookQuestion } from '../../src/password/hook.ts'
import { openHookPassword } from '../../src/password/hook-source.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { stillClock } from '../support/clock.ts'
import { expectError } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { accessLines } from '../support/records.ts'
import { type SidecarOptions, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { startHook, type TestHook } from './hook.ts'

/** Starts a sidecar whose password a hook checks. */
async function startHooked(hook: TestHook, { config = {}, ...options }: SidecarOptions = {}) {
  const password = { file: undefined, socket: hook.socket }
  const sidecar = await startSidecar({ password: hook.password, ...options, config: { password, ...config } })
  return sidecar
}

const logIn = (sidecar: TestSidecar, password: string, more: Readonly<Record<string, string>> = {}) =>
  sidecar.postToken({ grant_type: 'password', password, ...more })

const use = async (sidecar: TestSidecar, token: string): Promise<number> =>
  (await sidecar.request({ token })).status

/** The messages of the log from `warn` on, with their reason. */
const complaints = (sidecar: TestSidecar): string[] =>
  sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ level, msg }) => level >= 40 && /hook|password/.test(msg) && !msg.startsWith('insecure'))
    .map(({ msg, reason = '' }) => `${msg}${reason && `: ${reason}`}`)

const MINUTE = 60_000
const SILENT =
  'the password hook gives no answer: logins get 500, and tokens stay valid; postern check asks it, too'
const UNFOLLOWED =
  'the password hook gives no fingerprint: tokens stay valid when the password changes; see password.socket'

const AGAIN = 'the password source can be used again'

/** A login whose question the hook has got, and answers only when the test says so. */
async function heldLogin(hook: TestHook, begin: () => Promise<Response>) {
  const held = Promise.withResolvers<(answer: string) => void>()
  hook.answer = (_line, peer) => {
    hook.answer = undefined
    held.resolve((answer) => void peer.end(answer))
  }
  const response = begin()
  return { response, answer: await held.promise }
}

const NO_EVENTS = { changed() {}, async learned() {}, unfollowed() {}, unanswered() {}, restored() {} }

/** A hook without a program. */
const fakeHook = (ask: Hook['ask']): Hook => ({ where: 'here', async ready() {}, ask, close() {} })

const isQuestion = (line: string): boolean => line === '{"fingerprint":true}\n'

describe('H360 A login with password.socket', () => {
  it('gets tokens if the hook says right, and invalid_grant if it says wrong; the hook gets its username and its password as they came', async () => {
    const hook = await startHook({ password: 'a"b\n\té' })
    const sidecar = await startHooked(hook)
    expect(await use(sidecar, (await sidecar.grant()).access_token)).toBe(200)
    expectError(await logIn(sidecar, 'x', { username: 'näme"' }), 400, 'invalid_grant')
    expectError(await logIn(sidecar, 'e\u0301'), 400, 'invalid_grant')
    expect(hook.lines.map((line) => JSON.parse(line))).toEqual([
      { fingerprint: true },
      { user: null, password: 'a"b\n\té' },
      { user: 'näme"', password: 'x' },
      { user: null, password: 'e\u0301' },
    ])
    expect(await sidecar.metric('postern_password_failures_total')).toBe(2)
  })

  it.each([
    ['nothing', ''],
    ['something else', 'maybe\n'],
    ['a line that was cut off', 'right'],
  ])('gets 500 if the hook answers %s, and is no guess', async (_what, answer) => {
    const hook = await startHook()
    const sidecar = await startHooked(hook, { config: { limits: { wrong_passwords: 'slow' } } })
    hook.answer = (line, peer) => peer.end(isQuestion(line) ? 'right one\n' : answer)
    // The fifth wrong password of a client would wait.
    for (let count = 0; count < 6; count++) {
      const response = await logIn(sidecar, hook.password)
      expectError(response, 500, 'server_error')
      expect(response.header('proxy-status')).toContain('proxy_internal_error')
    }
    expect(await sidecar.metric('postern_password_failures_total')).toBe(0)
    expect(await sidecar.metric('postern_refusals_total', { reason: 'password_unchecked' })).toBe(6)
    expect(accessLines(sidecar).at(-1)).toMatchObject({ refusal: 'password-unchecked', status: 500 })
    hook.answer = undefined
    expect((await logIn(sidecar, hook.password)).status).toBe(200)
  })

  it('H32 shares a question that waits only with the same username and password; at most eight are open', async () => {
    const asked: { readonly user: string | null; readonly answer: (answer: HookAnswer) => void }[] = []
    const hook = fakeHook((question) =>
      'fingerprint' in question
        ? Promise.resolve({ verdict: 'right', fingerprint: 'one' })
        : new Promise<HookAnswer>((answer) => asked.push({ user: question.user, answer })),
    )
    using source = await openHookPassword(stillClock(), hook, NO_EVENTS, () => {})
    const verify = (password: string, username?: string) => source.verify(password, '192.0.2.1', username)
    const first = Array.from({ length: 8 }, (_, n) => verify(`p${n}`))
    const later = [verify('same', 'a'), verify('same', 'b'), verify('same', 'a'), verify('same')]
    expect(asked).toHaveLength(8)
    for (const { answer } of asked) answer({ verdict: 'wrong' })
    expect((await Promise.all(first)).map(({ result }) => result)).toEqual(Array(8).fill('wrong'))
    expect(
      asked
        .slice(8)
        .map(({ user }) => user)
        .toSorted(),
    ).toEqual(['a', 'b', null])
    for (const { user, answer } of asked) answer({ verdict: user === 'a' ? 'right' : 'wrong' })
    const results = await Promise.all(later)
    expect(results.map(({ result }) => result)).toEqual(['right', 'wrong', 'right', 'wrong'])
  })

  it('H32 is refused only to the client that sends a hundred at once, and another one has its turn', async () => {
    let open = 0
    let most = 0
    const answers: (() => void)[] = []
    const ask = (question: HookQuestion): Promise<HookAnswer> => {
      if ('fingerprint' in question) return Promise.resolve({ verdict: 'right', fingerprint: 'one' })
      open += 1
      most = Math.max(most, open)
      return new Promise((resolve) => {
        answers.push(() => {
          open -= 1
          resolve({ verdict: question.password === 'mine' ? 'right' : 'wrong' })
        })
      })
    }
    using source = await openHookPassword(stillClock(), fakeHook(ask), NO_EVENTS, () => {})
    const crowd = Array.from({ length: 100 }, (_, n) => source.verify(`p${n}`, '192.0.2.1'))
    const other = source.verify('mine', '192.0.2.2')
    while (open > 0) {
      for (const answer of answers.splice(0)) answer()
      await nextTurn()
    }
    expect(most).toBe(8)
    expect((await other).result).toBe('right')
    const results = (await Promise.all(crowd)).map(({ result }) => result)
    expect(results.filter((result) => result === 'overloaded')).toHaveLength(101 - 8 - 64)
    expect(results.filter((result) => result === 'wrong')).toHaveLength(8 + 63)
  })

  it('waits for at most two questions for the fingerprint, however many logins need it', async () => {
    const questions: ((answer: HookAnswer) => void)[] = []
    const ask = (): Promise<HookAnswer> => new Promise((answer) => questions.push(answer))
    const opening = openHookPassword(stillClock(), fakeHook(ask), NO_EVENTS, () => {})
    await nextTurn()
    questions.shift()?.({ failed: 'mute' })
    using source = await opening
    const logins = Array.from({ length: 8 }, (_, n) => source.verify(`p${n}`, '192.0.2.1'))
    let asked = 0
    while (questions.length > 0 || asked === 0) {
      await nextTurn()
      asked += questions.length
      for (const answer of questions.splice(0)) answer({ failed: 'mute' })
      await nextTurn()
    }
    expect((await Promise.all(logins)).map(({ result }) => result)).toEqual(Array(8).fill('unchecked'))
    expect(asked).toBeLessThanOrEqual(2)
  })
})

describe('C8 The fingerprint of the hook', () => {
  it('is asked for at the start and once a minute, and another one ends the tokens', async () => {
    const hook = await startHook()
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    hook.fingerprint = 'two'
    await sidecar.clock.advance(MINUTE - 1)
    expect(hook.lines.filter(isQuestion)).toHaveLength(1)
    expect(await use(sidecar, token)).toBe(200)
    await sidecar.clock.advance(1)
    await expect.poll(() => use(sidecar, token)).toBe(401)
    expect(hook.lines.filter(isQuestion)).toHaveLength(2)
    expect(complaints(sidecar)).toEqual(['the password has changed'])
    expect(await use(sidecar, await sidecar.token())).toBe(200)
  })

  it('ends the tokens at once if a login brings another one, and that login gets tokens that last', async () => {
    const hook = await startHook()
    const sidecar = await startHooked(hook)
    const before = await sidecar.token()
    hook.fingerprint = 'two'
    const after = await sidecar.token()
    expect(await use(sidecar, before)).toBe(401)
    expect(await use(sidecar, after)).toBe(200)
    await sidecar.clock.advance(MINUTE)
    expect(await use(sidecar, after)).toBe(200)
  })

  it('of a late answer about the former password is not taken for a change back: its login gets 500, is no guess, and is not asked again', async () => {
    const hook = await startHook()
    const sidecar = await startHooked(hook)
    const late = await heldLogin(hook, () => logIn(sidecar, 'old'))
    hook.fingerprint = 'two'
    const token = await sidecar.token()
    late.answer('right one\n')
    expectError(await late.response, 500, 'server_error')
    expect(hook.lines.filter((line) => line.includes('"old"'))).toHaveLength(1)
    expect(await sidecar.metric('postern_password_failures_total')).toBe(0)
    expect(await use(sidecar, token)).toBe(200)
    expect(complaints(sidecar)).toEqual(['the password has changed'])
  })

  it.each([
    ['with the present one gets tokens that last', 'right two\n', 200, 0],
    ['without one, about the former, gets none', 'right\n', 500, 0],
    ['that says wrong is one guess', 'wrong\n', 400, 1],
  ])(
    'that another login brings meanwhile: an answer %s, and is asked for once',
    async (_what, answer, status, guesses) => {
      const hook = await startHook()
      const sidecar = await startHooked(hook)
      const login = await heldLogin(hook, () => logIn(sidecar, 'mine'))
      hook.fingerprint = 'two'
      const other = await sidecar.token()
      login.answer(answer)
      const response = await login.response
      expect(response.status).toBe(status)
      expect(hook.lines.filter((line) => line.includes('"mine"'))).toHaveLength(1)
      expect(await sidecar.metric('postern_password_failures_total')).toBe(guesses)
      await sidecar.clock.advance(MINUTE)
      if (status === 200) expect(await use(sidecar, String(response.json().access_token))).toBe(200)
      expect(await use(sidecar, other)).toBe(200)
    },
  )

  it('that is always another one beside a password gives no token, which the log says once, until it is the same', async () => {
    const hook = await startHook()
    const sidecar = await startHooked(hook)
    const before = await sidecar.token()
    hook.answer = (line, peer) => peer.end(isQuestion(line) ? 'right one\n' : 'right other\n')
    for (let count = 0; count < 3; count++) {
      expectError(await logIn(sidecar, hook.password), 500, 'server_error')
      expectError(await logIn(sidecar, hook.password), 500, 'server_error')
      await sidecar.clock.advance(MINUTE)
    }
    const reason = `password hook ${hook.socket}: it gives another fingerprint beside a right password than to the question for it`
    expect(complaints(sidecar)).toEqual([`${SILENT}: ${reason}`])
    expect(sidecar.logLines().join('\n')).not.toContain(AGAIN)
    expect(sidecar.overview.condition().password).toMatchObject({ problem: reason })
    expect(await sidecar.metric('postern_password_failures_total')).toBe(0)
    expect(await sidecar.metric('postern_tokens_issued_total')).toBe(1)
    expect(await use(sidecar, before)).toBe(200)
    hook.answer = undefined
    expect(await use(sidecar, await sidecar.token())).toBe(200)
    expect(sidecar.overview.condition().alarms).toEqual([])
    expect(sidecar.logLines().join('\n')).toContain(AGAIN)
  })

  it('that only logins bring counts for nothing, which the log says', async () => {
    const hook = await startHook()
    hook.answer = (line, peer) => peer.end(isQuestion(line) ? 'right\n' : 'right other\n')
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    await sidecar.clock.advance(MINUTE)
    expect(await use(sidecar, token)).toBe(200)
    expect(complaints(sidecar)).toEqual([UNFOLLOWED])
  })

  it.each([
    ['the same', 'one', 200],
    ['another', 'two', 401],
    ['none', undefined, 401],
  ])('is %s after a restart: %s', async (_what, fingerprint, status) => {
    const hook = await startHook()
    const first = await startHooked(hook, { config: { tokens: { store: 'file' } } })
    const config = { tokens: { store: 'file' }, state_dir: `${first.directory}/state` }
    const token = await first.token()
    await first.stop()
    hook.fingerprint = fingerprint
    const second = await startHooked(hook, { config })
    expect(await use(second, token)).toBe(status)
  })

  it.each([
    ['the same hook', 200],
    ['another hook', 401],
  ])('that is missing at %s after a restart: %s', async (which, status) => {
    const hook = await startHook({ fingerprint: undefined })
    const first = await startHooked(hook, { config: { tokens: { store: 'file' } } })
    const config = { tokens: { store: 'file' }, state_dir: `${first.directory}/state` }
    const token = await first.token()
    await first.stop()
    const next = which === 'another hook' ? await startHook({ fingerprint: undefined }) : hook
    expect(await use(await startHooked(next, { config }), token)).toBe(status)
  })

  it('decides about the tokens of the last run when the hook answers again', async () => {
    const hook = await startHook()
    const first = await startHooked(hook, { config: { tokens: { store: 'file' } } })
    const config = { tokens: { store: 'file' }, state_dir: `${first.directory}/state` }
    const token = await first.token()
    await first.stop()
    hook.answer = (_line, peer) => peer.end()
    hook.fingerprint = 'two'
    const second = await startHooked(hook, { config })
    expect(await use(second, token)).toBe(200)
    expectError(await logIn(second, hook.password), 500, 'server_error')
    hook.answer = undefined
    await second.clock.advance(MINUTE)
    await expect.poll(() => use(second, token)).toBe(401)
  })

  it('that is missing lets tokens live, which the log says, and nothing more is asked', async () => {
    const hook = await startHook({ fingerprint: undefined })
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    hook.password = 'another'
    await sidecar.clock.advance(10 * MINUTE)
    expect(await use(sidecar, token)).toBe(200)
    expect(hook.lines.filter(isQuestion)).toHaveLength(1)
    expect(complaints(sidecar)).toEqual([UNFOLLOWED])
  })

  it('may be unknown to the hook, which then finds no right password in the question', async () => {
    const hook = await startHook()
    hook.answer = (line, peer) => peer.end(line.includes('"right one"') ? 'right\n' : 'wrong\n')
    const sidecar = await startHooked(hook)
    expect(await use(sidecar, await sidecar.token())).toBe(200)
    expect(complaints(sidecar)).toEqual([UNFOLLOWED])
  })

  it('that the hook does not give any more changes nothing', async () => {
    const hook = await startHook()
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    hook.fingerprint = undefined
    await sidecar.clock.advance(MINUTE)
    const told = [`${SILENT}: password hook ${hook.socket}: it does not give its fingerprint any more`]
    await expect.poll(() => complaints(sidecar)).toEqual(told)
    expect(await use(sidecar, token)).toBe(200)
    for (const count of [3, 4, 5]) {
      expect((await logIn(sidecar, hook.password)).status).toBe(200)
      await sidecar.clock.advance(MINUTE)
      await expect.poll(() => hook.lines.filter(isQuestion).length).toBe(count)
    }
    expect(complaints(sidecar)).toEqual(told)
    expect(sidecar.logLines().join('\n')).not.toContain(AGAIN)
  })
})

describe('H360 A hook that is gone', () => {
  it('is told once by the log, by an alarm and by a metric, until it is back', async () => {
    const hook = await startHook()
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    await hook.stop()
    for (let count = 0; count < 3; count++)
      expectError(await logIn(sidecar, hook.password), 500, 'server_error')
    expect(await use(sidecar, token)).toBe(200)
    const reason = `password hook ${hook.socket}: there is no such socket`
    expect(complaints(sidecar)).toEqual([`${SILENT}: ${reason}`])
    expect(sidecar.overview.condition()).toMatchObject({
      password: { source: 'hook', problem: reason },
      alarms: [{ name: 'PosternStoreErrors', level: 'critical' }],
    })
    expect(await sidecar.metric('postern_store_errors_total', { store: 'password' })).toBe(3)
    await hook.start()
    await sidecar.clock.advance(MINUTE)
    await expect.poll(() => sidecar.overview.condition().alarms).toEqual([])
    expect(sidecar.logLines().join('\n')).toContain(AGAIN)
  })

  it('at the start ends the start only if its socket is missing or not safe', async () => {
    const hook = await startHook()
    hook.answer = (_line, peer) => peer.end()
    const sidecar = await startHooked(hook)
    expect(complaints(sidecar)).toEqual([
      `${SILENT}: password hook ${hook.socket}: it closed the connection without an answer`,
    ])
    await hook.stop()
    await expect(startHooked(hook)).rejects.toThrow(
      `password.socket: ${hook.socket}: there is no such socket`,
    )
  })
})

describe('H362 A reload of password.socket', () => {
  it.each([
    ['keeps the tokens if the fingerprint is the same', 'one', 'one', 200],
    ['ends the tokens if the fingerprint is another', 'one', 'two', 401],
    ['ends the tokens if there is no fingerprint any more', 'one', undefined, 401],
    ['ends the tokens if neither hook gives a fingerprint', undefined, undefined, 401],
  ])('%s', async (_what, before, fingerprint, status) => {
    const hook = await startHook({ fingerprint: before })
    const other = await startHook({ password: 'other', fingerprint })
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    expect(await sidecar.reload({ password: { socket: other.socket } })).toEqual({
      live: ['password.socket'],
      restart: [],
    })
    expect(await use(sidecar, token)).toBe(status)
    expect((await logIn(sidecar, 'other')).status).toBe(200)
    expectError(await logIn(sidecar, hook.password), 400, 'invalid_grant')
  })

  it('is refused, and changes nothing, if no program answers there', async () => {
    const [hook, other] = [await startHook(), await startHook()]
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    other.answer = (_line, peer) => peer.end()
    await expect(sidecar.reload({ password: { socket: other.socket } })).rejects.toThrow(
      `password.socket: ${other.socket}: it closed the connection without an answer; start its program, or correct the path`,
    )
    await other.stop()
    await expect(sidecar.reload({ password: { socket: other.socket } })).rejects.toThrow('no such socket')
    expect(await use(sidecar, token)).toBe(200)
    expect((await logIn(sidecar, hook.password)).status).toBe(200)
  })

  it('to a hook that never answers fails within its ten seconds, and asks it once', async () => {
    const [hook, mute] = [await startHook(), await startHook()]
    const sidecar = await startHooked(hook)
    const token = await sidecar.token()
    const asked = Promise.withResolvers<void>()
    mute.answer = () => asked.resolve()
    const refused = sidecar.reload({ password: { socket: mute.socket } }).catch((error) => error.message)
    await asked.promise
    await sidecar.clock.advance(10_000)
    expect(await refused).toContain('it did not give an answer within 10 s')
    expect(mute.lines).toHaveLength(1)
    expect(await use(sidecar, token)).toBe(200)
  })

  it('in place of one that never answered takes effect at once', async () => {
    const [hook, other] = [await startHook(), await startHook({ password: 'other' })]
    hook.answer = (_line, peer) => peer.end()
    const sidecar = await startHooked(hook)
    await sidecar.reload({ password: { socket: other.socket } })
    expect((await logIn(sidecar, 'other')).status).toBe(200)
    expect(sidecar.overview.condition().alarms).toEqual([])
  })

  it('to a password file waits for a restart', async () => {
    const hook = await startHook()
    const sidecar = await startHooked(hook)
    const next = { password: { socket: undefined, file: sidecar.passwordFile } }
    expect(await sidecar.reload(next)).toMatchObject({
      live: [],
      restart: expect.arrayContaining(['password.file']),
    })
    expect((await logIn(sidecar, hook.password)).status).toBe(200)
  })
})
