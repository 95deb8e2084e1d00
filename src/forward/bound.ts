import { attemptAt, type Ceiling, mostUnder, UNKNOWN } from './ceilings.ts'

/**
 * What raises the bound, and what lowers it: the rows of the two tables in docs/measure.md, and the labels of
 * `postern_upstream_limit_changes_total`.
 */
export const RAISES = ['keeps_up', 'silent', 'tried_again'] as const
export const LOWERS = ['latency', 'refused', 'hangs', 'shared'] as const
export type Raise = (typeof RAISES)[number]
export type Lower = (typeof LOWERS)[number]
export type LimitReason = Raise | Lower

/** The sign by which the device has shown that it has no room for more requests at once. */
export type Strike = Extract<Lower, 'refused' | 'hangs'>

/**
 * Why the ceiling changes. `doubted`: the device was away with no more requests than the wall allows. `carried`: it has answered more at
 * once. `attempt`: one more place is tried. `shared`: the fleet has decided it. `forgotten`: the operator has (`postern retry`).
 */
export type CeilingCause = Strike | 'doubted' | 'carried' | 'attempt' | 'shared' | 'forgotten'

/** Whether the device has shown that it has no room above the ceiling. */
export function isStrike(cause: CeilingCause): cause is Strike {
  return cause === 'refused' || cause === 'hangs'
}

/** Called when the bound or the ceiling changes. */
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

/** The first bound (places). */
const FIRST = 2
/** Up to this many places are given without proof. Above, and if a fleet shares the device, one more is given at a time. */
const CAREFUL = 4

const ignore = (): void => {}

/**
 * How many requests the device gets at once: the number, and what limits it. The callers decide when it changes. Times in ms.
 *
 * Only this class writes its fields. They are no getters, because each request reads them several times.
 */
export class Bound {
  readonly min: number
  /** The bound now. */
  limit: number
  /** The bound that was found so far. */
  found: number
  /** The bound that is tried now: `found`, but for an attempt. While `limit` is lower, it approaches this place by place. */
  tried: number
  /** Empty if the device has not shown that any number is too many. */
  ceiling: Ceiling
  /** When the bound last changed. Only requests that were sent since then tell about it. */
  since = 0
  readonly #max: number
  readonly #careful: number
  readonly #onChange: (reason: LimitReason) => void
  readonly #onCeiling: (cause: CeilingCause) => void
  /**
   * The most places that are given now: one more than the device is known to carry. 0: the other sidecars of the fleet still have all
   * places.
   */
  #reach: number
  /** The bound of an attempt above the ceiling; infinite if there is none. */
  #attempt = Number.POSITIVE_INFINITY

  /** @param ceiling what is known from before a restart */
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

  /** The highest bound that the configuration and the ceiling allow. */
  get most(): number {
    return Math.max(this.min, Math.min(this.#max, mostUnder(this.ceiling)))
  }

  /** `limit`, or the nearest number that is allowed. */
  allowed(limit: number): number {
    return Math.max(this.min, Math.min(limit, this.most))
  }

  raise(to: number, reason: Raise, now: number): void {
    this.#find(to, reason, now)
  }

  lower(to: number, reason: Lower, now: number): void {
    this.#find(to, reason, now)
  }

  /** Tries another bound for a while. No event reports it. */
  attempt(limit: number, now: number): void {
    if (limit !== this.tried) this.since = now
    this.tried = limit
    this.#reaches(this.#reach)
  }

  /** Ends an attempt: the bound is again the one that was found. */
  settle(now: number): void {
    this.attempt(this.found, now)
  }

  /** From now on, only requests that are sent later tell about the bound. */
  beginAnew(now: number): void {
    this.since = now
  }

  /** The device carries `held` requests at once, so one more place is given. No place is taken back. */
  reachPast(held: number): void {
    this.#reaches(Math.max(this.#reach, held + 1))
  }

  /** Gives one more place, if only the reach keeps the bound lower. */
  reachOneMore(): void {
    if (this.limit >= this.#reach) this.#reaches(this.#reach + 1)
  }

  /** Gives one place more than `held`, and takes back all above it. */
  reachAnew(held: number): void {
    this.#reaches(this.#reachAbove(held))
  }

  /** No request gets a place before `reachAnew`. */
  wait(): void {
    this.#reaches(0)
  }

  /** Replaces the ceiling and reports why. */
  know(ceiling: Ceiling, cause: CeilingCause): void {
    if (ceiling === this.ceiling) return
    this.ceiling = ceiling
    this.#onCeiling(cause)
  }

  /** The wall clock was set: the same ceiling has other times. */
  retime(ceiling: Ceiling): void {
    this.ceiling = ceiling
  }

  /** If it is time for an attempt, allows one more place than the ceiling. Returns whether it is. */
  passCeiling(now: number): boolean {
    const next = attemptAt(this.ceiling, now)
    if (next === this.ceiling) return false
    this.know(next, 'attempt')
    this.#attempt = mostUnder(next)
    return true
  }

  /** Ends the attempt above the ceiling. */
  stayBelow(): void {
    this.#attempt = Number.POSITIVE_INFINITY
  }

  /**
   * The device answered a request beside which `level` requests had places; `carried` places have worked so far. If these reach the attempt
   * above the ceiling, the guess was wrong.
   */
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
