import type { Clock } from '../system/clock.ts'
import type { Answer } from './answer.ts'
import { only } from './observation.ts'

/** The time of the server, by its own clock. */
export interface ServerClock extends Clock {
  /** Reads the `Date` of a response, once. Returns how far that clock is from ours, if that is more than the tolerance (ms). */
  read(answer: Answer): number | undefined
  /** The response with its times by the clock of the server: sent not later, and arrived not earlier, than it says. */
  corrected(answer: Answer): Answer
}

/** `Date` has whole seconds, and a response takes its time (ms). */
const TOLERANCE = 2_000

/** What `Date` leaves out (ms). */
const ROUNDED_OFF = 1_000

/**
 * A device may not know the time. A wrong clock breaks no promise, so its resets are compared with its own `Date` (RFC 9110 §6.6.1).
 * Without that field it is taken to agree with ours.
 */
export function createServerClock({ monotonic, wall }: Clock): ServerClock {
  let ahead: number | undefined
  const shift = (): number => ahead ?? 0
  return {
    monotonic,
    wall: () => wall() + shift(),
    read(answer) {
      const date = Date.parse(only(answer, 'date') ?? '')
      if (ahead !== undefined || Number.isNaN(date)) return undefined
      const difference = date - answer.at
      ahead = Math.abs(difference) > TOLERANCE ? difference : 0
      return ahead === 0 ? undefined : ahead
    },
    corrected(answer) {
      if (shift() === 0) return answer
      return { ...answer, at: answer.at + shift() + ROUNDED_OFF, sentAt: answer.sentAt + shift() }
    },
  }
}
