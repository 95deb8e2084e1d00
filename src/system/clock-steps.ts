import { uptime as uptimeOfMachine } from 'node:os'
import type { Clock } from './clock.ts'

/** A change of the wall clock from one look to the next (ms) that is a step. A clock that is slewed moves less in a second. */
export const STEP = 2000

/** Seconds since the machine started, those of a suspend included, which `monotonic` leaves out. */
export type Uptime = () => number

/**
 * Watches for steps of the wall clock: somebody, or NTP, has set it. Returns a function to call about once a second: by how much the
 * clock was set since the last call (ms); 0 if it was not. A drift is no step, nor is the time of a suspend.
 */
export function watchSteps(clock: Clock, uptime: Uptime = uptimeOfMachine): () => number {
  const { monotonic, wall } = clock
  const asleep = (): number => 1000 * uptime() - monotonic()
  let offset = wall() - monotonic()
  let slept = asleep()
  return () => {
    const present = wall() - monotonic()
    const moved = present - offset
    offset = present
    if (Math.abs(moved) < STEP) return 0
    const before = slept
    slept = asleep()
    const step = moved - (slept - before)
    return Math.abs(step) < STEP ? 0 : step
  }
}
