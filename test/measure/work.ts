import type { PlacesLaw } from '../../src/forward/places-law.ts'

/** A device whose every request takes `time` ms, asked by as many clients as there are places. */
export function work(
  law: PlacesLaw,
  { from, rounds, time }: { from: number; rounds: number; time: number },
): number {
  let now = from
  for (let round = 0; round < rounds; round += 1) {
    const level = law.places
    const places = Array.from({ length: level }, (_, index) => law.sent('/', index + 1, now))
    for (const place of places) place.inside = level
    now += time
    for (const place of places) {
      law.answered(place, now)
      law.left(place)
    }
  }
  return now
}
