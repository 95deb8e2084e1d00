import { expect, it } from 'vitest'
import { FleetMember } from '../../src/compose/fleet-places.ts'
import { createFleetPlaces } from '../../src/fleet/places.ts'
import type { Ceiling } from '../../src/forward/ceilings.ts'
import { createPlaces } from '../../src/forward/learner.ts'
import { createLogOn } from '../../src/record/log.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { Sidecar, startServer } from './places-bed.ts'

/** A sidecar at a server, beside another one that passes for active. */
function startMember(ceiling: Ceiling) {
  const server = startServer()
  const { clock, fields } = server
  const { store, network } = server.connect()
  const other = new Sidecar('b', server.connect().store, clock)
  const onBug = (error: unknown): never => {
    throw error
  }
  const { queue, learner } = createPlaces({
    ...{ min: 1, max: 64, waiting: 8, maxWait: 1_000, inFleet: true, clock, ceiling },
    most: () => fleet.most,
    onChange: () => {},
    onCeiling: (next, cause) => fleet.changed(next, cause),
  })
  if (learner === undefined) throw new Error('there is nothing to learn')
  const log = createLogOn('silent', { write() {} })
  const fleet = new FleetMember({ name: other.name, sidecar: 'a', learner, queue, clock, log })
  const places = createFleetPlaces({ store, clock, onBug })
  /** Seconds pass, for this sidecar and the others. */
  async function pass(seconds: number, others: readonly Sidecar[] = [other]) {
    for (let second = 0; second < seconds; second += 1) {
      await clock.advance(1_000)
      places.look()
      for (const each of others) each.places.look()
      await nextTurn()
    }
  }
  return {
    ...{ clock, queue, learner, fields, network, other, pass },
    join: () => fleet.join(places),
    bound: () => fleet.most,
    isActive: () => fleet.standing().isActive,
    /** The operator lifts the wall. */
    lift() {
      learner.law.forget()
      fleet.lifted()
    },
    /** The server has been there for a while and knows a wall of 6, and the other sidecar has all of its places. */
    async wall() {
      await other.join()
      await pass(40)
      other.own = 6
      await other.tell('broke', 6)
      await pass(3)
      expect(other.share).toBe(6)
    },
    most: () => learner.law.ceiling.wall?.places,
    /** The share that it has said last. */
    said: () => fields.get('a')?.split(' ')[2],
  }
}

it('H290 a sidecar that the store does not answer for 20 s has one place, until the store answers again', async () => {
  const { wall, join, network, pass, most, other, said } = startMember({})
  await wall()
  await join()
  await pass(5)
  expect([most(), other.share]).toEqual([1, 5])
  other.isActive = false
  await pass(5)
  expect([most(), other.share]).toEqual([3, 3])
  network.away = true
  await pass(19)
  expect(most()).toBe(3)
  await pass(1)
  expect(most()).toBe(1)
  network.away = false
  await pass(1, [])
  // It says that it has one: the others may have taken the rest.
  expect(said()).toBe('1')
  await pass(5)
  expect(most()).toBe(3)
})

it('H288 a wall that the operator lifts while the store is away binds this sidecar no more', async () => {
  const { wall, join, lift, network, pass, most, bound } = startMember({})
  await wall()
  await join()
  await pass(5)
  network.away = true
  await pass(20)
  expect([most(), bound()]).toEqual([1, 1])
  lift()
  expect([most(), bound()]).toEqual([undefined, Number.POSITIVE_INFINITY])
  await pass(20)
  expect([most(), bound()]).toEqual([undefined, Number.POSITIVE_INFINITY])
})

it('a sidecar that has had no request for ten minutes is not active', async () => {
  const { clock, queue, isActive } = startMember({})
  expect(isActive()).toBe(false)
  const leave = queue.tryEnter()
  expect(isActive()).toBe(true)
  leave?.()
  await clock.advance(599_999)
  expect(isActive()).toBe(true)
  await clock.advance(1)
  expect(isActive()).toBe(false)
})

it('H290 a sidecar that waits for its places waits no longer than 20 s for a store that is gone', async () => {
  const { wall, join, network, pass, queue } = startMember({})
  await wall()
  await join()
  expect(queue.places).toBe(0)
  network.away = true
  await pass(19)
  expect(queue.places).toBe(0)
  await pass(1)
  expect(queue.places).toBe(1)
})

it('H290 a process that stood still for 20 s has one place before it has asked anything', async () => {
  const { wall, join, pass, other, queue, clock } = startMember({})
  await wall()
  other.isActive = false
  await join()
  await pass(5)
  // One place more is given when those before it have held.
  expect(queue.places).toBe(1)
  await clock.leap(20_000)
  expect(queue.places).toBe(1)
})

it('H290 a sidecar that starts without the store has one place where it had a share; what it found alone stays', async () => {
  const wall = { kind: 'broke', places: 3, until: 9e9 } as const
  const shared = startMember({ wall: { ...wall, fleet: { sum: 6, version: 7 } } })
  shared.network.away = true
  await shared.join()
  expect(shared.most()).toBe(1)
  const alone = startMember({ wall })
  alone.network.away = true
  await alone.join()
  expect(alone.most()).toBe(3)
})

it('H286 what breaks the device at one sidecar is told at once, with what had worked there', async () => {
  const { join, clock, queue, learner, fields } = startMember({})
  await join()
  function fill() {
    const requests = []
    for (let leave = queue.tryEnter(); leave !== undefined; leave = queue.tryEnter())
      requests.push({ leave, place: learner.sent('/', clock.monotonic()) })
    return requests
  }
  while (queue.places < 3) {
    const requests = fill()
    await clock.advance(20)
    for (const { leave, place } of requests) {
      learner.answered(place, clock.monotonic())
      learner.left(place)
      leave()
    }
  }
  expect(fill()).toHaveLength(3)
  learner.reset()
  for (let refusals = 0; refusals < 20; refusals += 1) {
    await clock.advance(50)
    learner.refused()
  }
  expect(learner.law.ceiling.wall).toMatchObject({ kind: 'broke', places: 2 })
  await nextTurn()
  expect(fields.get('wall')).toMatch(/^broke \d+ 2 /)
})
