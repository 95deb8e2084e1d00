import type { Clock } from './clock.ts'

/**
 * The real time. `Date.now()` rounds down to the millisecond, and what is labelled with it must not be early, so the
 * wall clock names the end of the current millisecond.
 */
export const systemClock: Clock = { monotonic: () => performance.now(), wall: () => Date.now() + 1 }
