import { expect, it } from 'vitest'
import { createTokenCopies } from '../../src/fleet/copies.ts'
import { watchStreams } from '../../src/fleet/open-streams.ts'
import type { StoreReply } from '../../src/fleet/shared-store.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { scriptedStore, storeDown } from '../fleet/scripted-store.ts'
import { stillClock } from '../support/clock.ts'
import { liveRequests } from './live-requests.ts'

const SECOND = 1_000

/** A sidecar with one open stream, of the grant `g1`. `answer`: what the server says of it. */
function watching(answer: () => StoreReply, grantLifetime?: number) {
  const clock = stillClock()
  const store = scriptedStore(answer)
  const over: string[] = []
  const live = liveRequests(['g1'], {
    endStreams(_now, isOver) {
      if (isOver('g1')) over.push('g1')
    },
  })
  const copies = createTokenCopies({
    store,
    clock,
    policy: {
      ...{ capacity: 100, accessLifetime: 3_600 * SECOND, offlineGrace: 60 * SECOND },
      ...(grantLifetime === undefined ? {} : { grantLifetime }),
    },
    live,
    hasName: () => true,
    timeout: SECOND,
  })
  copies.epoch.apply({ kind: 'begun', epoch: '100' })
  copies.heard()
  const onBug = (bug: unknown): never => expect.unreachable(String(bug))
  const sweep = watchStreams({ store, clock, live, copies, onBug })
  return {
    copies,
    store,
    over,
    /** Lets seconds pass, each with a sweep and the answer to its question. */
    async pass(seconds: number): Promise<void> {
      for (let second = 0; second < seconds; second += 1) {
        sweep()
        await nextTurn()
        await clock.advance(SECOND)
        copies.heard()
      }
      sweep()
    },
  }
}

const says = (left: number, epoch = '100', age = 0): StoreReply => [epoch, [left, age]]

it('H206 a stream ends when the server says that its grant is over, and lasts as long as another sidecar renews it', async () => {
  let left = 3 * SECOND
  const { over, pass } = watching(() => says(left))
  await pass(10)
  expect(over).toEqual([])
  left = 0
  await pass(3)
  expect(over).not.toEqual([])
})

it.each([
  ['a login that is over ends', [60 * SECOND, 12 * SECOND], true],
  ['a login that is not over does not', [60 * SECOND, 9 * SECOND], false],
  ['an issued grant does not, which is no login', [60 * SECOND], false],
])('H206 H311 a stream of %s, though its tokens last longer', async (_grant, grant, ends) => {
  const { over, pass } = watching(() => ['100', grant], 12 * SECOND)
  await pass(2)
  expect(over.length > 0).toBe(ends)
})

it('H206 without an answer, a stream ends when its grant was said to end', async () => {
  let answer = (): StoreReply => says(5 * SECOND)
  const { over, pass } = watching(() => answer())
  await pass(1)
  answer = () => {
    throw storeDown()
  }
  await pass(3)
  expect(over).toEqual([])
  await pass(1)
  expect(over).not.toEqual([])
})

it.each([
  ['has lost the epoch', says(0, '99')],
  ['has no state', says(0, '')],
])('H147 a server that %s ends no stream', async (_server, reply) => {
  const { over, pass } = watching(() => reply)
  await pass(5)
  expect(over).toEqual([])
})

it('H208 the server is asked about open streams every other second, and about all of them at once', async () => {
  const { store, pass } = watching(() => says(60 * SECOND))
  await pass(5)
  expect(store.asked).toHaveLength(3)
})
