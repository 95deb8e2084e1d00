/** The device had no room for more than these places: it refused requests, let them hang, or went away for an uncertain reason. */
export interface Guess {
  readonly places: number
  /** When one more place is tried (ms, monotonic). */
  readonly until: number
  /** The time between two attempts (ms). It doubles up to a day. */
  readonly wait: number
}

/** One request more than these places broke the device at once. More are tried only after `postern retry`. */
export interface Wall {
  readonly places: number
  /** Later the device was away with no more requests than `places`, so their number may not have been the cause. */
  readonly doubted?: true
  /** Present if a fleet has decided the wall: the version of its decision. `places` are then those of all its sidecars together. */
  readonly fleet?: number
}

/** The bounds on the number of places that the device has shown. They survive a restart. */
export interface Ceiling {
  readonly guess?: Guess
  readonly wall?: Wall
}

const HOUR = 3_600_000
/** The longest time between two attempts (ms). */
export const DAY = 24 * HOUR

export const UNKNOWN: Ceiling = {}

/** The sign by which the device has shown that it has no room for more requests at once. */
export type Strike = 'refused' | 'hangs'

/**
 * Why the ceiling changes. `doubted`: the device was away with no more requests than the wall allows. `carried`: it has answered more at
 * once. `attempt`: one more place is tried. `shared`: the fleet has decided it. `forgotten`: the operator has (`postern retry`).
 */
export type CeilingCause = Strike | 'doubted' | 'carried' | 'attempt' | 'shared' | 'forgotten'

/** Whether the device has shown that it has no room above the ceiling. */
export function isStrike(cause: CeilingCause): cause is Strike {
  return cause === 'refused' || cause === 'hangs'
}

/** The places that the ceiling allows now; infinite if nothing is known. */
export function mostUnder({ guess, wall }: Ceiling): number {
  return Math.min(guess?.places ?? Number.POSITIVE_INFINITY, wall?.places ?? Number.POSITIVE_INFINITY)
}

/** The ceiling after the device has shown that it has no room above `places`, at `now` (ms). */
export function guessed({ guess, wall }: Ceiling, places: number, now: number): Ceiling {
  const wait = guess === undefined ? HOUR : Math.min(2 * guess.wait, DAY)
  return { ...(wall && { wall }), guess: { places, until: now + wait, wait } }
}

/** The ceiling after the device was away with no more requests than the wall allows. */
export function doubted(ceiling: Ceiling): Ceiling {
  const { wall } = ceiling
  return wall === undefined || wall.doubted ? ceiling : { ...ceiling, wall: { ...wall, doubted: true } }
}

/** The ceiling after the device has carried `carried` requests at once for a while: a lower wall was wrong. */
export function disproved(ceiling: Ceiling, carried: number): Ceiling {
  const { guess, wall } = ceiling
  if (wall === undefined || wall.fleet !== undefined || wall.places >= carried) return ceiling
  return guess === undefined ? UNKNOWN : { guess }
}

/** The ceiling with one more place, if it is time to try that. Otherwise returns the same object. */
export function attemptAt(ceiling: Ceiling, now: number): Ceiling {
  const { guess } = ceiling
  if (guess === undefined || now < guess.until) return ceiling
  const { places, wait } = guess
  return { ...ceiling, guess: { places: places + 1, until: now + wait, wait } }
}

/** When one more place is tried (ms). Undefined: the operator decides, or nothing is known. */
export function nextAttempt({ guess, wall }: Ceiling): number | undefined {
  return guess !== undefined && (wall === undefined || guess.places < wall.places) ? guess.until : undefined
}

/** The most requests at once for which the device has shown room, in a fleet over all sidecars; undefined if nothing is known. */
export function roomUnder({ guess, wall }: Ceiling): number | undefined {
  return wall?.places ?? guess?.places
}

/** The ceiling of a sidecar that has left its fleet. */
export function withoutFleet(ceiling: Ceiling): Ceiling {
  const { wall } = ceiling
  if (wall?.fleet === undefined) return ceiling
  const { fleet: _, ...own } = wall
  return { ...ceiling, wall: own }
}
