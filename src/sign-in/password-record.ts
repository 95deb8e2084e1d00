import { hash } from 'node:crypto'
import type { Clock } from '../system/clock.ts'

/** In ms. Each further refusal doubles the pause: devices lock an account after a few failures in some minutes. */
const SHORTEST_PAUSE = 30_000
const LONGEST_PAUSE = 960_000

/** What is known of the passwords that were tried. Memory keeps no more of them than their digests. */
export class PasswordRecord {
  readonly #clock: Clock
  /** The digest of the password whose session worked last. From then on only a login refuses it. */
  #worked: string | undefined
  /** A refused password is not tried again before `until` (ms on the monotonic clock). */
  #paused: { readonly digest: string; readonly length: number; readonly until: number } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A session of this password worked. */
  worked(password: string): void {
    this.#worked = hash('sha256', password)
    this.#paused = undefined
  }

  hasWorked(password: string): boolean {
    return this.#worked === hash('sha256', password)
  }

  /** From now on no password counts as one that has worked. */
  forgetWorked(): void {
    this.#worked = undefined
  }

  /** The password is not tried again for a while. Returns how long (ms). */
  pause(password: string): number {
    const digest = hash('sha256', password)
    const length =
      this.#paused?.digest === digest ? Math.min(this.#paused.length * 2, LONGEST_PAUSE) : SHORTEST_PAUSE
    this.#paused = { digest, length, until: this.#clock.monotonic() + length }
    return length
  }

  isPaused(password: string): boolean {
    return this.#paused?.digest === hash('sha256', password) && this.#clock.monotonic() < this.#paused.until
  }

  endPause(): void {
    this.#paused = undefined
  }
}
