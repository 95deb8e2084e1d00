import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import { everySecond } from '../../src/system/every-second.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('a listener that throws keeps no later one from its turn, and its error is uncaught', () => {
  const bug = new Error('a bug')
  const later = vi.fn()
  const listeners = [
    everySecond(systemClock, () => {
      throw bug
    }),
    everySecond(systemClock, later),
  ]
  vi.advanceTimersByTime(1_000)
  // The judgement of the timer, and the error, are a turn later each.
  expect(() => {
    for (let turn = 0; turn < 2; turn += 1) vi.advanceTimersByTime(1)
  }).toThrow(bug)
  expect(later).toHaveBeenCalledTimes(1)
  for (const listener of listeners) listener.close()
})
