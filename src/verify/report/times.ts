import type { Clock } from '../../system/clock.ts'
import type { Reporter } from '../verdict.ts'

/** A reporter that also measures: `times` has, by id, the seconds between the decision on a promise and the one before. */
export function timed(
  reporter: Reporter,
  clock: Pick<Clock, 'monotonic'>,
): { readonly reporter: Reporter; readonly times: ReadonlyMap<string, number> } {
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
