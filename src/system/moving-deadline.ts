import type { Clock, Timer } from './clock.ts'

/**
 * A deadline that is often moved, such as that for more bytes. A move stores the time, and leaves the timer. A timer that fires early is set for the
 * rest. All times in ms.
 */
export class MovingDeadline {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #onLate: () => void
  #due = 0
  #looksAt = 0
  #timer: Timer | undefined

  /** @param onLate called once, when `time` is over after the last `move`, and what has arrived until then is read */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, onLate: () => void) {
    this.#clock = clock
    this.#onLate = onLate
  }

  /** From now on there is so much time, also after `cancel`. */
  move(time: number): void {
    this.#due = this.#clock.monotonic() + time
    if (this.#timer !== undefined && this.#looksAt <= this.#due) return
    this.#timer?.cancel()
    this.#lookAfter(time)
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #lookAfter(time: number): void {
    this.#looksAt = this.#due
    this.#timer = this.#clock.after(time, this.#look)
  }

  readonly #look = (): void => {
    this.#timer = undefined
    const left = this.#due - this.#clock.monotonic()
    if (left > 0) this.#lookAfter(left)
    else this.#onLate()
  }
}
