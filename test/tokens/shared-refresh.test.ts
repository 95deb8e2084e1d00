import { beforeAll, beforeEach, expect, it } from 'vitest'
import { SET_GRANT } from '../../src/fleet/scripts.ts'
import { type Script, type SharedStore, StoreUnavailable } from '../../src/fleet/shared-store.ts'
import { shareOf, type TokenPolicy } from '../../src/tokens/grant-rules.ts'
import { digestToken, type IssuedTokens } from '../../src/tokens/mint.ts'
import type { TokenEvents } from '../../src/tokens/state-events.ts'
import { open } from '../store/opened.ts'
import { stillClock } from '../support/clock.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { openSharedTokens } from './shared-sidecar.ts'
import { DAY, HOUR, POLICY, present, SECOND } from './support.ts'

const clock = stillClock()
let redis: RedisServer
let prefix = ''
let prefixes = 0

beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})
beforeEach(() => {
  needs('redis-server')
  prefix = `refresh-${prefixes++}`
})

/** A sidecar. `steps` may change a script of a refresh, or do something before it. */
async function sidecar(changed: Partial<TokenPolicy> = {}) {
  const steps = { before: async (script: Script): Promise<Script> => script }
  const { store } = await open(`valkey://${redis.at}`, { prefix })
  const stepped: SharedStore = {
    ...store,
    async runDurably(script, ...question) {
      const { name } = script
      opened.questions += 1
      const reply = await store.runDurably(
        name === 'refresh' ? await steps.before(script) : script,
        ...question,
      )
      if (script.source !== SET_GRANT.source || opened.lost === 0) return reply
      opened.lost -= 1
      throw new StoreUnavailable(name, 'timeout', 'the answer is lost')
    },
  }
  const policy = { ...POLICY, offlineGrace: HOUR, rotateRefresh: true, refreshGrace: HOUR, ...changed }
  const revoked: string[] = []
  const listener: TokenEvents = {
    issued() {},
    evicted() {},
    revoked: (_count, reason) => revoked.push(reason),
  }
  const { tokens, issue } = await openSharedTokens({ store, asked: stepped, clock, policy, listener })
  const opened = {
    tokens,
    /** The questions to the server so far. */
    questions: 0,
    /** So many answers to the second step are lost from now on. */
    lost: 0,
    steps,
    revoked,
    /** Does something between the two steps of the next refresh. */
    between(act: () => Promise<unknown>): void {
      let count = 0
      steps.before = async (script) => {
        count += 1
        if (count === 2) await act()
        return script
      }
    },
    issue,
    async refresh(token: string): Promise<IssuedTokens> {
      const issued = present(await tokens.refresh(token))
      if (issued === 'unavailable') throw new Error(issued)
      return issued
    },
    identify: async (token: string) => tokens.identify(token, '192.0.2.1'),
  }
  return opened
}

const VALID = expect.objectContaining({ kind: 'valid' })

it('C6 H33 two refreshes of one token at two sidecars get the same pair, whichever is between the steps of the other', async () => {
  const [one, two] = await Promise.all([sidecar(), sidecar()])
  const { refreshToken } = await one.issue()
  let first: IssuedTokens | undefined
  one.between(async () => {
    first = await two.refresh(refreshToken)
  })
  const second = await one.refresh(refreshToken)
  const { accessToken, refreshToken: next } = present(first)
  expect(second).toMatchObject({ accessToken, refreshToken: next })
  expect(await two.tokens.describe([present(first?.grant)])).toMatchObject([
    { accessTokens: 2, refreshTokens: 1 },
  ])
})

it('a login and a retry cost the server one question, a refresh and a revocation by token two, and a copied token none', async () => {
  const one = await sidecar()
  const counted = async (act: () => Promise<unknown>): Promise<number> => {
    one.questions = 0
    await act()
    return one.questions
  }
  const first = await one.issue()
  expect(await counted(one.issue)).toBe(1)
  expect(await counted(() => one.refresh(first.refreshToken))).toBe(2)
  expect(await counted(() => one.refresh(first.refreshToken))).toBe(1)
  expect(await counted(() => one.identify(first.accessToken))).toBe(0)
  const { refreshToken } = await one.refresh(first.refreshToken)
  expect(await counted(async () => one.tokens.revoke({ token: refreshToken }, 'test'))).toBe(2)
  expect(await counted(async () => one.tokens.refresh(refreshToken))).toBe(1)
})

it.each([
  ['at the same sidecar', 0],
  ['at another one', 1],
])(
  'C6 a refresh whose answer is lost changes the grant once: a retry %s gets the pair of the lost answer',
  async (_, at) => {
    const sidecars = await Promise.all([sidecar(), sidecar()])
    const [one] = sidecars
    const { refreshToken, grant = '' } = await one.issue()
    one.lost = 1
    expect(await one.tokens.refresh(refreshToken)).toBe('unavailable')
    const next = await present(sidecars[at]).refresh(refreshToken)
    expect(await one.tokens.describe([grant])).toMatchObject([{ accessTokens: 2, refreshTokens: 1 }])
    expect((await one.refresh(next.refreshToken)).grant).toBe(grant)
  },
)

it('C6 two refreshes of one token that stays get an access token each', async () => {
  const [one, two] = await Promise.all([sidecar({ rotateRefresh: false }), sidecar({ rotateRefresh: false })])
  const { refreshToken } = await one.issue()
  let first: IssuedTokens | undefined
  one.between(async () => {
    first = await two.refresh(refreshToken)
  })
  const second = await one.refresh(refreshToken)
  for (const { accessToken } of [present(first), second])
    expect(await two.identify(accessToken)).toEqual(VALID)
})

