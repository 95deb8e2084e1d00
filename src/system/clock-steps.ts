import { uptime as uptimeOfMachine } from 'node:os'
import type { Clock } from './clock.ts'

/** A change of the wall clock of at least this size (ms) between two calls is a step. A clock that NTP slews moves less in a second. */
export const STEP = 2000

/** Seconds since the machine started. It includes the time of a suspend, which `Clock.monotonic` excludes. */
export type Uptime = () => number

/**
 * Detects steps of the wall clock, by an operator or by NTP. Returns a function to call about once a second: it returns the step since its
 * last call (ms), or 0. Neither drift nor the time of a suspend is a step.
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
