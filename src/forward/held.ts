/** This many answers, over at least this time (ms), show that the device carries the requests that are at it. */
const ENOUGH_ANSWERS = 32
const A_WHILE = 100

/** How many requests at once the device has been seen to carry. Times in ms. Only this class writes its fields, as in `Bound`. */
export class Held {
  /** This many requests at once were answered for a while. */
  level = 0
  /** The most requests at the device since it was last struck. */
  peak = 0
  /** When `peak` was reached. */
  peakAt = Number.NEGATIVE_INFINITY
  #answers = 0
  #since = 0
  #least = Number.POSITIVE_INFINITY

  /** `level` requests are at the device. */
  passes(level: number, now: number): void {
    if (level <= this.peak) return
    this.peak = level
    this.peakAt = now
  }

  /**
   * The device has answered one of `level` requests at `now`, or `count` of them since `first`. Returns whether that shows that it carries
   * more than was known.
   */
  answered(level: number, now: number, count = 1, first: number = now): boolean {
    if (level <= this.level) return false
    if (this.#answers === 0) this.#since = first
    this.#answers += count
    this.#least = Math.min(this.#least, level)
    if (this.#answers < ENOUGH_ANSWERS || now - this.#since < A_WHILE) return false
    this.level = this.#least
    this.#beginAnew()
    return true
  }

  /** The device had no room above `limit`. What it carries above that has to be shown again. */
  struck(limit: number): void {
    this.level = Math.min(this.level, limit)
    this.peak = limit
    this.#beginAnew()
  }

  /** The fleet leaves `most` places to this sidecar. What has worked above that no longer counts: other sidecars have these places now. */
  shared(most: number): void {
    this.level = Math.min(this.level, most)
    this.peak = Math.min(this.peak, most)
  }

  #beginAnew(): void {
    this.#answers = 0
    this.#since = 0
    this.#least = Number.POSITIVE_INFINITY
  }
}
