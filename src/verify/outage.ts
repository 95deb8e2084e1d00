import { SetupError } from '../system/setup-error.ts'
import type { Answer } from './answer.ts'

/** Notices that the server does not respond any more: to judge its silence request by request would take hours. */
export interface Outage {
  /** How long to wait before the next request (ms), so that a server that has just crashed can start again. */
  pauseBefore(now: number): number
  /**
   * Reads a response, or the lack of one. Throws a `SetupError` with exit code 1 at the fifth failure in a row. Failures of
   * requests in a burst, and those that come sooner than `APART` after another, count as one.
   */
  note(answer: Answer, sent: 'alone' | 'in a burst'): void
}

/** Failures in a row that end the run. */
const MOST = 5

/** A server that a supervisor starts again is back within a few of these (ms). */
const APART = 2_000

export function createOutage({ origin }: Pick<URL, 'origin'>): Outage {
  let since = 0
  let counted = 0
  let latest = 0
  let burst = false
  let unreachable = false
  return {
    pauseBefore: (now) => (unreachable ? Math.max(0, latest + APART - now) : 0),
    note(answer, sent) {
      unreachable = answer.unreachable === true
      if (answer.status !== 0) {
        counted = 0
        burst = false
        return
      }
      if (counted > 0 && (answer.sentAt < latest + APART - TOLERANCE || (burst && sent === 'in a burst')))
        return
      if (counted === 0) since = answer.sentAt
      counted += 1
      latest = answer.at
      burst = sent === 'in a burst'
      if (counted < MOST) return
      const time = new Date(since).toISOString()
      throw new SetupError(`${origin} has not responded since ${time}: ${answer.failure}`, {
        exitCode: 1,
        remedy: 'start the server again; what was decided before stays right',
      })
    },
  }
}

/** A timer may fire this much before the clock says so (ms). */
const TOLERANCE = 10
