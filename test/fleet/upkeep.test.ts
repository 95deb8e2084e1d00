import { beforeAll, expect, it } from 'vitest'
import type { SharedStore, StoreReply } from '../../src/fleet/shared-store.ts'
import { lookAfterTokens } from '../../src/fleet/upkeep.ts'
import { nextTurn } from '../../src/system/clock.ts'
import type { TokenPolicy } from '../../src/tokens/grant-rules.ts'
import { open } from '../store/opened.ts'
import { stillClock } from '../support/clock.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { openSharedTokens } from '../tokens/shared-sidecar.ts'
import { DAY, HOUR, POLICY, present, SECOND, WEEK } from '../tokens/support.ts'
import { scriptedStore, storeDown } from './scripted-store.ts'

const YEARS = 56 * 365 * 24 * HOUR

it('H278 a step of the clock of the shared store is noticed, in both directions, and nothing else', async () => {
  const clock = stillClock()
  const steps: number[] = []
  let set = 0
  let delay = 0
  let isDown = false
  const store = scriptedStore(() => {
    if (isDown) throw storeDown()
    const time = clock.wall() + set
    // Both clocks have moved when this returns.
    void clock.advance(delay)
    return [String(time), 0, 0]
  })
  const unexpected = (what: unknown): never => {
    throw new Error(`unexpected: ${what}`)
  }
  const sweep = lookAfterTokens({
    store,
    clock,
    policy: () => ({ accessLifetime: HOUR, refreshLifetime: HOUR }),
    onLost: unexpected,
    onClockSet: (by) => steps.push(by),
    onBug: unexpected,
  })
  async function look(): Promise<void> {
    await clock.advance(10_000)
    sweep()
    await nextTurn()
  }
  await look()
  for (const by of [HOUR, -HOUR, YEARS, -YEARS]) {
    set += by
    await look()
    await look()
  }
  expect(steps).toEqual([HOUR, -HOUR, YEARS, -YEARS])

  // A slow answer, a clock that is slewed, and the step of this machine's own clock are none.
  delay = 4_000
  await look()
  delay = 0
  await look()
  set += 1_000
  await look()
  clock.jumpWall(YEARS)
  set -= YEARS
  await look()
  expect(steps).toHaveLength(4)

  // It is noticed when the server answers again, too.
  isDown = true
  await look()
  set -= HOUR
  isDown = false
  await look()
  expect(steps.slice(4)).toEqual([-HOUR])
})

let redis: RedisServer
let stores = 0

beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})

/** A sidecar that looks after the tokens of a server, which has the same clock. */
async function looking(changed: Partial<TokenPolicy> = {}) {
  needs('redis-server')
  const prefix = `upkeep-${stores++}`
  const { store } = await open(`valkey://${redis.at}`, { prefix })
  const clock = stillClock()
  const questions: Promise<StoreReply>[] = []
  const between = { act: async (): Promise<unknown> => undefined }
  async function answer(
    ask: SharedStore['run'],
    [{ name, source }, ...question]: Parameters<SharedStore['run']>,
  ): Promise<StoreReply> {
    if (name === 'upkeep' && questions.length === 1) await between.act()
    return ask({ name, source: source.replace(/local now = .*/, `local now = ${clock.wall()}`) }, ...question)
  }
  const timed =
    (ask: SharedStore['run']): SharedStore['run'] =>
    (...question) => {
      const reply = answer(ask, question)
      if (question[0].name === 'upkeep') questions.push(reply)
      return reply
    }
  const shared = { ...store, run: timed(store.run), runDurably: timed(store.runDurably) }
  const policy = { ...POLICY, rotateRefresh: true, offlineGrace: DAY, ...changed }
  const listener = { issued() {}, revoked() {}, evicted() {} }
  const { backend, tokens, issue } = await openSharedTokens({ store: shared, clock, policy, listener })
  const unexpected = (what: unknown): never => expect.unreachable(String(what))
  const sweep = lookAfterTokens({
    ...{ store: shared, clock, policy: () => backend.policy },
    ...{ onLost: unexpected, onClockSet() {}, onBug: unexpected },
  })
  const key = (name: string): string => `{${prefix}}:${name}`
  return {
    ...{ clock, tokens, issue, key, between },
    async handOut(lifetime: number): Promise<string> {
      const epoch = await redis.command('HGET', key('state'), 'epoch')
      const issued = await tokens.handOut({ name: '', label: 'probe', lifetime }, epoch)
      if (typeof issued === 'string' || !('grant' in issued)) throw new Error('not issued')
      return issued.grant
    },
    /** Looks after the tokens, ten seconds later. Returns the number of questions. */
    async look(): Promise<number> {
      questions.length = 0
      await clock.advance(10 * SECOND)
      sweep()
      for (const question of questions) {
        await question
        await nextTurn()
      }
      return questions.length
    },
    /** The time left of each token of a grant, as `a3600000`, the first to end first (ms). */
    async left(grant = ''): Promise<readonly string[]> {
      const members = await redis.command('ZRANGE', key(`g:${grant}`), '0', '-1', 'WITHSCORES')
      const pairs = [...members.matchAll(/^(\w)(\S{43})\n(\d+)$/gm)]
      for (const [, , digest, end] of pairs)
        expect(Number(await redis.command('PEXPIRETIME', key(`t:${digest}`)))).toBeCloseTo(Number(end), -3)
      const last = pairs.map(([, , , end]) => end).at(-1)
      if (last !== undefined) expect(await redis.command('ZSCORE', key('grants'), grant)).toBe(last)
      return pairs.map(([, kind, , end]) => `${kind}${Number(end) - clock.wall()}`)
    },
  }
}

