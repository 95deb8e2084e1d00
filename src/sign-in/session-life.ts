import type { Clock } from '../system/clock.ts'

/** A session that was seen alive within this time (ms) needs no probe. */
const SHORTEST_LIFE = 5_000

/** How long ago the present session was seen alive, compared with how long sessions of this device live without a request. */
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

  /** The present session is over. If sessions had survived such a pause, that is forgotten. */
  seenOver(): void {
    if (this.isKnownPause) this.#survived = SHORTEST_LIFE
  }

  /** Whether a session of this device has survived a pause as long as the present one. */
  get isKnownPause(): boolean {
    return this.#clock.monotonic() - this.#seenAt <= this.#survived
  }
}
