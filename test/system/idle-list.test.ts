import { expect, it } from 'vitest'
import type { Timer } from '../../src/system/clock.ts'
import { IdleList, type Idling } from '../../src/system/idle-list.ts'
import { virtualClock } from '../support/clock.ts'

const TIME = 1_000

/** A list, and members that a test makes active by `at`. */
function setUp() {
  const clock = virtualClock()
  const list = new IdleList(clock, TIME)
  const idle: string[] = []
  return {
    clock,
    list,
    idle,
    member(name: string): Idling & { at: number } {
      const member = {
        at: clock.monotonic(),
        lastActive: () => member.at,
        onIdle: () => void idle.push(name),
      }
      list.join(member)
      return member
    },
  }
}

it('tells each member that is idle for its time, to the millisecond, and in the order of their last activity', async () => {
  const { clock, idle, member } = setUp()
  const first = member('first')
  await clock.advance(100)
  member('second')
  await clock.advance(700)
  first.at = clock.monotonic()
  await clock.advance(299)
  expect(idle).toEqual([])
  await clock.advance(1)
  expect(idle).toEqual(['second'])
  await clock.advance(699)
  expect(idle).toEqual(['second'])
  await clock.advance(1)
  expect(idle).toEqual(['second', 'first'])
})

it('has one timer for all members, which activity does not set anew, and none without a member', async () => {
  const { clock, list, member } = setUp()
  let timers = 0
  const counted = new IdleList(
    {
      monotonic: clock.monotonic,
      after(time: number, f: () => void): Timer {
        timers += 1
        return clock.after(time, f)
      },
    },
    TIME,
  )
  const members = Array.from({ length: 100 }, () => member('one of many'))
  for (const each of members) counted.join(each)
  expect([clock.pending, timers]).toEqual([2, 1])
  for (let i = 0; i < 3; i += 1) {
    await clock.advance(0.4 * TIME)
    for (const each of members) each.at = clock.monotonic()
    await clock.advance(0.4 * TIME)
  }
  expect([clock.pending, timers]).toEqual([2, 4])
  for (const each of members) {
    list.leave(each)
    counted.leave(each)
  }
  expect(clock.pending).toBe(0)
})

it('forgets a member that leaves, and one that has been told', async () => {
  const { clock, idle, list, member } = setUp()
  const left = member('left')
  const told = member('told')
  list.leave(left)
  await clock.advance(10 * TIME)
  list.leave(told)
  list.leave(left)
  expect(idle).toEqual(['told'])
  expect(clock.pending).toBe(0)
})

it('tells the others when one of them fails', async () => {
  const { clock, idle, list, member } = setUp()
  const broken: Idling = {
    lastActive: () => 0,
    onIdle() {
      throw new Error('broken')
    },
  }
  list.join(broken)
  member('the other')
  await expect(clock.advance(TIME)).rejects.toThrow('broken')
  await clock.advance(TIME)
  expect(idle).toEqual(['the other'])
})
