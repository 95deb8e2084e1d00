import type { Clock } from '../system/clock.ts'

/** A session that was seen alive within this time (ms) is not looked at. */
const SHORTEST_LIFE = 5_000

/** How long the present session has not been seen alive, held against how long sessions of this device live. */
export class SessionLife {
  readonly #clock: Clock
  /** When the present session was last seen alive (ms on the monotonic clock). */
  #seenAt = 0
  /** The longest pause (ms) after which a session of this device was still alive. */
  #survived = SHORTEST_LIFE

  constructor(clock: Clock) {
    this.#clock = clock
  }

  began(): void {
    this.#seenAt = this.#clock.monotonic()
  }

  seenAlive(): void {
    const now = this.#clock.monotonic()
    this.#survived = Math.max(this.#survived, now - this.#seenAt)
    this.#seenAt = now
  }

  seenOver(): void {
    if (this.isKnownPause) this.#survived = SHORTEST_LIFE
  }

  /** Sessions of this device have survived a pause as long as the present one. */
  get isKnownPause(): boolean {
    return this.#clock.monotonic() - this.#seenAt <= this.#survived
  }
}
