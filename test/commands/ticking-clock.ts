import { type MovableClock, stillClock } from '../support/clock.ts'

/** A still clock that goes on by a microsecond with each look, so that what happens takes some time. */
export function tickingClock(): MovableClock {
  const clock = stillClock()
  let looks = 0
  return {
    ...clock,
    monotonic() {
      looks += 1
      return clock.monotonic() + looks / 1000
    },
  }
}
