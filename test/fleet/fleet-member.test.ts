import { expect, it, vi } from 'vitest'
import { FleetMember } from '../../src/compose/fleet-places.ts'
import { createFleetPlaces } from '../../src/fleet/places.ts'
import type { Ceiling } from '../../src/forward/ceiling.ts'
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
  const named = { name: other.name, max: 64, sidecar: 'a' }
  const fleet = new FleetMember({ ...named, learner, queue, clock, log })
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
    async breaks() {
      await other.join()
      await pass(40)
      await other.tell('broke', 6)
      await pass(3)
      expect(other.share).toBe(6)
    },
    wall: () => learner.law.ceiling.wall,
  }
}

it('H290 a sidecar that the store does not answer for 20 s has one place, until the store answers again', async () => {
  const { breaks, join, network, pass, bound, other, fields } = startMember({})
  await breaks()
  await join()
  await pass(5)
  expect([bound(), other.share]).toEqual([1, 5])
  other.isActive = false
  await pass(5)
  expect([bound(), other.share]).toEqual([3, 3])
  network.away = true
  await pass(19)
  expect(bound()).toBe(3)
  await pass(1)
  expect(bound()).toBe(1)
  network.away = false
  const beats = vi.spyOn(fields, 'set')
  await pass(1, [])
  // It says first that it has one: the others may have taken the rest.
  expect(beats.mock.calls.map(([id, text]) => [id, text.split(' ')[2]])[0]).toEqual(['a', '1'])
  await pass(5)
  expect(bound()).toBe(3)
})

it('H288 a wall that the operator lifts while the store is away is none, and the share is one until the store answers', async () => {
  const { breaks, join, lift, network, pass, wall, bound, other } = startMember({})
  await breaks()
  await join()
  await pass(5)
  network.away = true
  await pass(20)
  expect([wall()?.places, bound()]).toEqual([6, 1])
  lift()
  expect([wall(), bound()]).toEqual([undefined, 1])
  network.away = false
  await pass(2)
  expect([wall(), other.wall]).toEqual([undefined, 0])
})

it('H286 a sidecar without a place is active if a request waits for one', async () => {
  const { breaks, join, queue, isActive } = startMember({})
  await breaks()
  await join()
  expect([queue.places, isActive()]).toEqual([0, false])
  let stop = (): void => {}
  const entry = queue.enter('client', (withdraw) => {
    stop = withdraw
  })
  expect(isActive()).toBe(true)
  stop()
  await entry
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

it('H290 a sidecar that the others have left no place has none as long as the store is gone', async () => {
  const { breaks, join, network, pass, queue, other } = startMember({})
  await breaks()
  other.inside = 6
  await join()
  await pass(5)
  expect(queue.places).toBe(0)
  network.away = true
  await pass(60)
  expect(queue.places).toBe(0)
  network.away = false
  other.inside = 0
  await pass(5)
  expect(queue.places).toBe(1)
})

it('H290 a process that stood still for 20 s has one place before it has asked anything', async () => {
  const { breaks, join, pass, other, queue, clock } = startMember({})
  await breaks()
  other.isActive = false
  await join()
  await pass(5)
  // One place more is given when those before it have held.
  expect(queue.places).toBe(1)
  await clock.leap(20_000)
  expect(queue.places).toBe(1)
})

it('H290 a sidecar that starts without the store has one place, and what broke the device still holds', async () => {
  for (const wall of [{ places: 3 }, { places: 6, fleet: 7 }] as const) {
    const member = startMember({ wall })
    member.network.away = true
    await member.join()
    expect([member.bound(), member.wall()]).toEqual([1, wall])
  }
})

it('H287 a wall that a sidecar has found before it starts counts in the fleet, at once', async () => {
  const { join, other, pass, wall } = startMember({ wall: { places: 3 } })
  await other.join()
  await pass(3)
  await join()
  await other.places.news()
  expect([other.wall, wall()?.places]).toEqual([3, 3])
  expect(wall()?.fleet).toBeGreaterThan(1)
})

it('H288 what the operator has lifted before a sidecar starts takes nothing from what it has found since', async () => {
  const guess = { places: 3, until: 9e9, wait: 3_600_000 }
  const { join, other, pass, learner } = startMember({ guess })
  await other.join()
  await other.tell('lifted')
  await join()
  await pass(2)
  expect(learner.law.ceiling).toEqual({ guess })
})

it('H286 what breaks the device at one sidecar is told at once, with what had worked there', async () => {
  const { join, pass, clock, queue, learner, fields } = startMember({})
  await join()
  await pass(3)
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
  expect(learner.law.ceiling.wall).toMatchObject({ places: 2 })
  await nextTurn()
  expect(fields.get('wall')).toMatch(/^wall \d+ 2 /)
})
