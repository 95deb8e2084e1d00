import { expect, it } from 'vitest'
import { createPlaces, type Observed } from '../../src/forward/learner.ts'
import { stillClock } from '../support/clock.ts'

const request = (method = 'GET'): Observed => ({ method, target: '/', place: undefined, changes: false })

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
      all.push({ leave, sent: request() })
      learner.sent(all.at(-1)?.sent ?? expect.fail())
    }
    return all
  }
  while (queue.places < 3) {
    const all = fill()
    clock.advance(20)
    for (const { leave, sent } of all) {
      learner.answered(sent, clock.monotonic())
      learner.left(sent)
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
  return learner.ceiling.wall?.kind
}

it.each([
  ['GET', 'broke'],
  ['POST', undefined],
])('H264 a %s at the device, whose head was sent, decides whether there is a wall', (method, wall) => {
  expect(whatBroke((learner) => learner.begun(request(method)))).toBe(wall)
})

it('H264 a POST that was sent twice, and has left, is at the device no more', () => {
  const write = request('POST')
  const wall = whatBroke((learner) => {
    for (let attempt = 0; attempt < 2; attempt += 1) learner.begun(write)
    learner.left(write)
  })
  expect(wall).toBe('broke')
})
