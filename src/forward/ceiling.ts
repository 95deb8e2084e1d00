/** A bound past which the device refused, or let requests hang. It survives a restart, and is tried again. */
export interface Ceiling {
  readonly limit: number
  /** When one more place is tried (ms). */
  readonly until: number
  /** The time between two attempts (ms). It doubles up to a day. */
  readonly wait: number
}

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** The ceiling after the device has shown that it has no room above `limit`, at `now` (ms). */
export function nextCeiling(before: Ceiling | undefined, limit: number, now: number): Ceiling {
  const wait = before === undefined ? HOUR : Math.min(2 * before.wait, DAY)
  return { limit, until: now + wait, wait }
}

/** One more place is tried. Undefined if it is not time yet. */
export function attemptAt(ceiling: Ceiling, now: number): Ceiling | undefined {
  const { limit, until, wait } = ceiling
  return now < until ? undefined : { limit: limit + 1, until: now + wait, wait }
}
