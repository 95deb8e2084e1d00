import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import { dateOf, type Received } from './exchange.ts'

export interface ServerClock extends Clock {
  /**
   * Reads the `Date` of a response. The first one decides whether the clock is wrong. Returns how far that clock is from ours (ms),
   * once, if it is more than the tolerance.
   */
  read(received: Received): number | undefined
  /** The response with its times by the clock of the server: sent not later, and arrived not earlier, than it says. */
  corrected(received: Received): Received
}

/** Clocks that are synchronized differ by less (ms). */
const SYNCHRONIZED = 2_000

/** What `Date` leaves out (ms). */
const ROUNDED_OFF = 1_000

/**
 * A device may not know the time. A wrong clock breaks no promise, so its resets are compared with its own `Date` (RFC 9110 §6.6.1).
 * Without that field it is taken to agree with ours.
 */
export function createServerClock({ monotonic, wall }: Clock): ServerClock {
  let ahead: number | undefined
  let fastest = Number.POSITIVE_INFINITY
  return {
    monotonic,
    wall: () => wall() + (ahead ?? 0),
    read(received) {
      const { sentAt, at } = received
      const date = dateOf(received)
      if (date === undefined || ahead === 0 || at - sentAt >= fastest) return undefined
      // The server wrote it at any time while the request was under way. A faster exchange tells more precisely how far it is off.
      const agrees = date + ROUNDED_OFF > sentAt - SYNCHRONIZED && date < at + SYNCHRONIZED
      const isFirst = ahead === undefined
      ahead = isFirst && agrees ? 0 : date - at
      fastest = at - sentAt
      return isFirst && ahead !== 0 ? ahead : undefined
    },
    corrected(received) {
      if (ahead === undefined || ahead === 0) return received
      return { ...received, at: received.at + ahead + ROUNDED_OFF, sentAt: received.sentAt + ahead }
    },
  }
}

/** As many failures in a row end the run if they take at least so long (ms). */
const MOST_FAILURES = 5
const LONGEST = 7_500

/** A server that a supervisor starts again is back within a few of these (ms). */
const APART = 2_000

/** Notices that the server does not respond any more: to judge its silence request by request would take hours. */
export interface Outage {
  /** How long to wait before the next request (ms), so that a server that has just crashed can start again. */
  pauseBefore(now: number): number
  /** Reads a response, or the lack of one. Throws a `SetupError` with exit code 1 if it ends the run. Bursts do not count. */
  note(received: Received, sent: 'alone' | 'in a burst'): void
}

export function createOutage(origin: string): Outage {
  let failures = 0
  let since = 0
  let again = 0
  return {
    pauseBefore: (now) => Math.max(0, again - now),
    note({ status, sentAt, at, failure, unreachable }, sent) {
      again = unreachable === true ? at + APART : 0
      if (status !== 0) failures = 0
      else if (sent === 'alone') failures += 1
      if (failures === 1 && sent === 'alone') since = sentAt
      if (failures < MOST_FAILURES || at - since < LONGEST) return
      const time = new Date(since).toISOString()
      throw new SetupError(`${origin} has not responded since ${time}: ${failure}`, {
        exitCode: 1,
        remedy: 'start the server again; what was decided before stays right',
      })
    },
  }
}
