import type { Clock } from '../../system/clock.ts'
import type { Reporter } from '../verdict.ts'

/** Seconds between the decision on a promise and the decision before it, by id. Promises that a round decides together follow at once. */
export type Times = ReadonlyMap<string, number>

/** A reporter that also measures the times of the decisions. */
export function timed(
  reporter: Reporter,
  clock: Pick<Clock, 'monotonic'>,
): { readonly reporter: Reporter; readonly times: Times } {
  const times = new Map<string, number>()
  let before = clock.monotonic()
  return {
    times,
    reporter: {
      ...reporter,
      decided(verdict) {
        const now = clock.monotonic()
        times.set(verdict.id, (now - before) / 1000)
        before = now
        reporter.decided(verdict)
      },
    },
  }
}
