import { hash } from 'node:crypto'
import type { Clock } from '../system/clock.ts'

/** The pause (ms) after a refusal. Each further refusal doubles it: devices lock an account after a few failures within minutes. */
const SHORTEST_PAUSE = 30_000
const LONGEST_PAUSE = 960_000

/** What is known about the passwords that were tried. Only their digests stay in memory. */
export class PasswordRecord {
  readonly #clock: Clock
  /** The digest of the password whose session worked last. From then on only a refused login counts against it. */
  #worked: string | undefined
  /** A refused password is not tried again before `until` (ms on the monotonic clock). */
  #paused: { readonly digest: string; readonly length: number; readonly until: number } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A session of this password has worked. */
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

  /** Pauses a refused password. Returns how long it is not tried again (ms). */
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
