import type { Clock } from '../system/clock.ts'
import type { Answer } from './answer.ts'
import { dateOf } from './observation.ts'

/** The time of the server, by its own clock. */
export interface ServerClock extends Clock {
  /** Reads the `Date` of a response. The first one decides whether the clock is wrong. Returns how far that clock is from ours (ms), once, if it is more than the tolerance. */
  read(answer: Answer): number | undefined
  /** The response with its times by the clock of the server: sent not later, and arrived not earlier, than it says. */
  corrected(answer: Answer): Answer
}

/** Clocks that are synchronized differ by less (ms). */
const TOLERANCE = 2_000

/** What `Date` leaves out (ms). */
const ROUNDED_OFF = 1_000

/**
 * A device may not know the time. A wrong clock breaks no promise, so its resets are compared with its own `Date` (RFC 9110 §6.6.1).
 * Without that field it is taken to agree with ours.
 */
export function createServerClock({ monotonic, wall }: Clock): ServerClock {
  let ahead: number | undefined
  let fastest = Number.POSITIVE_INFINITY
  const shift = (): number => ahead ?? 0
  return {
    monotonic,
    wall: () => wall() + shift(),
    read(answer) {
      const date = dateOf(answer)
      const took = answer.at - answer.sentAt
      if (date === undefined || ahead === 0 || took >= fastest) return undefined
      // The server wrote it at any time while the request was under way.
      const agrees = date + ROUNDED_OFF > answer.sentAt - TOLERANCE && date < answer.at + TOLERANCE
      // A faster exchange tells more precisely how far the clock is off.
      const isFirst = ahead === undefined
      ahead = isFirst && agrees ? 0 : date - answer.at
      fastest = took
      return isFirst && ahead !== 0 ? ahead : undefined
    },
    corrected(answer) {
      if (shift() === 0) return answer
      return { ...answer, at: answer.at + shift() + ROUNDED_OFF, sentAt: answer.sentAt + shift() }
    },
  }
}
