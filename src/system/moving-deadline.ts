import type { Clock, Timer } from './clock.ts'

/**
 * A deadline that moves often, such as the deadline for more bytes. To move it later only stores the new time. A timer that then fires too
 * early is set again for the rest. All times are in ms.
 */
export class MovingDeadline {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #onLate: () => void
  #due = 0
  #firesAt = 0
  #timer: Timer | undefined

  /** @param onLate called once when the deadline has passed and the sockets are read: see `Clock.after` */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, onLate: () => void) {
    this.#clock = clock
    this.#onLate = onLate
  }

  /** Sets the deadline to `time` from now. Also starts a cancelled deadline again. */
  move(time: number): void {
    this.#due = this.#clock.monotonic() + time
    if (this.#timer !== undefined && this.#firesAt <= this.#due) return
    this.#timer?.cancel()
    this.#setTimer(time)
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #setTimer(time: number): void {
    this.#firesAt = this.#due
    this.#timer = this.#clock.after(time, this.#onTimer)
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined
    const left = this.#due - this.#clock.monotonic()
    if (left > 0) this.#setTimer(left)
    else this.#onLate()
  }
}
