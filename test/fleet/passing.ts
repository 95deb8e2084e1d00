import type { MovableClock } from '../support/clock.ts'
import { until } from '../support/redis.ts'

/** What a still clock belongs to, such as a sidecar. */
interface Timed {
  readonly clock: MovableClock
}

/** How long `until` and `expect.poll` wait between two looks (ms). */
const INTERVAL = 50

/**
 * A look for `until` or `expect.poll`, before which time passes. The time of a real server goes on meanwhile, so here the still clocks follow it, as
 * far as this process runs.
 */
export function passing<T>(all: readonly Timed[], look: () => T | Promise<T>): () => Promise<T> {
  return async () => {
    for (const { clock } of all) await clock.advance(INTERVAL)
    return look()
  }
}

/** Lets time pass so until the work is done. */
export async function passWhile<T>(all: readonly Timed[], work: Promise<T>): Promise<T> {
  let isOver = false
  const end = (): void => {
    isOver = true
  }
  work.then(end, end)
  await until(passing(all, () => isOver))
  return work
}
