import { type Clock, STEP, type Uptime, watchSteps } from './clock.ts'

/** A wall clock before this (ms) has not been set: boards without a battery start in 1970 or 2000. */
const EARLIEST = Date.UTC(2025, 0)

/**
 * What a step of the wall clock means for the times in a file. `judge`: it shows the right time, so what the file says is right. `shift`: what
 * was known before was ahead of it, so all times move with it. `lost`: it is not believed. `none`: no step.
 */
export type Step = 'none' | 'judge' | 'shift' | 'lost'

export type LastingClock = ReturnType<typeof createLastingClock>

/**
 * The time that a file which outlives the process is written and judged by: the wall clock, but never earlier than `floor` when the process starts. A wall clock that
 * starts behind it, in 1970 or where a board saved it last, has lost count, and the time goes on from the floor until the clock is set.
 *
 * @param floor the last time that the file knows (ms); 0: none
 */
export function createLastingClock(clock: Clock, floor: number, uptime?: Uptime) {
  const { monotonic, wall } = clock
  const stepOf = watchSteps(clock, uptime)
  const offset = (): number => wall() - monotonic()
  /** Since the floor at least this has passed: no offset below it is right for what is older than this process. */
  let least = floor - monotonic()
  /** What the time is ahead of the monotonic clock while the wall clock is not believed. */
  let held = isBehind(offset()) ? least : undefined
  let believed = held ?? offset()

  function isBehind(ahead: number): boolean {
    return ahead <= least - STEP
  }

  const isSet = (ahead: number): boolean => ahead + monotonic() >= EARLIEST

  function look(): Step {
    const step = stepOf()
    const present = offset()
    if (step === 0) {
      believed = held ?? present
      return 'none'
    }
    if (!isBehind(present) && (isSet(present) || !isSet(believed))) {
      held = undefined
      believed = present
      return 'judge'
    }
    if (held === undefined && isSet(present)) {
      least = present
      believed = present
      return 'shift'
    }
    held = believed
    return 'lost'
  }

  return {
    /** Looks whether the wall clock was set. Call it about once a second, and before times are written. */
    look,
    /** What the time is ahead of the monotonic clock (ms). */
    ahead: (): number => held ?? offset(),
    /** How far the wall clock is behind the time (ms); 0 if it is believed. */
    behind: (): number => (held === undefined ? 0 : held - offset()),
  }
}
