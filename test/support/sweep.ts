import { everySecond } from '../../src/system/every-second.ts'
import type { MovableClock } from './clock.ts'

/** Lets a second pass, in which the sidecars of this clock look for what has expired. */
export async function nextSweep(clock: MovableClock): Promise<void> {
  const swept = Promise.withResolvers<void>()
  // Listeners are called in the order in which they came, so this one comes after those of the sidecars.
  const { close } = everySecond(clock, swept.resolve)
  await clock.advance(1_000)
  await swept.promise
  close()
}
