import { expect, it } from 'vitest'
import type { Fields } from '../../src/http/fields.ts'
import { createSessions } from '../../src/oauth/browser-sessions.ts'
import type { TokenLookup } from '../../src/tokens/look-up.ts'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { stillClock } from '../support/clock.ts'

const HOUR = 3_600_000

type Refreshed = IssuedTokens | 'unavailable' | undefined

function tokensOf(n: number): IssuedTokens {
  return { accessToken: `access ${n}`, refreshToken: `refresh ${n}`, grant: 'g', expiresIn: 3600 }
}

/** The id of a session, from its `Set-Cookie`. */
const idIn = (setCookie = ''): string => /=([^;]+)/.exec(setCookie)?.[1] ?? ''

/** A shared store that answers when it is told to. Valid is only the access token that is named. */
function store() {
  const asked: string[] = []
  const answers: ((refreshed: Refreshed) => void)[] = []
  const revoked: unknown[] = []
  const reasons: string[] = []
  const handedOver: unknown[] = []
  const inFlight: string[] = []
  const clock = stillClock()
  const settings = {
    config: {
      browser: { idle: 12 * HOUR },
      tokens: { refreshLifetime: 168 * HOUR, grantLifetime: 'off' as const },
    },
  }
  const state = { valid: 'access 0' }
  const tokens: Parameters<typeof createSessions>[0] = {
    identify: async (token): Promise<TokenLookup> =>
      token === state.valid ? { kind: 'valid', grant: 'g' } : { kind: 'refused', cause: 'expired' },
    refresh: (token) => {
      asked.push(token)
      return new Promise((resolve) => answers.push(resolve))
    },
    end: (what, reason) => {
      revoked.push(what)
      reasons.push(reason)
      return true
    },
  }
  const sessions = createSessions(tokens, {
    clock,
    live: {
      handOver: (from, to) => handedOver.push([from, to]),
      granted: () => inFlight.map((grant) => ({ grant, client: { address: '192.0.2.7' } })),
    },
    settings,
  })
  const begin = (n: number): string => idIn(sessions.begin(tokensOf(n)))
  const identify = (id: string) => sessions.identify(id, '192.0.2.7', clock.monotonic())
  return {
    sessions,
    begin,
    identify,
    asked,
    answers,
    revoked,
    reasons,
    handedOver,
    inFlight,
    clock,
    settings,
    state,
  }
}

it('H188 requests at the same time share one renewal at a shared store, and a store that is down ends no session', async () => {
  const { sessions, begin, identify: find, asked, answers, state } = store()
  const id = begin(0)
  const identify = () => find(id)
  expect(await identify()).toEqual({ kind: 'valid', grant: 'g' })
  state.valid = 'access 1'
  const down = [identify(), identify(), identify()]
  await expect.poll(() => answers.length).toBe(1)
  answers[0]?.('unavailable')
  expect(await Promise.all(down)).toEqual(down.map(() => ({ kind: 'unavailable' })))
  const renewed = [identify(), identify()]
  await expect.poll(() => answers.length).toBe(2)
  answers[1]?.(tokensOf(1))
  expect(await Promise.all(renewed)).toEqual(renewed.map(() => ({ kind: 'valid', grant: 'g' })))
  expect(asked).toEqual(['refresh 0', 'refresh 0'])
  state.valid = 'none'
  const ended = identify()
  await expect.poll(() => answers.length).toBe(3)
  answers[2]?.(undefined)
  expect(await ended).toEqual({ kind: 'refused', cause: 'expired' })
  expect(sessions.has(id)).toBe(false)
  expect(asked.at(-1)).toBe('refresh 1')
})

it('H188 at 10,000 sessions the first one ends when another begins, with its grant', () => {
  const { sessions, begin, revoked } = store()
  const [first, second] = [begin(0), begin(1)]
  for (let n = 2; n < 10_000; n++) begin(n)
  expect(sessions.has(first)).toBe(true)
  begin(10_000)
  expect([first, second].map((id) => sessions.has(id))).toEqual([false, true])
  expect(revoked).toEqual([{ grants: ['g'] }])
})

it('H188 at 10,000 sessions the one that is unused for longest ends when another begins, not one with an open stream', async () => {
  const { sessions, begin, identify, inFlight, clock, revoked } = store()
  const first = begin(0)
  for (let n = 1; n < 9_999; n++) sessions.begin({ ...tokensOf(n), grant: `of ${n}` })
  const latest = begin(9_999)
  await clock.advance(1)
  inFlight.push('of 1')
  sessions.sweep()
  await identify(first)
  begin(10_000)
  expect([first, latest].map((id) => sessions.has(id))).toEqual([true, true])
  expect(revoked).toEqual([{ grants: ['of 2'] }])
})

const cookieOf = (id: string): Fields => ['Cookie', `__Host-postern=${id}`]

it('H188 a log-out ends the session of its cookie with its grant, and no other', () => {
  const { sessions, begin, revoked } = store()
  const [id, other] = [begin(0), begin(1)]
  expect([sessions.end([]), sessions.end(cookieOf('unknown')), revoked]).toEqual([true, true, []])
  expect(sessions.end(cookieOf(id))).toBe(true)
  expect([id, other].map((each) => sessions.has(each))).toEqual([false, true])
  expect(revoked).toEqual([{ grants: ['g'] }])
  expect([cookieOf(other), cookieOf(id), []].map((fields) => sessions.stateOf(fields))).toEqual([
    'open',
    'ended',
    'none',
  ])
})

