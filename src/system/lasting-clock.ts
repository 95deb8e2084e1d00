import type { Clock } from './clock.ts'
import { STEP, type Uptime, watchSteps } from './clock-steps.ts'

/** A wall clock before this (ms) has not been set: boards without a battery start in 1970 or 2000. */
const EARLIEST = Date.UTC(2025, 0)

/**
 * What a step of the wall clock means for the times in a file.
 *
 * - `judge`: the clock is right now, so the times in the file are judged by it.
 * - `shift`: the clock was ahead until now, so all times known before move back with it.
 * - `lost`: the clock is behind a time that is known, so it is not believed.
 * - `none`: there was no step.
 */
export type Step = 'none' | 'judge' | 'shift' | 'lost'

export type LastingClock = ReturnType<typeof createLastingClock>

/**
 * The time for a file that outlives the process: the wall clock, but at the start never earlier than `floor`. A wall clock that starts behind
 * the floor, in 1970 or where a board saved it last, has lost the time, which then goes on from the floor until the clock is set.
 *
 * @param floor the last time that the file knows (ms); 0: none
 */
export function createLastingClock(clock: Clock, floor: number, uptime?: Uptime) {
  const { monotonic, wall } = clock
  const stepOf = watchSteps(clock, uptime)
  const offset = (): number => wall() - monotonic()
  /** The least offset to the monotonic clock (ms) that can be right: the process began at the floor or later. */
  let least = floor - monotonic()
  /** The offset of the time while the wall clock is not believed (ms). */
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
    /** How far the time is ahead of the monotonic clock (ms). */
    ahead: (): number => held ?? offset(),
    /** How far the wall clock is behind the time (ms); 0 if it is believed. */
    behind: (): number => (held === undefined ? 0 : held - offset()),
  }
}