it('H278 tokens of logins later than the clock of the store get their lifetime, as of the present policy, and no other changes', async () => {
  const { clock, tokens, issue, handOut, look, left } = await looking()
  clock.jumpWall(YEARS)
  const { grant, refreshToken } = await issue()
  await tokens.refresh(refreshToken)
  const probe = await handOut(30 * DAY)
  clock.jumpWall(-YEARS)
  const other = await issue()
  tokens.applyPolicy({ ...POLICY, accessLifetime: 2 * HOUR, refreshLifetime: DAY })
  expect(await look()).toBe(2)
  expect(await left(grant)).toEqual(['a7200000', 'a7200000', 'r86400000', 's86400000'])
  expect(await left(probe)).toEqual([`a${30 * DAY}`])
  expect(await left(other.grant)).toEqual([`a${HOUR - 10 * SECOND}`, `r${WEEK - 10 * SECOND}`])
  // What has its end costs one question again.
  expect(await look()).toBe(1)
  expect(await left(grant)).toEqual(['a7190000', 'a7190000', 'r86390000', 's86390000'])
})

it('H311 tokens end with their login after a reload that bounds logins, in a second if that is over, and an issued token does not', async () => {
  const { clock, tokens, issue, handOut, look, left } = await looking({ accessLifetime: DAY })
  const [over, probe] = [await issue(), await handOut(DAY)]
  await clock.advance(2 * HOUR)
  const { grant } = await issue()
  tokens.applyPolicy({ ...POLICY, grantLifetime: HOUR })
  expect(await look()).toBe(2)
  expect(await left(over.grant)).toEqual([`a${SECOND}`, `r${SECOND}`])
  expect(await left(grant)).toEqual([`a${HOUR - 10 * SECOND}`, `r${HOUR - 10 * SECOND}`])
  expect(await left(probe)).toEqual([`a${DAY - 2 * HOUR - 10 * SECOND}`])
  expect(await look()).toBe(1)
})

it.each<[string, (bed: Awaited<ReturnType<typeof looking>>, grant: string) => unknown]>([
  ['revoked', ({ tokens }, grant) => tokens.revoke({ grant }, 'test')],
  ['void by a new epoch', ({ tokens }) => tokens.revoke({ all: true }, 'test')],
])('C8 H278 a grant that is %s between the two questions of a look stays so', async (_, end) => {
  const bed = await looking()
  const { clock, tokens, issue, look, between, key } = bed
  clock.jumpWall(YEARS)
  const { grant, refreshToken } = await issue()
  clock.jumpWall(-YEARS)
  between.act = async () => end(bed, present(grant))
  expect(await look()).toBe(2)
  expect(await redis.command('ZSCORE', key('grants'), present(grant))).toBe('')
  expect(await tokens.grants()).toEqual([])
  expect(await tokens.refresh(refreshToken)).toBeUndefined()
})

it('H278 H296 the list of issued grants follows the end of an issued token', async () => {
  const { clock, handOut, look, key } = await looking()
  clock.jumpWall(YEARS)
  const grant = await handOut(DAY)
  clock.jumpWall(-YEARS)
  expect(await look()).toBe(2)
  expect(await redis.command('ZSCORE', key('issued'), grant)).toBe(String(clock.wall() + DAY))
})