it('H188 with a store in this process an expired token is renewed, and a valid one is looked up without a promise', async () => {
  const sessions = createSessions(
    {
      identify: (token) =>
        token === 'access 1' ? { kind: 'valid', grant: 'g' } : { kind: 'refused', cause: 'expired' },
      refresh: () => tokensOf(1),
      end: () => true,
    },
    { clock: stillClock(), live: { handOver() {}, granted: () => [] }, settings: store().settings },
  )
  const id = idIn(sessions.begin(tokensOf(0)))
  expect(await sessions.identify(id, '192.0.2.7', 0)).toEqual({ kind: 'valid', grant: 'g' })
  expect(sessions.identify(id, '192.0.2.7', 0)).toEqual({ kind: 'valid', grant: 'g' })
})

it('H188 a cookie of no session is no credential', async () => {
  const { identify, asked } = store()
  expect(await identify('unknown')).toEqual({ kind: 'refused', cause: 'missing' })
  expect(asked).toEqual([])
})

it('H188 when the login is switched off, all sessions end with their grants, once, and each later one until it is on again', () => {
  const { sessions, begin, revoked, reasons } = store()
  const ids = [begin(0), begin(1)]
  expect([sessions.close(), sessions.close()]).toEqual([true, true])
  expect(ids.map((id) => sessions.has(id))).toEqual([false, false])
  expect(revoked).toEqual([{ grants: ['g', 'g'] }])
  expect(sessions.begin({ ...tokensOf(2), grant: 'late' })).toBeUndefined()
  expect(revoked.slice(1)).toEqual([{ grants: ['late'] }])
  expect(new Set(reasons)).toEqual(new Set(['browser_login_off']))
  sessions.open()
  expect(sessions.has(begin(3))).toBe(true)
})

it.each([
  ['of the same name', 'g', 'a1', 'continued', [['g', 'a1']]],
  ['of another name', 'g', 'admin.a1', 'ended', []],
])('H188 a new login %s replaces the session of its cookie', async (_, earlier, grant, expected, handed) => {
  const { sessions, revoked, handedOver } = store()
  const tokens = { accessToken: 'a', refreshToken: 'r', expiresIn: 1 }
  const id = idIn(sessions.begin({ ...tokens, grant: earlier }))
  expect(await sessions.replace(cookieOf(id), grant)).toBe(expected)
  expect([sessions.has(id), handedOver]).toEqual([false, handed])
  expect(revoked).toEqual([{ grants: [earlier] }])
  expect(await sessions.replace(cookieOf(id), grant)).toBe('continued')
  expect(await sessions.replace([], grant)).toBe('continued')
})

it('H310 a session ends when it had no request for so long, and each request begins that time anew', async () => {
  const { sessions, begin, identify, clock, revoked, reasons } = store()
  const [id, other] = [begin(0), begin(0)]
  for (let i = 0; i < 3; i += 1) {
    await clock.advance(12 * HOUR - 1)
    expect(await identify(id)).toEqual({ kind: 'valid', grant: 'g' })
  }
  sessions.sweep()
  expect([id, other].map(sessions.has)).toEqual([true, false])
  await clock.advance(12 * HOUR)
  expect(await identify(id)).toEqual({ kind: 'refused', cause: 'missing' })
  expect(sessions.has(id)).toBe(false)
  expect([revoked, reasons]).toEqual([
    [{ grants: ['g'] }, { grants: ['g'] }],
    ['browser_idle', 'browser_idle'],
  ])
})

it('H310 a request in flight is a use, and a reload changes the time for sessions that exist', () => {
  const { sessions, begin, inFlight, clock, settings } = store()
  const id = begin(0)
  inFlight.push('g')
  for (let i = 0; i < 3; i += 1) {
    clock.advance(11 * HOUR)
    sessions.sweep()
  }
  expect(sessions.has(id)).toBe(true)
  inFlight.pop()
  clock.advance(HOUR)
  sessions.sweep()
  expect(sessions.has(id)).toBe(true)
  settings.config.browser.idle = HOUR
  sessions.sweep()
  expect(sessions.has(id)).toBe(false)
})

it('H310 a request in flight is a use, also if the next request comes before the look at those in flight', async () => {
  const { sessions, begin, identify, inFlight, clock, reasons } = store()
  const id = begin(0)
  inFlight.push('g')
  await clock.advance(12 * HOUR)
  expect(await identify(id)).toEqual({ kind: 'valid', grant: 'g' })
  inFlight.pop()
  await clock.advance(12 * HOUR - 1)
  sessions.sweep()
  expect([sessions.has(id), reasons]).toEqual([true, []])
  inFlight.push('of another session')
  await clock.advance(1)
  expect(await identify(id)).toEqual({ kind: 'refused', cause: 'missing' })
  expect(reasons).toEqual(['browser_idle'])
})

it('H310 a session that is used all the time ends a week after its login, also if its tokens are renewed for ever', async () => {
  const { sessions, begin, identify, inFlight, clock, reasons } = store()
  const id = begin(0)
  inFlight.push('g')
  for (let hours = 6; hours < 168; hours += 6) {
    await clock.advance(6 * HOUR)
    sessions.sweep()
    expect(await identify(id)).toEqual({ kind: 'valid', grant: 'g' })
  }
  await clock.advance(6 * HOUR)
  sessions.sweep()
  expect([sessions.has(id), reasons]).toEqual([false, ['browser_session_over']])
})
