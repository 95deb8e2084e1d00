import type { Clock } from './clock.ts'

/** The real time. */
export const systemClock: Clock = { monotonic: () => performance.now(), wall: () => Date.now() }
