import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { FleetMember } from '../../src/compose/fleet-places.ts'
import { createFleetPlaces } from '../../src/fleet/places.ts'
import type { StoreReply } from '../../src/fleet/shared-store.ts'
import type { Ceiling } from '../../src/forward/ceilings.ts'
import { createPlaces, type Observed } from '../../src/forward/learner.ts'
import { createLogOn } from '../../src/record/log.ts'
import { stillClock } from '../support/clock.ts'
import { scriptedStore, storeDown } from '../support/scripted-store.ts'

/** A wall of 6 in the store. This sidecar has 3 of its places. */
const THREE_OF_SIX = ['7', 'broke', 6, 1_000_000, 0, 3]

const NOTHING = ['0', 'none', 0, 0, 0, -1]

/** A sidecar whose store answers with `reply`, or does not. */
function startMember(ceiling: Ceiling, first: StoreReply | undefined) {
  const clock = stillClock()
  let reply = first
  const store = scriptedStore(() => {
    if (reply === undefined) throw storeDown()
    return reply
  })
  const onBug = (error: unknown): never => {
    throw error
  }
  const { queue, learner } = createPlaces({
    ...{ min: 1, max: 64, waiting: 8, maxWait: 1_000, inFleet: true, clock, ceiling },
    onChange: () => {},
    onCeiling: (next, cause) => fleet.changed(next, cause),
  })
  if (learner === undefined) throw new Error('there is nothing to learn')
  const log = createLogOn('silent', { write() {} })
  const fleet = new FleetMember({ name: 'device', sidecar: 'a', learner, queue, clock, log })
  const places = createFleetPlaces({ store, clock, onBug })
  return {
    clock,
    queue,
    learner,
    store,
    join: () => fleet.join(places),
    answer(next: StoreReply | undefined) {
      reply = next
    },
    /** Seconds pass. */
    async pass(seconds: number) {
      for (let second = 0; second < seconds; second += 1) {
        await clock.advance(1_000)
        places.look()
        await setImmediate()
      }
    },
    most: () => learner.ceiling.wall?.limit,
  }
}

it('H290 a sidecar that the store does not answer for 20 s has one place, until the store answers again', async () => {
  const { join, answer, pass, most, store } = startMember({}, THREE_OF_SIX)
  await join()
  expect(most()).toBe(3)
  answer(undefined)
  await pass(19)
  expect(most()).toBe(3)
  await pass(1)
  expect(most()).toBe(1)
  answer(THREE_OF_SIX)
  await pass(1)
  // It says that it has one: the others may have taken the rest.
  expect(store.asked.at(-1)?.args[3]).toBe('1')
  expect(most()).toBe(3)
})

it('H290 a sidecar that waits for its places waits no longer than 20 s for a store that is gone', async () => {
  const { join, answer, pass, queue } = startMember({}, [...THREE_OF_SIX.slice(0, 5), 0])
  await join()
  expect(queue.places).toBe(0)
  answer(undefined)
  await pass(19)
  expect(queue.places).toBe(0)
  await pass(1)
  expect(queue.places).toBe(1)
})

it('H290 a sidecar that starts without the store has one place where it had a share; what it found alone stays', async () => {
  const wall = { kind: 'broke', limit: 3, until: 9e9 } as const
  const shared = startMember({ wall: { ...wall, fleet: { sum: 6, version: 7 } } }, undefined)
  await shared.join()
  expect(shared.most()).toBe(1)
  const alone = startMember({ wall }, undefined)
  await alone.join()
  expect(alone.most()).toBe(3)
})

it('H286 what breaks the device at one sidecar is told at once, with what had worked there', async () => {
  const { join, clock, queue, learner, store } = startMember({}, NOTHING)
  await join()
  function fill() {
    const requests = []
    for (let leave = queue.tryEnter(); leave !== undefined; leave = queue.tryEnter()) {
      const request: Observed = { method: 'GET', target: '/', place: undefined, changes: false }
      learner.sent(request)
      requests.push({ leave, request })
    }
    return requests
  }
  while (queue.places < 3) {
    const requests = fill()
    await clock.advance(20)
    for (const { leave, request } of requests) {
      learner.answered(request, clock.monotonic())
      learner.left(request)
      leave()
    }
  }
  expect(fill()).toHaveLength(3)
  learner.reset()
  for (let refusals = 0; refusals < 20; refusals += 1) {
    await clock.advance(50)
    learner.refused()
  }
  expect(learner.ceiling.wall).toMatchObject({ kind: 'broke', limit: 2 })
  expect(store.asked.at(-1)?.args.slice(11)).toEqual(['broke', '2', expect.any(String)])
})
