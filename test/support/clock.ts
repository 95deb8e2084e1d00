import type { Clock } from '../../src/system/clock.ts'

/** A clock that a test can push. */
export interface MovableClock extends Clock {
  /** Time passes: both clocks move forward. */
  advance(ms: number): void
  /** Somebody sets the time of day: only the wall clock moves, either way. */
  jumpWall(ms: number): void
}

/** Starts above 0, so that a forgotten start value shows. Timers of Node's own (`setTimeout`) do not move with it. */
function pushable(monotonic: () => number, wall: () => number): MovableClock {
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

/** Runs like the real clock, and can be pushed. */
export function movableClock(): MovableClock {
  const start = performance.now()
  return pushable(() => performance.now() - start, Date.now)
}

/** Moves only when it is pushed, for what must happen at one exact instant. */
export function stillClock(): MovableClock {
  const now = Date.now()
  return pushable(
    () => 0,
    () => now,
  )
}
