import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { createTokenCopies, type TokenCopies } from '../../src/fleet/copies.ts'
import type { StoreReply } from '../../src/fleet/shared-store.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { digestToken, mintToken } from '../../src/tokens/mint.ts'
import { type ScriptedStore, scriptedStore, storeDown } from '../fleet/scripted-store.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { liveRequests } from './live-requests.ts'
import { present } from './support.ts'

const HOUR = 3_600_000
const CLIENT = '10.0.0.1'

interface Setting {
  readonly copies: TokenCopies
  readonly store: ScriptedStore
  readonly clock: MovableClock
  readonly cut: string[]
}

function setting(
  answer: () => StoreReply | Promise<StoreReply>,
  offlineGrace = HOUR,
  inFlight: readonly string[] = [],
): Setting {
  const store = scriptedStore(answer)
  const clock = stillClock()
  const cut: string[] = []
  const copies = createTokenCopies({
    store,
    clock,
    policy: { capacity: 100, accessLifetime: HOUR, offlineGrace },
    live: liveRequests(inFlight, { cut: (grants) => cut.push(...grants) }),
    hasName: () => true,
    timeout: 1_000,
  })
  copies.epoch.apply({ kind: 'begun', epoch: '100' })
  copies.heard()
  return { copies, store, clock, cut }
}

const found = (grant = 'g1', epoch = '100', left = HOUR): StoreReply => [
  epoch,
  '',
  [grant, CLIENT, '0', left],
]
const FOUND: StoreReply = ['g1', CLIENT, '0', HOUR]
const VALID = { kind: 'valid', grant: 'g1' }
const REVOKED = { kind: 'refused', cause: 'revoked' }
const UNKNOWN = { kind: 'refused', cause: 'unknown' }

it('H128 a token is asked for once, also by requests at the same time, and then known', async () => {
  const { copies, store } = setting(() => found())
  const token = mintToken(randomBytes)
  const answers = await Promise.all([1, 2, 3].map(() => copies.identify(token, CLIENT)))
  expect(answers).toEqual([VALID, VALID, VALID])
  expect(copies.identify(token, CLIENT)).toEqual(VALID)
  expect(store.asked).toHaveLength(1)
})

it('H274 a token that the server still has, of a name that this sidecar has ended, is not accepted until the server has taken that', async () => {
  const { copies, cut } = setting(() => found('monitor.1'), HOUR, ['monitor.1', 'admin.1'])
  const [known, other] = [mintToken(randomBytes), mintToken(randomBytes)]
  expect(await copies.identify(known, CLIENT)).toMatchObject({ kind: 'valid' })
  cut.length = 0
  copies.epoch.end({ name: 'monitor' }, 'name_removed')
  expect(cut).toEqual(['monitor.1'])
  expect(copies.identify(known, CLIENT)).toEqual(REVOKED)
  expect(await copies.identify(other, CLIENT)).toEqual({ kind: 'unavailable' })
  copies.epoch.owed.names.clear()
  expect(await copies.identify(other, CLIENT)).toMatchObject({ kind: 'valid' })
})

it('H128 an unknown token is asked for once', async () => {
  const { copies, store, clock } = setting(() => ['100'])
  const token = mintToken(randomBytes)
  expect(await copies.identify(token, CLIENT)).toEqual(UNKNOWN)
  expect(copies.identify(token, CLIENT)).toEqual(UNKNOWN)
  expect(store.asked).toHaveLength(1)
  await clock.advance(10_001)
  await copies.identify(token, CLIENT)
  expect(store.asked).toHaveLength(2)
})

it('H128 one look-up runs at a time and asks for at most 64 tokens, and those that find no room are not answered with 401', async () => {
  const gate = Promise.withResolvers<StoreReply>()
  const { copies, store } = setting(() => gate.promise)
  const answers = Promise.all(
    Array.from({ length: 2_300 }, () => copies.identify(mintToken(randomBytes), CLIENT)),
  )
  await nextTurn()
  expect(store.asked).toHaveLength(1)
  gate.resolve(['100'])
  const kinds = Map.groupBy(await answers, ({ kind }) => kind)
  expect(kinds.get('unavailable')).toHaveLength(2_300 - 1 - 2_048)
  expect(kinds.get('refused')).toHaveLength(1 + 2_048)
  expect(store.asked.map(({ args }) => args.length - 1)).toEqual([1, ...Array(32).fill(64)])
})

it('H128 a client that makes up tokens without end delays a token of another client by one look-up', async () => {
  const gates = [Promise.withResolvers<StoreReply>(), Promise.withResolvers<StoreReply>()] as const
  const { copies, store } = setting(() => gates[store.asked.length - 1]?.promise ?? ['100'])
  const invented = (): unknown => copies.identify(mintToken(randomBytes), '192.0.2.66')
  for (let i = 0; i < 2_100; i++) void invented()
  const token = mintToken(randomBytes)
  const answer = copies.identify(token, CLIENT)
  gates[0].resolve(['100'])
  await nextTurn()
  for (let i = 0; i < 2_100; i++) void invented()
  const digests = present(store.asked[1]).args.slice(1)
  expect(digests).toContain(digestToken(token))
  gates[1].resolve(['100', '', ...digests.map((each) => (each === digestToken(token) ? FOUND : []))])
  expect(await answer).toEqual(VALID)
})

