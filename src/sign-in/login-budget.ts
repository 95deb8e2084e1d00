import type { Clock } from '../system/clock.ts'

/**
 * A refused session causes a login. If the device refuses the request again, the account may not use its path, and another login would not
 * help: for this time (ms), refused sessions cause none.
 */
const LOGIN_INTERVAL = 5_000

/** Responses to clients that change the session may cause this many logins in a row, and then one per `LOGIN_INTERVAL`. */
const MOST_CHANGES = 3

/** How many logins the responses to clients may cause. */
export class LoginBudget {
  readonly #clock: Clock
  readonly #onChanging: () => void
  /** Refused sessions cause no login before this time (ms on the monotonic clock). */
  #noneBefore = 0
  /** Each login that a change causes moves this time by `LOGIN_INTERVAL` (ms on the monotonic clock). */
  #changesUntil = 0
  #toldChanging = false

  /** @param onChanging called once, for the first change that may cause no login */
  constructor(clock: Clock, onChanging: () => void) {
    this.#clock = clock
    this.#onChanging = onChanging
  }

  /** Whether a refused session may cause a login now. `changed`: a response to a client has set another session. */
  takeRefusal(changed: boolean): boolean {
    const now = this.#clock.monotonic()
    const allowed = changed ? this.takeChange() : now >= this.#noneBefore
    if (allowed) this.#noneBefore = now + LOGIN_INTERVAL
    return allowed
  }

  /** Whether a changed session may cause a login now. Bounded, because at some devices the next response changes the next session, too. */
  takeChange(): boolean {
    const now = this.#clock.monotonic()
    const from = Math.max(this.#changesUntil, now)
    const allowed = from - now < MOST_CHANGES * LOGIN_INTERVAL
    if (allowed) this.#changesUntil = from + LOGIN_INTERVAL
    else if (!this.#toldChanging) {
      this.#toldChanging = true
      this.#onChanging()
    }
    return allowed
  }

  /** The next refused session may cause a login at once. */
  allowNext(): void {
    this.#noneBefore = 0
  }
}
