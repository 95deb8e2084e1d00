import type { Clock, Timer } from '../system/clock.ts'

/**
 * A refused connection is opened again only if the device accepted one, or responded, within this time (ms) before. Otherwise the device
 * counts as switched off.
 */
const RECENT = 1_000

/**
 * The first pause (ms) before a refused connection is opened again. Each next pause is as long as all before it together, plus the first,
 * up to the longest.
 */
const FIRST_PAUSE = 2
const LONGEST_PAUSE = 250

/** The least time (ms) of a trial: see `trial`. */
const LEAST_TRIAL = 10

/** A pause that worked is multiplied by this, as a margin for the device's own timers. */
const MARGIN = 1.5

/** How often (ms) a repeatable request tries a shorter pause. */
const TRIAL_INTERVAL = 1_000

/** How long (ms) a connection that this side has closed waits for the device to close it, too. */
const LONGEST_END = 1_000
/** The bound on that wait grows by this factor after a connection that ended in time. */
const GROWTH = 1.1

/** How many connections the device can take, and what it does when it can take no more. */
export interface Capacity {
  /** The device can take no further connection. A new one opens when one that is closing has ended. */
  readonly isFull: () => boolean
  /**
   * `inside`: the requests at the device. `places`: how many may be there, and how many connections may hold a place. While more are
   * inside, a connection that becomes idle closes.
   */
  readonly load: { readonly inside: number; readonly places: number }
  /** A connection is opened. `present`: how many that hold a place are then at the device, closing ones included. */
  readonly opens: (present: number) => void
  /** The device refused a connection. */
  readonly refused: () => void
  /** The device dropped a new connection before a byte of a response. */
  readonly reset: () => void
}

const no = (): boolean => false
const ignore = (): void => {}
export const AMPLE_CAPACITY: Capacity = {
  isFull: no,
  load: { inside: 0, places: Number.POSITIVE_INFINITY },
  opens: ignore,
  refused: ignore,
  reset: ignore,
}

/** A connection whose end another one awaits. */
export interface Ending {
  onEnded: (() => void) | undefined
}

/**
 * Decides when connections to the device are opened. Much firmware serves one connection at a time: it refuses or resets a second one, and
 * also the next one until some milliseconds after the end of the last. All times in ms.
 */
export class Turns {
  readonly #clock: Clock
  /** True if a new connection opens only after the end, on both sides, of one that is closing. */
  readonly inOrder: () => boolean
  /** Closing connections that no new connection awaits yet. */
  readonly #ending: Ending[] = []
  readonly #onReturn: () => void
  readonly #mostEnd: number
  #longestEnd: number
  /** How long the device needs after the end of a connection before it accepts the next. */
  #pause = 0
  /** When the device last completed a response. */
  worked: number = Number.NEGATIVE_INFINITY
  /** When it last accepted a connection. */
  #opened = Number.NEGATIVE_INFINITY
  /** Since when it has refused all connections. */
  #refusedSince = Number.POSITIVE_INFINITY
  #nextTrial = 0
  /** How many connections that hold a place are at the device. */
  present = 0
  /** The attempts that wait for the end of a connection that holds a place. */
  readonly #waiting = new Set<() => void>()

  /** @param onReturn the device accepts connections again, after it was away */
  constructor(clock: Clock, inOrder: () => boolean, connectTimeout: number, onReturn: () => void) {
    this.#clock = clock
    this.inOrder = inOrder
    this.#onReturn = onReturn
    this.#mostEnd = Math.min(LONGEST_END, connectTimeout / 2)
    this.#longestEnd = this.#mostEnd
  }

  /**
   * Calls `open` when it is the turn of a new connection: after the end of one that is closing, if there is one, and not before `pause` has
   * passed since the device last worked.
   */
  take(pause: number, open: () => void): void {
    const before = this.#ending.pop()
    const wait = (): void => {
      const left = pause === 0 ? 0 : this.worked + pause - this.#clock.monotonic()
      if (left > 0) this.#clock.after(left, open)
      else open()
    }
    if (before === undefined) wait()
    else before.onEnded = wait
  }

