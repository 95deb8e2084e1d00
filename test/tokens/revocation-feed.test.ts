import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { createTokenCopies, type TokenCopies } from '../../src/fleet/copies.ts'
import type { DeviceState } from '../../src/fleet/epoch.ts'
import { followRevocations } from '../../src/fleet/feed.ts'
import { DESCRIBE_GRANTS } from '../../src/fleet/grants.ts'
import { LOOK_UP } from '../../src/fleet/scripts.ts'
import type { StoreReply, StreamEntry } from '../../src/fleet/shared-store.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { mintToken } from '../../src/tokens/mint.ts'
import { scriptedStore, storeDown } from '../fleet/scripted-store.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { liveRequests } from './live-requests.ts'

type Follow = PromiseWithResolvers<readonly StreamEntry[]>

const STATE: DeviceState = {
  epoch: '100',
  since: '',
  salt: '',
  fingerprint: '',
  last: '5-0',
  read: '',
}

const CLIENT = '10.0.0.1'

/** A feed whose server a test plays: each pending `follow` is handed out by `next`, and `state` is what `settle` finds. */
async function feed(missing: readonly string[] = []) {
  /** How many comparisons fail. */
  const compared = { failing: 0 }
  const waiting: ((follow: Follow) => void)[] = []
  const follows: Follow[] = []
  let grants = 0
  const clock = stillClock()
  const store = scriptedStore(
    (script, [, ...asked]): StoreReply => {
      if (script === LOOK_UP) {
        grants += 1
        return ['100', '', [`g${grants}`, CLIENT, '0', 3_600_000]]
      }
      if (script === DESCRIBE_GRANTS && compared.failing > 0) {
        compared.failing -= 1
        throw storeDown()
      }
      const live = asked.filter((id) => !missing.includes(id))
      return script === DESCRIBE_GRANTS ? live.map((id) => [id, CLIENT, '0', 3_600_000, 1, 1]) : []
    },
    () => {
      const follow = Promise.withResolvers<readonly StreamEntry[]>()
      const taker = waiting.shift()
      if (taker === undefined) follows.push(follow)
      else taker(follow)
      return follow.promise
    },
  )
  const copies: TokenCopies = createTokenCopies({
    store,
    clock,
    policy: { capacity: 100, accessLifetime: 3_600_000, offlineGrace: 60_000 },
    live: liveRequests(),
    hasName: () => true,
    timeout: 1_000,
  })
  const played = { state: STATE, lost: 0, isKept: true }
  const asked: string[] = []
  const following = followRevocations({
    clock,
    store,
    copies,
    settle: async (last) => {
      asked.push(last)
      copies.epoch.apply({ kind: 'begun', epoch: played.state.epoch })
      return { ...played.state, read: played.isKept ? last : '' }
    },
    onPlaces: () => {},
    onOperatorRevoked: () => {},
    onLost: () => {
      played.lost += 1
    },
    onBug: (error) => expect.unreachable(String(error)),
  })
  closeLater(async () => following.close())
  await following.started
  const tokens = [1, 2].map(() => mintToken(randomBytes))
  for (const token of tokens) await copies.identify(token, CLIENT)
  const next = (): Promise<Follow> => {
    const follow = follows.shift()
    return follow === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(follow)
  }
  const kinds = (): string[] =>
    tokens.map((token) => {
      const found = copies.identify(token, CLIENT)
      return 'kind' in found ? found.kind : 'asked'
    })
  /** The pause after a failure passes. The server is not asked before its end. */
  async function pass(): Promise<void> {
    await nextTurn()
    const before = asked.length
    await clock.advance(249)
    expect(asked).toHaveLength(before)
    await clock.advance(1)
    expect(asked).toHaveLength(before + 1)
  }
  return { played, asked, next, pass, kinds, compared }
}

it('H129 a message of a revocation drops the copies of its grants', async () => {
  const { next, kinds } = await feed()
  const first = await next()
  first.resolve([{ id: '6-0', fields: ['revoked', 'g2 other'] }])
  await next()
  expect(kinds()).toEqual(['valid', 'refused'])
})

it('H133 after a cut connection, the feed reads on from the last message', async () => {
  const { next, pass, kinds, asked } = await feed()
  const first = await next()
  first.resolve([{ id: '6-0', fields: ['revoked', 'g1'] }])
  const second = await next()
  second.reject(storeDown())
  await pass()
  const third = await next()
  expect(asked).toEqual(['', '6-0'])
  third.resolve([{ id: '7-0', fields: ['revoked', 'g2'] }])
  await next()
  expect(kinds()).toEqual(['refused', 'refused'])
})

it('H133 messages that the server no longer has are made up for by comparing the grants', async () => {
  const { next, pass, kinds, played } = await feed(['g2'])
  const first = await next()
  played.state = { ...STATE, last: '9-0' }
  played.isKept = false
  first.reject(storeDown())
  await pass()
  await next()
  expect(kinds()).toEqual(['valid', 'refused'])
})

it('H133 a server that was emptied without a cut connection is noticed when it is silent; its new epoch ends all tokens', async () => {
  const { next, kinds, played } = await feed()
  played.state = { ...STATE, epoch: '101', last: '6-0' }
  played.isKept = false
  for (let silences = 0; silences < 3; silences++) {
    const follow = await next()
    expect(played.lost).toBe(0)
    follow.resolve([])
  }
  await next()
  expect(played.lost).toBe(1)
  expect(kinds()).toEqual(['refused', 'refused'])
})

it('H130 a message of a new epoch drops all copies, and the state is read again at once', async () => {
  const { next, kinds, asked, played } = await feed()
  const first = await next()
  played.state = { ...STATE, epoch: '101', last: '6-0' }
  first.resolve([{ id: '6-0', fields: ['epoch', '101'] }])
  await next()
  expect(asked).toEqual(['', '6-0'])
  expect(kinds()).toEqual(['refused', 'refused'])
})

it('H133 a stream that began anew with an epoch of another sidecar is the loss of all data, and said once', async () => {
  const { next, pass, kinds, played, asked } = await feed()
  const first = await next()
  played.state = { ...STATE, epoch: '101', last: '7-0' }
  first.resolve([
    { id: '6-0', fields: ['first', ''] },
    { id: '7-0', fields: ['epoch', '101', 'since', ''] },
  ])
  const second = await next()
  expect(asked).toEqual(['', ''])
  expect(kinds()).toEqual(['refused', 'refused'])
  second.reject(storeDown())
  await pass()
  await next()
  expect(played.lost).toBe(1)
})

it('H133 a comparison that fails is made again', async () => {
  const { next, pass, kinds, played, compared, asked } = await feed(['g2'])
  const first = await next()
  played.state = { ...STATE, last: '9-0' }
  played.isKept = false
  compared.failing = 1
  first.reject(storeDown())
  await pass()
  await pass()
  await next()
  expect(asked).toEqual(['', '5-0', '5-0'])
  expect(kinds()).toEqual(['valid', 'refused'])
})
