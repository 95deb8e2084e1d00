import type { Bound } from './bound.ts'
import type { DevicePlaces } from './device-places.ts'
import type { Outages } from './outages.ts'
import type { UsualTimes } from './usual-times.ts'

/** Requests wait, and no answer and no sign of overload has come: the bound rises after this time (ms), then at each look. */
export const SILENCE = 500
/** The same if all requests at the device were answered, and their responses go on. */
const ANSWERED_SILENCE = 200
/** From so many places on, twice as many may bury a device that has slowed down: the first silence is longer. */
const MANY = 8
/** A bound that was raised goes back after a silence of so many times the usual time, and at least so long (ms). */
const TIMES_OF_BURIAL = 8
const SHORTEST_BURIAL = 200
/** Twice as many places as fewer than this bury no device. */
const LEAST_BURIED = 4

/** For how long the device has sent no response while requests wait, and what that means. Times in ms. */
export class Silence {
  readonly #bound: Bound
  readonly #places: DevicePlaces
  readonly #times: UsualTimes
  readonly #outages: Pick<Outages, 'answeredAt'>
  #since = 0
  /** What was done about it; until the next response it is neither again. */
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

  /** The device has refused a connection: it is overloaded rather than silent. */
  refused(now: number): void {
    this.#since = now
  }

  /** The bound was raised, and since then the device is silent, for much longer than usual. */
  buries(now: number): boolean {
    const { waiting, carried } = this.#places
    const { found, limit } = this.#bound
    const before = Math.min(carried, found)
    if (this.#effect !== undefined || before < LEAST_BURIED) return false
    if (Math.min(waiting.length, limit) <= before) return false
    const silence = now - Math.max(this.#outages.answeredAt, ...waiting.map(({ sentAt }) => sentAt))
    // A path that has no usual time may hang.
    const usual = Math.max(...waiting.map(({ path }) => this.#times.of(path) ?? Number.POSITIVE_INFINITY))
    const buries = silence >= Math.max(SHORTEST_BURIAL, TIMES_OF_BURIAL * usual)
    if (buries) this.#effect = 'lowered'
    return buries
  }

  /**
   * All places are taken, and the device is silent for longer than its usual time explains. A silence after the bound was raised is
   * overload, not a reason to raise it again.
   *
   * @param level the requests that have a place
   * @param path of the last request that was sent
   */
  hidesRoom(level: number, waitsSince: number, path: string, now: number): boolean {
    const { limit, most } = this.#bound
    if (this.#effect === 'lowered' || level < limit || limit >= most) return false
    const many = level >= MANY && this.#effect !== 'raised'
    // Responses that go on for long hold places, but no answer is due.
    const awaits = this.#places.waiting.length > 0
    const longest = awaits ? Math.max(SILENCE, this.#times.silence(path, many)) : ANSWERED_SILENCE
    if (now - Math.max(this.#since, waitsSince) < longest) return false
    this.#since = now - longest
    this.#effect = 'raised'
    return true
  }
}