  /**
   * A connection is closing: this side has sent FIN. Calls `giveUp` if the device does not close it within a bounded time. The bound halves
   * each time that it passes, so a device that never closes does not delay all requests. It grows again with each connection that ends in
   * time.
   */
  close(ending: Ending, giveUp: () => void): Timer {
    this.#ending.push(ending)
    return this.#clock.after(this.#longestEnd, () => {
      this.#longestEnd /= 2
      giveUp()
    })
  }

  /** A connection that holds a place is opened. */
  came(): void {
    this.present += 1
  }

  /** A connection that held a place has closed, on both sides. */
  gone(): void {
    this.present -= 1
    const [first] = this.#waiting
    first?.()
  }

  /** Calls `ask` when a connection that holds a place has ended, and at the latest after `LONGEST_PAUSE`: the bound may also rise. */
  awaitCapacity(ask: () => void): void {
    const again = (): void => {
      timer.cancel()
      this.#waiting.delete(again)
      ask()
    }
    const timer = this.#clock.after(LONGEST_PAUSE, again)
    this.#waiting.add(again)
  }

  /** The device ended a closing connection within the bound. */
  endedInTime(): void {
    this.#longestEnd = Math.min(GROWTH * this.#longestEnd, this.#mostEnd)
  }

  /** A connection has closed, so the new one that awaits it takes its turn. `responded`: the device had responded on it. */
  ended(ending: Ending, responded: boolean): void {
    if (responded) this.worked = this.#clock.monotonic()
    const at = this.#ending.indexOf(ending)
    if (at >= 0) this.#ending.splice(at, 1)
    ending.onEnded?.()
  }

  /** The device accepted a connection. */
  opened(): void {
    this.#opened = this.#clock.monotonic()
    const isBack = this.#opened - Math.max(this.#refusedSince, this.worked) > RECENT
    this.#refusedSince = Number.POSITIVE_INFINITY
    if (isBack) this.#onReturn()
  }

  /** The device refused a connection. */
  refused(): void {
    this.#refusedSince = Math.min(this.#refusedSince, this.#clock.monotonic())
  }

  /** The pause for a new connection. `repeatable`: its request would be repeated, so it may try a shorter pause. */
  pause(repeatable: boolean): number {
    if (this.#pause === 0 || !repeatable) return this.#pause
    const now = this.#clock.monotonic()
    if (now < this.#nextTrial) return this.#pause
    this.#nextTrial = now + TRIAL_INTERVAL
    return this.#pause < FIRST_PAUSE ? 0 : this.#pause / 2
  }

  now(): number {
    return this.#clock.monotonic()
  }

  /**
   * How long (ms) a new connection has to stay open before a request that the device dropped is sent again. A device that is only busy
   * drops an empty connection within that time, too.
   *
   * @param opening when the dropped connection was opened
   */
  trial(opening: number): number {
    return LEAST_TRIAL + Math.min(2 * (this.now() - opening), LONGEST_PAUSE)
  }

  /**
   * The device responded on a new connection.
   *
   * @param pause the pause before its first attempt
   * @param refused the sum of the pauses after its refusals
   */
  accepted(pause: number, refused: number): void {
    this.#pause = Math.min(refused === 0 ? pause : MARGIN * (pause + refused), RECENT)
  }

  /**
   * The pause before a refused connection is opened again; undefined if it is not opened again.
   *
   * @param dropped the device accepted the connection, then dropped it
   * @param opening when it was opened: a stall of this process between that and the refusal says nothing about the device
   * @param refused the sum of the pauses of this connection so far
   * @param most the bound of that sum
   */
  again(dropped: boolean, opening: number, refused: number, most: number): number | undefined {
    const away = dropped ? this.now() - this.worked : opening - Math.max(this.worked, this.#opened)
    if (refused === 0 && away > RECENT) return undefined
    const next = Math.min(refused + FIRST_PAUSE, LONGEST_PAUSE)
    return refused + next > most ? undefined : next
  }
}
