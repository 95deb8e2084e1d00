import { expect, it } from 'vitest'
import type { Fields } from '../../src/http/fields.ts'
import { createSessions } from '../../src/oauth/sessions.ts'
import type { IssuedTokens, TokenLookup } from '../../src/tokens/state.ts'

type Refreshed = IssuedTokens | 'unavailable' | undefined

function tokensOf(n: number): IssuedTokens {
  return { accessToken: `access ${n}`, refreshToken: `refresh ${n}`, grant: 'g', expiresIn: 3600 }
}

/** A shared store that answers when it is told to. Valid is only the access token that is named. */
function store() {
  const asked: string[] = []
  const answers: ((refreshed: Refreshed) => void)[] = []
  const revoked: unknown[] = []
  const handedOver: unknown[] = []
  const state = { valid: 'access 0' }
  const tokens: Parameters<typeof createSessions>[0] = {
    identify: async (token): Promise<TokenLookup> =>
      token === state.valid ? { kind: 'valid', grant: 'g' } : { kind: 'refused', cause: 'expired' },
    refresh: (token) => {
      asked.push(token)
      return new Promise((resolve) => answers.push(resolve))
    },
    end: (what) => {
      revoked.push(what)
      return true
    },
  }
  const sessions = createSessions(tokens, (from, to) => handedOver.push([from, to]))
  const begin = (n: number): string => /=([^;]+)/.exec(sessions.begin(tokensOf(n)))?.[1] ?? ''
  return { sessions, begin, asked, answers, revoked, handedOver, state }
}

it('H188 requests at the same time share one renewal at a shared store, and a store that is down ends no session', async () => {
  const { sessions, begin, asked, answers, state } = store()
  const id = begin(0)
  const identify = () => sessions.identify(id, '192.0.2.7')
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
    () => {},
  )
  const id = /=([^;]+)/.exec(sessions.begin(tokensOf(0)))?.[1] ?? ''
  expect(await sessions.identify(id, '192.0.2.7')).toEqual({ kind: 'valid', grant: 'g' })
  expect(sessions.identify(id, '192.0.2.7')).toEqual({ kind: 'valid', grant: 'g' })
})

it('H188 a cookie of no session is no credential', async () => {
  const { sessions, asked } = store()
  expect(await sessions.identify('unknown', '192.0.2.7')).toEqual({ kind: 'refused', cause: 'missing' })
  expect(asked).toEqual([])
})

it('H188 when the login is switched off, all sessions end with their grants, once', () => {
  const { sessions, begin, revoked } = store()
  const ids = [begin(0), begin(1)]
  sessions.begin({ accessToken: 'a', refreshToken: 'r', expiresIn: 1 })
  expect([sessions.endAll('off'), sessions.endAll('off')]).toEqual([true, true])
  expect(ids.map((id) => sessions.has(id))).toEqual([false, false])
  expect(revoked).toEqual([{ grants: ['g', 'g'] }])
})

it.each([
  ['of the same name', 'g', 'a1', 'continued', [['g', 'a1']]],
  ['of another name', 'g', 'admin.a1', 'ended', []],
  ['without a grant', 'g', undefined, 'continued', []],
  ['after one without a grant', undefined, 'a1', 'ended', []],
])('H188 a new login %s replaces the session of its cookie', async (_, earlier, grant, expected, handed) => {
  const { sessions, revoked, handedOver } = store()
  const tokens = { accessToken: 'a', refreshToken: 'r', expiresIn: 1 }
  const set = sessions.begin(earlier === undefined ? tokens : { ...tokens, grant: earlier })
  const id = /=([^;]+)/.exec(set)?.[1] ?? ''
  expect(await sessions.replace(cookieOf(id), grant)).toBe(expected)
  expect([sessions.has(id), handedOver]).toEqual([false, handed])
  expect(revoked).toEqual(earlier === undefined ? [] : [{ grants: [earlier] }])
  expect(await sessions.replace(cookieOf(id), grant)).toBe('continued')
  expect(await sessions.replace([], grant)).toBe('continued')
})
