import type { Clock, Timer } from '../system/clock.ts'

/** A refused connection is opened again only if the device had one within this time (ms). Otherwise it counts as switched off. */
const RECENT = 1_000

/** The first pause before a refused connection is opened again (ms). Each pause is as long as all before it together, up to the longest. */
const FIRST_PAUSE = 2
const LONGEST_PAUSE = 250

/** The least time (ms) of a trial: see `trial`. */
const LEAST_TRIAL = 10

/** A pause that worked is kept so many times as long: the device has timers of its own. */
const MARGIN = 1.5

/** How often (ms) a repeatable request tries half the pause that is known. */
const TRIAL_INTERVAL = 1_000

/** How long (ms) a connection that was closed here waits for the device to close it, too. */
const LONGEST_END = 1_000
/** This bound grows by that factor after a connection that ended in time. */
const GROWTH = 1.1

/** How many connections the device can take, and what it does when it can take no more. */
export interface Capacity {
  /** The device can take no further connection: a new one takes the turn of one that is closing. */
  readonly isFull: () => boolean
  /** How many connections that hold a place the device may have. */
  readonly places: () => number
  /** More requests are at the device than it can take: connections that become idle close. */
  readonly isCrowded: () => boolean
  /** A connection is opened. `present`: how many that hold a place are then at the device, closing ones included. */
  readonly opens: (present: number) => void
  /** It refused a connection. */
  readonly refused: () => void
  /** It dropped a new connection before a byte of a response. */
  readonly reset: () => void
}

const no = (): boolean => false
const ignore = (): void => {}
export const AMPLE_CAPACITY: Capacity = {
  isFull: no,
  isCrowded: no,
  opens: ignore,
  refused: ignore,
  reset: ignore,
  places: () => Number.POSITIVE_INFINITY,
}

/** A connection whose end another one awaits. */
export interface Ending {
  onEnded: (() => void) | undefined
}

/**
 * When connections to the device are opened. Much firmware serves one connection at a time: it refuses or resets a second one, and also
 * the next one until some milliseconds after the end of the last. All times in ms.
 */
export class Turns {
  readonly #clock: Clock
  /** A connection is opened only when one that is closing has ended on both sides. */
  readonly inOrder: () => boolean
  /** Connections that are closing and that no other awaits. */
  readonly #ending: Ending[] = []
  readonly #onReturn: () => void
  readonly #mostEnd: number
  #longestEnd: number
  /** How long the device needs after the end of a connection. */
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
  /** The attempts that wait until one of them ends. */
  readonly #waiting = new Set<() => void>()

  /** @param onReturn the device accepts connections again, after it was away */
  constructor(clock: Clock, inOrder: () => boolean, connectTimeout: number, onReturn: () => void) {
    this.#clock = clock
    this.inOrder = inOrder
    this.#onReturn = onReturn
    this.#mostEnd = Math.min(LONGEST_END, connectTimeout / 2)
    this.#longestEnd = this.#mostEnd
  }

  /** Calls `open` when it is the turn of a new connection; at once, except after the end of others. */
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
   * A connection is closing, and the device was sent FIN. Calls `give` if the device does not end it within a bounded time: the bound
   * halves each time that it passes, so a device that never closes does not delay all requests. It grows again
   * with each connection that ends in time.
   */
  close(ending: Ending, give: () => void): Timer {
    this.#ending.push(ending)
    return this.#clock.after(this.#longestEnd, () => {
      this.#longestEnd /= 2
      give()
    })
  }

  /** A connection that holds a place is opened. */
  came(): void {
    this.present += 1
  }

  /** It has closed, on both sides. */
  gone(): void {
    this.present -= 1
    const [first] = this.#waiting
    first?.()
  }

  /** Calls `ask` when a connection that holds a place has ended, or after a while: the bound may also rise. */
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

  /** The pause for a new connection. `repeatable`: its request would be repeated, so it may try a shorter one. */
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
   * How long (ms) a new connection has to stay open before a request that the device has dropped is sent again. A device that is only busy
   * drops an empty connection within the same time.
   */
  trial(opening: number): number {
    return LEAST_TRIAL + Math.min(2 * (this.now() - opening), LONGEST_PAUSE)
  }

  /**
   * The device responded on a new connection.
   *
   * @param pause what was chosen for it
   * @param refused the pauses after its refusals
   */
  accepted(pause: number, refused: number): void {
    this.#pause = Math.min(refused === 0 ? pause : MARGIN * (pause + refused), RECENT)
  }

  /**
   * The pause before a refused connection is opened again; undefined if it is not.
   *
   * @param dropped the device accepted it and dropped it
   * @param opening when it was opened: a stall of this process between that and its refusal says nothing about the device
   * @param refused the sum of these pauses so far
   * @param most the bound of that sum
   */
  again(dropped: boolean, opening: number, refused: number, most: number): number | undefined {
    const away = dropped ? this.now() - this.worked : opening - Math.max(this.worked, this.#opened)
    if (refused === 0 && away > RECENT) return undefined
    const next = Math.min(refused + FIRST_PAUSE, LONGEST_PAUSE)
    return refused + next > most ? undefined : next
  }
}
