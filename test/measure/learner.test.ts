import { expect, it } from 'vitest'
import { createPlaces, type Learner } from '../../src/forward/learner.ts'
import { stillClock } from '../support/clock.ts'

/** What is known of a device that has carried two requests, and breaks when a third one comes. `before` is called in between. */
function whatBroke(before: (learner: NonNullable<ReturnType<typeof createPlaces>['learner']>) => void) {
  const clock = stillClock()
  const { queue, learner } = createPlaces({
    ...{ min: 1, max: 64, waiting: 8, maxWait: 1_000, inFleet: true, clock },
    onChange() {},
    onCeiling() {},
  })
  if (learner === undefined) throw new Error('there is nothing to learn')
  const fill = () => {
    const all = []
    for (let leave = queue.tryEnter(); leave !== undefined; leave = queue.tryEnter()) {
      all.push({ leave, place: learner.sent('/', clock.monotonic()) })
    }
    return all
  }
  while (queue.places < 3) {
    const all = fill()
    clock.advance(20)
    for (const { leave, place } of all) {
      learner.answered(place, clock.monotonic())
      learner.left(place)
      leave()
    }
  }
  before(learner)
  clock.advance(10_000)
  fill()
  learner.reset()
  for (let refusals = 0; refusals < 20; refusals += 1) {
    clock.advance(50)
    learner.refused()
  }
  return learner.law.ceiling.wall?.places
}

it.each([
  ['no request', () => {}, 2],
  ['a request', (learner: Learner) => learner.changing(1), undefined],
  [
    'no request any more',
    (learner: Learner) => {
      learner.changing(1)
      learner.changing(-1)
    },
    2,
  ],
] as const)(
  'H264 %s that may change the device is at it, and decides whether there is a wall',
  (_, before, wall) => {
    expect(whatBroke(before)).toBe(wall)
  },
)