it('H128 C17 a valid token behind the address of a client that makes up tokens is served', async () => {
  const valid = mintToken(randomBytes)
  const { copies, store } = setting(async () => {
    await nextTurn()
    const { args } = present(store.asked.at(-1))
    return ['100', '', ...args.slice(1).map((digest) => (digest === digestToken(valid) ? FOUND : []))]
  })
  let isOver = false
  const streams = Array.from({ length: 1_000 }, async () => {
    while (!isOver) await copies.identify(mintToken(randomBytes), CLIENT)
  })
  await nextTurn()
  expect(await copies.identify(valid, CLIENT)).toEqual(VALID)
  expect(copies.identify(valid, CLIENT)).toEqual(VALID)
  isOver = true
  await Promise.all(streams)
})

it('H131 a token whose turn comes too late is not answered with 401', async () => {
  const gate = Promise.withResolvers<StoreReply>()
  const { copies, store, clock } = setting(() => gate.promise)
  const answers = [1, 2].map(() => copies.identify(mintToken(randomBytes), CLIENT))
  await clock.advance(1_001)
  gate.resolve(['100'])
  expect(await Promise.all(answers)).toEqual([UNKNOWN, { kind: 'unavailable' }])
  expect(store.asked).toHaveLength(1)
})

it('H129 a question under way cannot bring back a token that is revoked meanwhile', async () => {
  const gate = Promise.withResolvers<StoreReply>()
  const { copies, cut } = setting(() => gate.promise)
  const token = mintToken(randomBytes)
  const answer = copies.identify(token, CLIENT)
  copies.epoch.apply({ kind: 'revoked', grants: ['g1'] })
  gate.resolve(found())
  expect(await answer).toEqual(REVOKED)
  expect(cut).toEqual(['g1'])
})

it('C8 H129 a question under way cannot bring back a token that is evicted meanwhile', async () => {
  const gate = Promise.withResolvers<StoreReply>()
  const { copies } = setting(() => gate.promise)
  const token = mintToken(randomBytes)
  const answer = copies.identify(token, CLIENT)
  copies.epoch.apply({ kind: 'evicted', grants: ['g1'] })
  gate.resolve(found())
  expect(await answer).toEqual(UNKNOWN)
  expect(await copies.identify(token, CLIENT)).toEqual(UNKNOWN)
})

it('C8 H130 a question under way refuses no token of a name whose password stays in a later epoch', async () => {
  const gates = [Promise.withResolvers<StoreReply>(), Promise.withResolvers<StoreReply>()] as const
  const { copies, store } = setting(() => gates[store.asked.length - 1]?.promise ?? found('kiosk.1', '101'))
  const [kept, voided] = [mintToken(randomBytes), mintToken(randomBytes)]
  const answers = [copies.identify(kept, CLIENT), copies.identify(voided, CLIENT)]
  copies.epoch.apply({ kind: 'begun', epoch: '101', since: 'kiosk=90' })
  gates[0].resolve(found('kiosk.1'))
  gates[1].resolve(found('monitor.1'))
  expect(await Promise.all(answers)).toEqual([{ kind: 'valid', grant: 'kiosk.1' }, REVOKED])
})

it('H130 a question under way cannot bring back a token of an earlier epoch', async () => {
  const gate = Promise.withResolvers<StoreReply>()
  const { copies } = setting(() => gate.promise)
  const answer = copies.identify(mintToken(randomBytes), CLIENT)
  copies.epoch.apply({ kind: 'begun', epoch: '101' })
  gate.resolve(found())
  expect(await answer).toEqual(REVOKED)
})

it('H130 a token of a later epoch drops the copies of the earlier one, before the message of it arrives', async () => {
  const replies = [found('old'), found('new', '101')]
  const { copies, cut } = setting(() => replies.shift() ?? ['100'])
  const [old, fresh] = [mintToken(randomBytes), mintToken(randomBytes)]
  await copies.identify(old, CLIENT)
  expect(await copies.identify(fresh, CLIENT)).toEqual({ kind: 'valid', grant: 'new' })
  expect(copies.identify(old, CLIENT)).toEqual(REVOKED)
  expect(cut).toEqual(['old'])
  copies.epoch.apply({ kind: 'begun', epoch: '101' })
  expect(copies.identify(fresh, CLIENT)).toEqual({ kind: 'valid', grant: 'new' })
})

