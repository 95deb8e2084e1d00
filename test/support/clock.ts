import type { Clock } from '../../src/system/clock.ts'

/** A clock that a test can move. */
export interface MovableClock extends Clock {
  /** Time passes: both clocks move forward. */
  advance(ms: number): void
  /** The time of day is set: only the wall clock moves, in either direction. */
  jumpWall(ms: number): void
}

/** Starts above 0, so that code that forgets the start value fails. Node's own timers (`setTimeout`) do not move with it. */
function movable(monotonic: () => number, wall: () => number): MovableClock {
  let ahead = 0
  let jumped = 0
  return {
    monotonic: () => 1_000_000 + monotonic() + ahead,
    wall: () => wall() + ahead + jumped,
    advance(ms) {
      ahead += ms
    },
    jumpWall(ms) {
      jumped += ms
    },
  }
}

/** Runs like the real clock, and a test can move it. */
export function movableClock(): MovableClock {
  const start = performance.now()
  return movable(() => performance.now() - start, Date.now)
}

/** Moves only when a test moves it: for what must happen at one exact instant. */
export function stillClock(): MovableClock {
  const now = Date.now()
  return movable(
    () => 0,
    () => now,
  )
}
