import type { Bound } from './bound.ts'
import type { DevicePlaces } from './device-places.ts'
import type { Outages } from './outages.ts'
import type { UsualTimes } from './usual-times.ts'

/** If requests wait, and neither an answer nor a sign of overload comes, the bound rises after this time (ms), and then at each look. */
export const SILENCE = 500
/** The same time if all requests at the device are answered, and their responses go on. */
const ANSWERED_SILENCE = 200
/** From this many places on, twice as many may bury a device that has slowed down, so the first silence is longer. */
const MANY = 8
/** A raised bound is lowered again after a silence of this many times the usual time, and of at least `SHORTEST_BURIAL` (ms). */
const TIMES_OF_BURIAL = 8
const SHORTEST_BURIAL = 200
/** With fewer places than this, twice as many bury no device. */
const LEAST_BURIED = 4

/** For how long the device has sent no response while requests wait, and what that means. Times in ms. */
export class Silence {
  readonly #bound: Bound
  readonly #places: DevicePlaces
  readonly #times: UsualTimes
  readonly #outages: Pick<Outages, 'answeredAt'>
  #since = 0
  /**
   * What this silence has caused so far. After either, it does not lower the bound until the next response. After `lowered`, it does not
   * raise it, either.
   */
  #effect: 'raised' | 'lowered' | undefined

  constructor(bound: Bound, places: DevicePlaces, times: UsualTimes, outages: Pick<Outages, 'answeredAt'>) {
    this.#bound = bound
    this.#places = places
    this.#times = times
    this.#outages = outages
  }

  /** The device has answered. */
  answered(now: number): void {
    this.#since = now
    this.#effect = undefined
  }

  /** The device has refused a connection: it is overloaded, and does not only keep silent. */
  refused(now: number): void {
    this.#since = now
  }

  /** Whether the bound was raised and the device has been silent since then, for much longer than usual. */
  buries(now: number): boolean {
    const { waiting, carried } = this.#places
    const { found, limit } = this.#bound
    const before = Math.min(carried, found)
    if (this.#effect !== undefined || before < LEAST_BURIED) return false
    if (Math.min(waiting.length, limit) <= before) return false
    const silence = now - Math.max(this.#outages.answeredAt, ...waiting.map(({ sentAt }) => sentAt))
    // A path without a usual time may hang.
    const usual = Math.max(...waiting.map(({ path }) => this.#times.of(path) ?? Number.POSITIVE_INFINITY))
    const buries = silence >= Math.max(SHORTEST_BURIAL, TIMES_OF_BURIAL * usual)
    if (buries) this.#effect = 'lowered'
    return buries
  }

  /**
   * Whether more places would bring answers: all places are taken, and the device is silent for longer than the usual time explains. A
   * silence for which the bound was lowered is overload, and no reason to raise the bound again.
   *
   * @param level how many requests have places
   * @param path of the last request that was sent
   */
  hidesRoom(level: number, waitsSince: number, path: string, now: number): boolean {
    const { limit, most } = this.#bound
    if (this.#effect === 'lowered' || level < limit || limit >= most) return false
    const many = level >= MANY && this.#effect !== 'raised'
    // Long responses hold places, but no answer is due.
    const awaits = this.#places.waiting.length > 0
    const longest = awaits ? Math.max(SILENCE, this.#times.silence(path, many)) : ANSWERED_SILENCE
    if (now - Math.max(this.#since, waitsSince) < longest) return false
    this.#since = now - longest
    this.#effect = 'raised'
    return true
  }
}
