import { afterEach, expect, it, vi } from 'vitest'
import { everySecond } from '../../src/system/every-second.ts'

afterEach(() => void vi.unstubAllGlobals())

it('a listener that throws keeps no later one from its turn, and its error is uncaught', () => {
  const bug = new Error('a bug')
  const later = vi.fn()
  const timers: { readonly time: number; readonly f: () => void }[] = []
  const clock = {
    every(time: number, f: () => void) {
      timers.push({ time, f })
      return { cancel() {} }
    },
  }
  const listeners = [
    everySecond(clock, () => {
      throw bug
    }),
    everySecond(clock, later),
  ]
  const laterTurn: (() => void)[] = []
  vi.stubGlobal('setImmediate', (f: () => void) => laterTurn.push(f))
  expect(timers).toMatchObject([{ time: 1_000 }])
  timers[0]?.f()
  expect(later).toHaveBeenCalledTimes(1)
  expect(laterTurn).toHaveLength(1)
  expect(laterTurn[0]).toThrow(bug)
  for (const listener of listeners) listener.close()
})
