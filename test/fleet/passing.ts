import type { MovableClock } from '../support/clock.ts'

/** How long `expect.poll` of Vitest waits between two looks (ms). */
const INTERVAL = 50

/**
 * A look for `expect.poll`, before which time passes. The time of a real server goes on meanwhile, so here the still clock follows it, as far as
 * this process runs.
 */
export function passing<T>(clock: MovableClock, look: () => T | Promise<T>): () => Promise<T> {
  return async () => {
    await clock.advance(INTERVAL)
    return look()
  }
}
