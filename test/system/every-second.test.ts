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
  expect(() => vi.advanceTimersByTime(1_000)).toThrow(bug)
  expect(later).toHaveBeenCalledTimes(1)
  for (const listener of listeners) listener.close()
})
