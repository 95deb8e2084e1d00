/** More places pay if they bring this share of the work that they could bring. */
export const PAYS = 0.5
/** The fewest responses that judge a number of places, and the most. */
export const FEW = 8
const MANY = 64
/** One response counts as at most this many times its usual time. */
const LONGEST = 16
/** The longest pauses (in rounds of responses) before more places are tried, and before half of them. */
const LONGEST_UP = 16
const LONGEST_DOWN = 512

/**
 * The useful work of the device, at one number of places and at another. By Little's law, that is the number of requests divided by the time
 * of a response, as a multiple of its usual time. A device that slows down for reasons of its own does so at both numbers.
 */
export class Work {
  /** The work with the places that were found; 0 if it is not known. */
  known = 0
  /** How many more places are tried the next time. */
  step = 1
  /** How many rounds are left before more places are tried, and before half of them. Behind it the pause after the next attempt. */
  #upIn = 1
  #upWait = 1
  #downIn = FEW
  #downWait = FEW
  #samples = 0
  #inside = 0
  #ratios = 0
  /** The requests at the device whose responses are collected on the way to more places; 0: there is no way. */
  #onTheWay = 0

  /** A response with so many requests at the device took `ratio` times its usual time. `onTheWay`: more places are given, one after the other. */
  add(inside: number, ratio: number, onTheWay: boolean): void {
    const at = onTheWay ? inside : 0
    if (at !== this.#onTheWay) this.restart()
    this.#onTheWay = at
    this.#samples += 1
    this.#inside += inside
    this.#ratios += Math.min(ratio, LONGEST)
  }

  /** The responses so far belong to another number of places. */
  restart(): void {
    this.#samples = this.#inside = this.#ratios = this.#onTheWay = 0
  }

  /** The work of so many requests at once is to be found anew. */
  begin(): void {
    this.known = 0
    this.#upIn = this.#upWait
    this.restart()
  }

  /** Whether so many responses have come. */
  has(samples: number): boolean {
    return this.#samples >= samples
  }

  /** The work of the responses so far. */
  get now(): number {
    return this.#inside / Math.max(this.#ratios, 0.01 * this.#samples)
  }

  /** How many times its usual time a response took, on average. */
  get ratio(): number {
    return Math.max(this.#ratios / this.#samples, 0.01)
  }

  /** The work that `more` places have to bring in place of `places`. */
  worth(places: number, more: number): number {
    return this.known * (1 + (PAYS * (more - places)) / places)
  }

  /** Whether the responses so far already show that a whole round of `places` brings less than `worth`. */
  isHopeless(places: number, worth: number): boolean {
    return this.#ratios * worth > roundOf(places) * places
  }

  /** A round with the places that were found is over. Returns what its pauses allow now. */
  rest(): { readonly up: boolean; readonly down: boolean } {
    this.known = this.now
    this.#upIn -= 1
    this.#downIn -= 1
    return { up: this.#upIn <= 0, down: this.#downIn <= 0 }
  }

  /** The next round may try more places. */
  hurry(): void {
    this.#upIn = 0
  }

  /** An attempt with more places has ended. */
  triedMore(pays: boolean): void {
    this.step = pays ? 2 * this.step : 1
    this.#upWait = pays ? 1 : Math.min(2 * this.#upWait, LONGEST_UP)
    this.#upIn = pays ? 0 : this.#upWait
  }

  /** An attempt with half of the places has ended. `pays`: fewer do the same. */
  triedFewer(pays: boolean): void {
    this.#downWait = pays ? 1 : Math.min(4 * this.#downWait, LONGEST_DOWN)
    this.#downIn = this.#downWait
  }
}

/** How many responses judge so many places. */
export function roundOf(places: number): number {
  return Math.min(MANY, Math.max(FEW, 2 * places))
}
