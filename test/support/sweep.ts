import type { Clock } from '../../src/system/clock.ts'
import { everySecond } from '../../src/system/every-second.ts'

/** Waits until the sidecars of this process have looked for what has expired. */
export async function nextSweep(clock: Clock): Promise<void> {
  const swept = Promise.withResolvers<void>()
  // Listeners are called in the order in which they came, so this one comes after those of the sidecars.
  const { close } = everySecond(clock, swept.resolve)
  await swept.promise
  close()
}
