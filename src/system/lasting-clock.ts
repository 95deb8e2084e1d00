import type { Clock } from './clock.ts'
import { STEP, type Uptime, watchSteps } from './clock-steps.ts'

/** A wall clock before this time (ms) was never set: boards without a battery start in 1970 or 2000. */
const EARLIEST = Date.UTC(2025, 0)

/**
 * The meaning of a step of the wall clock for the times in a file.
 *
 * - `none`: there was no step.
 * - `judge`: the clock is right now. The times in the file are judged by it.
 * - `shift`: the clock was ahead until now. All earlier times move back with it.
 * - `lost`: the clock is behind a known time. It is not believed.
 */
type Step = 'none' | 'judge' | 'shift' | 'lost'

/**
 * The time for a file that outlives the process: the wall clock, unless it starts before `floor`. A wall clock that starts before the floor
 * (in 1970, or at the time that a board saved last) has lost the time. Then this clock goes on from the floor until the wall clock is set.
 *
 * @param floor the latest time in the file (ms); 0: none
 */
export function createLastingClock(clock: Clock, floor: number, uptime?: Uptime) {
  const { monotonic, wall } = clock
  const stepOf = watchSteps(clock, uptime)
  const offset = (): number => wall() - monotonic()
  /** The least possible offset from monotonic to wall time (ms): the process began at the floor or later. */
  let least = floor - monotonic()
  /** The offset that replaces that of the wall clock while it is not believed (ms); undefined while it is believed. */
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
    /** Checks whether the wall clock was set. Call it about once a second, and before times are written. */
    look,
    /** The offset from monotonic time to the time of this clock (ms). */
    ahead: (): number => held ?? offset(),
    /** How far the wall clock is behind this clock (ms); 0 while it is believed. */
    behind: (): number => (held === undefined ? 0 : held - offset()),
  }
}
