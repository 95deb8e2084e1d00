import type { Measure } from '../../src/forward/measure.ts'

/** A device whose every request takes `time` ms, asked by as many clients as there are places. */
export function work(
  measure: Measure,
  { from, rounds, time }: { from: number; rounds: number; time: number },
): number {
  let now = from
  for (let round = 0; round < rounds; round += 1) {
    const level = measure.limit
    const places = Array.from({ length: level }, (_, index) => measure.sent('/', index + 1, now))
    for (const place of places) place.level = level
    now += time
    for (const place of places) {
      measure.answered(place, now)
      measure.left(place)
    }
  }
  return now
}
