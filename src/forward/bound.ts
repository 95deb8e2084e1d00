import { attemptAt, type Ceiling, mostUnder, UNKNOWN } from './ceilings.ts'

/** What raises the bound, and what lowers it: the rows of the two tables in docs/measure.md, and the labels of `postern_upstream_limit_changes_total`. */
export const RAISES = ['keeps_up', 'silent', 'tried_again'] as const
export const LOWERS = ['latency', 'refused', 'hangs', 'shared'] as const
export type Raise = (typeof RAISES)[number]
export type Lower = (typeof LOWERS)[number]
export type LimitReason = Raise | Lower

/** How the device has shown that it has no room for more requests at once. */
export type Strike = Extract<Lower, 'refused' | 'hangs'>

/**
 * Why the ceiling is another one. `doubted`: the device was away with no more requests than broke it. `carried`: it has answered more.
 * `attempt`: one more is tried. `shared`: the fleet says so. `forgotten`: the operator does.
 */
export type CeilingCause = Strike | 'doubted' | 'carried' | 'attempt' | 'shared' | 'forgotten'

/** Whether the device has shown that it has no room above the ceiling. */
export function isStrike(cause: CeilingCause): cause is Strike {
  return cause === 'refused' || cause === 'hangs'
}

/** What happens to the bound. */
export interface BoundEvents {
  readonly onChange?: (reason: LimitReason) => void
  readonly onCeiling?: (cause: CeilingCause) => void
}

export interface BoundSettings {
  readonly min: number
  readonly max: number
  /** Other sidecars have requests at the device, too: one place is given at a time from the start, because all of them grow. */
  readonly inFleet?: boolean
}

/** It begins with this many places. */
const FIRST = 2
/** Above so many places, and where nothing is known, one more is given at a time. */
const CAREFUL = 4

const ignore = (): void => {}

/**
 * How many requests the device gets at once. It holds the number and what limits it; others decide when it changes. Times in ms.
 *
 * Only this class writes its fields. Each request reads them several times, so they are no getters.
 */
export class Bound {
  readonly min: number
  /** The bound now. */
  limit: number
  /** What is found so far. */
  found: number
  /** What is tried now; the same as `found` but for an attempt. While the bound is lower, this is approached place by place. */
  tried: number
  /** Empty if the device has not shown that any number is too many. */
  ceiling: Ceiling
  /** The bound was last changed. Only requests that were sent since then tell about it. */
  since = 0
  readonly #max: number
  readonly #careful: number
  readonly #onChange: (reason: LimitReason) => void
  readonly #onCeiling: (cause: CeilingCause) => void
  /** The places so far have held, and one more. 0: the other sidecars of the fleet still have all. */
  #reach: number
  /** The bound that is tried although there is a ceiling. */
  #attempt = Number.POSITIVE_INFINITY

  /** @param ceiling from before a restart */
  constructor({ min, max, inFleet = false }: BoundSettings, events: BoundEvents, ceiling: Ceiling) {
    this.min = min
    this.#max = max
    this.#careful = inFleet ? 1 : CAREFUL
    this.#onChange = events.onChange ?? ignore
    this.#onCeiling = events.onCeiling ?? ignore
    this.ceiling = ceiling
    this.#reach = this.#reachAbove(0)
    this.found = this.tried = Math.min(Math.max(FIRST, min), this.most)
    this.limit = Math.min(this.tried, this.#reach)
  }

  /** What the configuration and the ceiling allow. */
  get most(): number {
    return Math.max(this.min, Math.min(this.#max, mostUnder(this.ceiling)))
  }

  /** `limit`, or the nearest that is allowed. */
  allowed(limit: number): number {
    return Math.max(this.min, Math.min(limit, this.most))
  }

  raise(to: number, reason: Raise, now: number): void {
    this.#find(to, reason, now)
  }

  lower(to: number, reason: Lower, now: number): void {
    this.#find(to, reason, now)
  }

  /** Tries another bound for a while, without a word about it. */
  attempt(limit: number, now: number): void {
    if (limit !== this.tried) this.since = now
    this.tried = limit
    this.#reaches(this.#reach)
  }

  /** The attempt has ended: what was found stays. */
  settle(now: number): void {
    this.attempt(this.found, now)
  }

  /** What was sent before tells nothing about the bound. */
  beginAnew(now: number): void {
    this.since = now
  }

  /** So many places have held: one more is given, and none of those so far is taken. */
  reachPast(held: number): void {
    this.#reaches(Math.max(this.#reach, held + 1))
  }

  /** One more place is given, if the bound needs it. */
  reachOneMore(): void {
    if (this.limit >= this.#reach) this.#reaches(this.#reach + 1)
  }

  /** One place more than have held is given, if that was more. */
  reachAnew(held: number): void {
    this.#reaches(this.#reachAbove(held))
  }

  /** No request gets a place before `reachAnew`. */
  wait(): void {
    this.#reaches(0)
  }

  /** The ceiling is another one. */
  know(ceiling: Ceiling, cause: CeilingCause): void {
    if (ceiling === this.ceiling) return
    this.ceiling = ceiling
    this.#onCeiling(cause)
  }

  /** The wall clock was set: the same ceiling has other times. */
  retime(ceiling: Ceiling): void {
    this.ceiling = ceiling
  }

  /** Allows one more place than the ceiling, if it is time for that. Returns whether it is. */
  passCeiling(now: number): boolean {
    const next = attemptAt(this.ceiling, now)
    if (next === this.ceiling) return false
    this.know(next, 'attempt')
    this.#attempt = mostUnder(next)
    return true
  }

  /** No more than the ceiling is tried. */
  stayBelow(): void {
    this.#attempt = Number.POSITIVE_INFINITY
  }

  /** A request in place `level` of `carried` was answered: what was refused or hung there was a wrong guess. */
  works(level: number, carried: number): void {
    if (carried < this.#attempt || level > this.#attempt) return
    const { guess, wall } = this.ceiling
    if (guess !== undefined) this.know(wall === undefined ? UNKNOWN : { wall }, 'carried')
  }

  #find(to: number, reason: LimitReason, now: number): void {
    const before = this.found
    this.found = to
    this.attempt(to, now)
    if (to !== before) this.#onChange(reason)
  }

  #reaches(reach: number): void {
    this.#reach = reach
    this.limit = Math.min(this.tried, reach)
  }

  #reachAbove(held: number): number {
    return Math.max(this.#careful, this.min, held + 1)
  }
}