it.each([
  ['its grant', ({ grant = '' }: IssuedTokens) => ({ grant })],
  ['by the token', ({ refreshToken: token }: IssuedTokens) => ({ token })],
  ['all', () => ({ all: true as const })],
])('C8 H129 a refresh gets no tokens if %s is revoked between its steps', async (_, which) => {
  const [one, two] = await Promise.all([sidecar(), sidecar()])
  const issued = await one.issue()
  one.between(async () => two.tokens.revoke(which(issued), 'test'))
  expect(await one.tokens.refresh(issued.refreshToken)).toBeUndefined()
  expect(await two.tokens.grants()).toEqual([])
})

it('H147 a refresh is not refused if the server is emptied between its steps', async () => {
  const server = await startRedis()
  const shared = redis
  redis = server
  const one = await sidecar()
  redis = shared
  const { refreshToken } = await one.issue()
  one.between(() => server.command('FLUSHALL'))
  expect(await one.tokens.refresh(refreshToken)).toBe('unavailable')
})

/** The script at a server whose clock was set back. */
function at(back: number, { name, source }: Script): Script {
  return { name, source: source.replace('time[1] * 1000', `time[1] * 1000 - ${back}`) }
}

/** The script at this time of the server (ms). */
function exactlyAt(now: number, { name, source }: Script): Script {
  return { name, source: source.replace(/local now = .*/, `local now = ${now}`) }
}

it('C7 a refresh token is valid until the millisecond in which it expires, as in the memory of a process', async () => {
  const one = await sidecar({ rotateRefresh: false })
  const { grant, refreshToken } = await one.issue()
  const end = await redis.command('ZSCORE', `{${prefix}}:g:${grant}`, `r${digestToken(refreshToken)}`)
  one.steps.before = async (script) => exactlyAt(Number(end), script)
  expect(await one.tokens.refresh(refreshToken)).toBeUndefined()
  one.steps.before = async (script) => exactlyAt(Number(end) - 1, script)
  expect(await one.tokens.refresh(refreshToken)).toMatchObject({ refreshToken })
})

it('H311 a refresh gets no token that outlives its login, even if its second step is late', async () => {
  const one = await sidecar({ grantLifetime: HOUR })
  const { grant, refreshToken, accessToken } = await one.issue()
  const end = await redis.command('ZSCORE', `{${prefix}}:g:${grant}`, `a${digestToken(accessToken)}`)
  let step = 0
  const lateBy = (time: number): void => {
    step = 0
    one.steps.before = async (script) => (++step === 1 ? script : exactlyAt(Number(end) - time, script))
  }
  lateBy(0)
  expect(await one.tokens.refresh(refreshToken)).toBeUndefined()
  expect(step).toBe(3)
  lateBy(2 * SECOND)
  const next = await one.refresh(refreshToken)
  const members = await redis.command('ZRANGE', `{${prefix}}:g:${next.grant}`, '-1', '-1', 'WITHSCORES')
  expect(members.split('\n')[1]).toBe(end)
})

it('C6 a spent refresh token at a server whose clock was set back is reused', async () => {
  const one = await sidecar()
  const first = await one.issue()
  const second = await one.refresh(first.refreshToken)
  expect(await one.refresh(first.refreshToken)).toMatchObject({ accessToken: second.accessToken })
  one.steps.before = async (script) => at(DAY, script)
  expect(await one.tokens.refresh(first.refreshToken)).toBeUndefined()
  expect(one.revoked).toEqual(['refresh_token_reuse'])
})

it.each([
  ['the server has lost', ['DEL'], []],
  ['was changed in the store', ['SETRANGE'], ['30', '!']],
])('C6 a retry whose response %s is reuse', async (_, command, value) => {
  const one = await sidecar()
  const first = await one.issue()
  await one.refresh(first.refreshToken)
  await redis.command(...command, `{${prefix}}:r:${digestToken(first.refreshToken)}`, ...value)
  expect(await one.tokens.refresh(first.refreshToken)).toBeUndefined()
  expect(one.revoked).toEqual(['refresh_token_reuse'])
})

it('C6 a grant that rotates past its share loses spent tokens before the access tokens that follow them', async () => {
  const capacity = 40
  const [one, two] = await Promise.all([sidecar({ capacity }), sidecar({ capacity })])
  let last = await one.issue()
  const recent: string[] = []
  for (let i = 0; i < 3 * shareOf(capacity); i++) {
    last = await one.refresh(last.refreshToken)
    recent.push(last.accessToken)
  }
  const [before = '', present = ''] = recent.slice(-2)
  for (const token of [present, before]) expect(await two.identify(token)).toEqual(VALID)
})

it('C6 a grant loses no token for those that have expired', async () => {
  const capacity = 40
  const [one, two] = await Promise.all([sidecar({ capacity, rotateRefresh: false }), sidecar({ capacity })])
  const { grant, accessToken, refreshToken } = await one.issue()
  for (let tokens = 2; tokens < shareOf(capacity) - 1; tokens++) await one.refresh(refreshToken)
  const expired = ['1', '2', '3', '4', '5'].flatMap((each) => [each, `a${each}`])
  await redis.command('ZADD', `{${prefix}}:g:${grant}`, ...expired)
  const last = await one.refresh(refreshToken)
  for (const token of [accessToken, last.accessToken]) expect(await two.identify(token)).toEqual(VALID)
})

it('C8 H311 a sidecar for which a login is over revokes it all the same: for another sidecar it may last longer', async () => {
  const [one, two] = await Promise.all([sidecar(), sidecar({ grantLifetime: 0 })])
  const { refreshToken } = await one.issue()
  expect(await two.tokens.refresh(refreshToken)).toBeUndefined()
  expect(await two.tokens.revoke({ token: refreshToken }, 'client')).toBe(1)
  expect(await one.tokens.refresh(refreshToken)).toBeUndefined()
})
