import type { RoundTripService } from '../../src/forward/round-trip-service.ts'
import type { Clock } from '../../src/system/clock.ts'
import { stillClock } from '../support/clock.ts'

/** Paces of a device that no other request waits for. `longest`: how long (ms) a client may read nothing. */
export function unhurried(
  longest = 1000,
  clock: Clock = stillClock(),
): Pick<RoundTripService, 'pace' | 'downloadPace'> {
  const pace = { clock, window: longest, least: 1, longest, isCrowded: () => false }
  return { pace: { ...pace, longest: Number.POSITIVE_INFINITY }, downloadPace: pace }
}