it('C7 a copy expires when the token does', async () => {
  const { copies, clock } = setting(() => found('g1', '100', 5_000))
  const token = mintToken(randomBytes)
  await copies.identify(token, CLIENT)
  await clock.advance(4_999)
  expect(copies.identify(token, CLIENT)).toEqual(VALID)
  await clock.advance(1)
  expect(copies.identify(token, CLIENT)).toEqual({ kind: 'refused', cause: 'expired' })
})

it('H311 a reload that bounds logins ends the copies of older ones', async () => {
  const { copies, clock } = setting(() => found())
  const token = mintToken(randomBytes)
  await copies.identify(token, CLIENT)
  copies.applyPolicy({ capacity: 100, accessLifetime: HOUR, offlineGrace: HOUR, grantLifetime: 60_000 })
  await clock.advance(59_999)
  expect(copies.identify(token, CLIENT)).toEqual(VALID)
  await clock.advance(1)
  expect(copies.identify(token, CLIENT)).toEqual({ kind: 'refused', cause: 'expired' })
})

it('H131 without an answer a known token works for the grace, and then nobody knows', async () => {
  let answer: () => StoreReply = () => found()
  const { copies, clock } = setting(() => answer(), 60_000)
  const token = mintToken(randomBytes)
  await copies.identify(token, CLIENT)
  answer = () => {
    throw storeDown()
  }
  expect(await copies.identify(mintToken(randomBytes), CLIENT)).toEqual({ kind: 'unavailable' })
  await clock.advance(60_000)
  expect(copies.identify(token, CLIENT)).toEqual(VALID)
  await clock.advance(1)
  expect(await copies.identify(token, CLIENT)).toEqual({ kind: 'unavailable' })
  copies.heard()
  expect(copies.identify(token, CLIENT)).toEqual(VALID)
})

it('H261 a server whose clock was set back gives a copy no more time than the lifetime of its token', async () => {
  const { copies, clock, store } = setting(() => found('g1', '100', 50 * 365 * 24 * HOUR))
  const token = mintToken(randomBytes)
  await copies.identify(token, CLIENT)
  await clock.advance(HOUR - 1)
  copies.heard()
  expect(copies.identify(token, CLIENT)).toEqual(VALID)
  await clock.advance(1)
  copies.heard()
  expect(copies.identify(token, CLIENT)).toEqual({ kind: 'refused', cause: 'expired' })
  copies.sweep()
  expect(copies.identify(token, CLIENT)).toEqual({ kind: 'refused', cause: 'expired' })
  expect(store.asked).toHaveLength(1)
})

it('H129 without the new epoch, all copies are asked for again', async () => {
  const { copies, store, cut } = setting(() => found())
  const token = mintToken(randomBytes)
  await copies.identify(token, CLIENT)
  copies.epoch.apply({ kind: 'unsettled', name: '' })
  expect(cut).toEqual(['g1'])
  expect(await copies.identify(token, CLIENT)).toEqual(VALID)
  expect(store.asked).toHaveLength(2)
})

it.each([
  ['a server without a state', ''],
  ['a server that has lost an epoch', '99'],
])('H131 a token that %s does not have is not known to be unknown', async (_server, epoch) => {
  const { copies, store } = setting(() => [epoch])
  copies.epoch.apply({ kind: 'begun', epoch: '100' })
  const token = mintToken(randomBytes)
  for (let i = 0; i < 2; i++) expect(await copies.identify(token, CLIENT)).toEqual({ kind: 'unavailable' })
  expect(store.asked).toHaveLength(2)
})

it('H133 a token that the server names is not taken before this sidecar has read the state of a new connection', async () => {
  const { copies } = setting(() => found())
  const token = mintToken(randomBytes)
  copies.inStep = false
  expect(await copies.identify(token, CLIENT)).toEqual({ kind: 'unavailable' })
  copies.inStep = true
  expect(await copies.identify(token, CLIENT)).toEqual(VALID)
})

it('H131 what is under way ends with the grace, once', () => {
  const { copies, clock, cut } = setting(() => found(), 60_000, ['streaming'])
  cut.length = 0
  copies.sweep()
  clock.advance(59_000)
  copies.sweep()
  expect(cut).toEqual([])
  clock.advance(2_000)
  copies.sweep()
  copies.sweep()
  expect(cut).toEqual(['streaming'])
})

it('H150 the last use of a grant is that of its copies, and unknown without one', async () => {
  const { copies, clock } = setting(() => found())
  const token = mintToken(randomBytes)
  expect(copies.usedAt('g1')).toBeNull()
  await copies.identify(token, CLIENT)
  expect(copies.usedAt('g1')).toBe(clock.wall())
  await clock.advance(5_000)
  expect(copies.usedAt('g1')).toBe(clock.wall() - 5_000)
  copies.identify(token, CLIENT)
  expect(copies.usedAt('g1')).toBe(clock.wall())
  await clock.advance(5_000)
  copies.use('g1')
  copies.use('another')
  expect(copies.usedAt('g1')).toBe(clock.wall())
})
