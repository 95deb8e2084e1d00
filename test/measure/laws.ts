import { PlacesLaw } from '../../src/forward/places-law.ts'
import type { Law } from './simulation.ts'

/** The laws that other proxies use, in their usual form, to be compared with ours: `node test/measure/compare.ts`. */

interface Sent {
  readonly at: number
  readonly level: number
}

interface Bounds {
  readonly min: number
  readonly max: number
}
const AUTO: Bounds = { min: 1, max: 64 }
/** The bounds without `upstream.max_in_flight`. */
export const BY_DEFAULT: Bounds = { min: 1, max: 4 }

/** The law of Postern, which keeps its ceiling over a restart. */
export class RestartedLaw extends PlacesLaw {
  readonly keepsHalf = true
  readonly #bounds: Bounds
  constructor(ceiling?: PlacesLaw['ceiling'], bounds: Bounds = AUTO) {
    super(bounds, {}, ceiling)
    this.#bounds = bounds
  }
  restarted(): RestartedLaw {
    return new RestartedLaw(this.ceiling, this.#bounds)
  }
}

/** A law that decides by the time of each response. */
abstract class TimedLaw implements Law<Sent> {
  /** It keeps nothing. */
  abstract restarted(): TimedLaw
  protected bound = 2
  get places(): number {
    return Math.max(1, Math.min(64, Math.floor(this.bound)))
  }
  sent(_path: string, level: number, now: number): Sent {
    return { at: now, level }
  }
  answered(place: Sent, now: number): void {
    this.took(now - place.at, place.level)
  }
  abstract took(time: number, level: number): void
  abstract refused(): void
  reset(): void {
    this.refused()
  }
}

/** One more for each round of responses; nine tenths after a refusal, or a response past a fixed time (Netflix: `AIMDLimit`). */
export class Aimd extends TimedLaw {
  override restarted(): Aimd {
    return new Aimd()
  }
  override took(time: number, level: number): void {
    if (time > 5_000) this.refused()
    else if (2 * level >= this.places) this.bound = Math.min(64, this.bound + 1 / this.places)
  }
  override refused(): void {
    this.bound = Math.max(1, 0.9 * this.bound)
  }
}

/** Keeps the estimated queue at the device between 3 and 6 times the logarithm of the bound (Netflix: `VegasLimit`). */
export class Vegas extends TimedLaw {
  override restarted(): Vegas {
    return new Vegas()
  }
  #least = Number.POSITIVE_INFINITY
  override took(time: number, level: number): void {
    this.#least = Math.min(this.#least, time)
    const step = Math.max(1, Math.log10(this.places))
    const queue = Math.ceil(this.bound * (1 - this.#least / time))
    if (2 * level < this.places) return
    if (queue <= 3 * step) this.bound = Math.min(64, this.bound + step / this.places)
    else if (queue > 6 * step) this.bound = Math.max(1, this.bound - step / this.places)
  }
  override refused(): void {
    this.bound = Math.max(1, this.bound - Math.max(1, Math.log10(this.places)))
  }
}

/** The bound times the usual time divided by the time now, and room for the square root of it (Netflix: `Gradient2Limit`; Envoy). */
export class Gradient extends TimedLaw {
  override restarted(): Gradient {
    return new Gradient()
  }
  #usual = 0
  override took(time: number, level: number): void {
    this.#usual = this.#usual === 0 ? time : this.#usual + (time - this.#usual) / 600
    if (2 * level < this.places) return
    const gradient = Math.max(0.5, Math.min(1, (1.5 * this.#usual) / time))
    const next = this.bound * gradient + Math.sqrt(this.bound)
    this.bound = Math.max(1, Math.min(64, this.bound + 0.2 * (next - this.bound)))
  }
  override refused(): void {
    this.bound = Math.max(1, this.bound / 2)
  }
}
