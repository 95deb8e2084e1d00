import type { Bound } from './bound.ts'

/** More places pay if they bring this share of the work that they could bring. */
const PAYS = 0.5
/** If responses take this many times their usual time, half as many requests are tried. */
const SLOWER = 1.5
/** The fewest responses that judge a bound, and the most. */
const FEW = 8
const MANY = 64
/** On the way to a higher bound, the work must stay above this share of the work before. Otherwise the bound stops there. */
const ON_THE_WAY = 0.75
/** One response counts as at most this many times its usual time. */
const LONGEST = 16
/** The longest pauses (in rounds of samples) before an attempt with more places, and before one with half of them. */
const LONGEST_UP = 16
const LONGEST_DOWN = 512

/** `first`: the bound doubles. `steady`: the bound is the one that was found. `more`, `half`: an attempt with more places, or with half. */
type Phase = 'first' | 'steady' | 'more' | 'half'

/**
 * Compares the useful work of the device at two bounds, one after the other. By Little's law, that work is the bound divided by the time of
 * a response, as a multiple of its usual time. A device that slows down for reasons of its own does so at both bounds. More places stay if
 * they bring half of what they could. A device that only queues them is given fewer.
 */
export class Trials {
  readonly #bound: Bound
  /** A response tells about the bound only if more requests than this were at the device. */
  few = 0
  #phase: Phase = 'first'
  /** The work at `found`. */
  #work = 0
  /**
   * How many more places the next attempt tries. Then, for the attempts up and down: how many rounds of samples are left before the next
   * one, and the pause after it.
   */
  #step = 1
  #upIn = 1
  #upWait = 1
  #downIn = FEW
  #downWait = FEW
  #samples = 0
  #levels = 0
  #sum = 0
  /** The level whose samples are collected on the way to a higher bound; 0: none. */
  #onTheWay = 0

  constructor(bound: Bound) {
    this.#bound = bound
    this.#restart()
  }

  /**
   * Whether the time of a response may be learned as usual: the bound is the one that was found, or it doubles and at most half of it was
   * in use.
   */
  learns(level: number): boolean {
    return this.#phase === 'steady' || (this.#phase === 'first' && level <= this.#bound.tried / 2)
  }

  /**
   * Begins anew at a bound that was not found by the times of responses.
   *
   * @param doubles whether the bound doubles while the device keeps up
   */
  begin(doubles: boolean): void {
    this.#phase = doubles ? 'first' : 'steady'
    this.#work = 0
    this.#upIn = this.#upWait
    this.#restart()
  }

  /** The next round of samples may try more places. */
  tryMore(): void {
    this.#upIn = 0
  }

  /**
   * A response at the bound.
   *
   * @param ratio its time, as a multiple of its usual time
   * @returns how many times slower the device is than was known, for another reason than its load; undefined if this response does not show
   *   that
   */
  sample(level: number, ratio: number, now: number): number | undefined {
    if (this.#onTheWay !== 0) this.#restart()
    this.#add(level, ratio)
    const { tried } = this.#bound
    const enough =
      this.#phase === 'first'
        ? Math.min(FEW, Math.max(1, tried >> 2))
        : Math.min(MANY, Math.max(FEW, 2 * tried))
    const hopeless = this.#phase === 'more' && this.#sum * this.#worth > enough * tried
    return hopeless || this.#samples >= enough ? this.#judge(now) : undefined
  }

  /** A response on the way to a higher bound, which rises place by place. The way ends where the device does less work than before. */
  approach(level: number, ratio: number, now: number): void {
    if (level !== this.#onTheWay) this.#restart()
    this.#onTheWay = level
    this.#add(level, ratio)
    if (this.#samples < FEW || this.#work === 0) return
    const work = this.#levels / Math.max(this.#sum, 0.01)
    if (work >= ON_THE_WAY * this.#work) return
    if (this.#phase === 'more') this.#more(work, now)
    else {
      this.#phase = 'steady'
      this.#bound.lower(Math.max(this.#bound.min, level - 1), 'latency', now)
      this.#restart()
    }
  }

  /** Ends an attempt with more places, which bring nothing. */
  giveUp(now: number): void {
    this.#more(0, now)
  }

  /** The work that more places have to bring. */
  get #worth(): number {
    const { tried, found } = this.#bound
    return this.#work * (1 + (PAYS * (tried - found)) / found)
  }

  #judge(now: number): number | undefined {
    const ratio = Math.max(this.#sum / this.#samples, 0.01)
    const work = this.#levels / this.#samples / ratio
    switch (this.#phase) {
      case 'first':
        this.#double(work, ratio, now)
        return undefined
      case 'steady':
        this.#rest(work, ratio, now)
        return undefined
      case 'more':
        this.#more(work, now)
        return undefined
      case 'half':
        return this.#half(work, now)
    }
  }

  #double(work: number, ratio: number, now: number): void {
    const { found, tried, most, min } = this.#bound
    const gain = this.#work > 0 ? work / this.#work : ratio > SLOWER ? 1 : 2
    if (gain < 1 + PAYS) {
      this.#phase = 'steady'
      this.#bound.lower(
        Math.max(min, Math.round((found / 2) * Math.min(Math.max(gain, 1), 2))),
        'latency',
        now,
      )
    } else {
      this.#work = work
      if (tried >= most) this.#phase = 'steady'
      this.#bound.raise(Math.min(2 * tried, most), 'keeps_up', now)
    }
    this.#restart()
  }

  #rest(work: number, ratio: number, now: number): void {
    const { found, most, min } = this.#bound
    this.#work = work
    this.#upIn -= 1
    this.#downIn -= 1
    // Exactly 1: no response took longer than `FAST`, for which no device is to blame.
    if (found > min && ratio !== 1 && (ratio > SLOWER || this.#downIn <= 0)) {
      this.#phase = 'half'
      this.#bound.attempt(Math.max(min, found >> 1), now)
    } else if (this.#upIn <= 0 && found < most) {
      this.#phase = 'more'
      this.#bound.attempt(Math.min(found + this.#step, most), now)
    }
    this.#restart()
  }

  #more(work: number, now: number): void {
    const pays = work >= this.#worth
    this.#step = pays ? 2 * this.#step : 1
    this.#upWait = pays ? 1 : Math.min(2 * this.#upWait, LONGEST_UP)
    this.#upIn = pays ? 0 : this.#upWait
    this.#phase = 'steady'
    if (pays) {
      this.#work = work
      this.#bound.raise(this.#bound.tried, 'keeps_up', now)
    } else this.#bound.settle(now)
    this.#restart()
  }

  #half(work: number, now: number): number | undefined {
    const { found, tried } = this.#bound
    const enough = Math.max(tried, Math.min(Math.round((tried * this.#work) / work), found))
    const lower = enough < 0.7 * found
    this.#downWait = lower ? 1 : Math.min(4 * this.#downWait, LONGEST_DOWN)
    this.#downIn = this.#downWait
    this.#phase = 'steady'
    const drift = lower ? undefined : found / this.#work
    if (lower) this.#bound.lower(enough, 'latency', now)
    else this.#bound.settle(now)
    this.#restart()
    return drift
  }

  #add(level: number, ratio: number): void {
    this.#levels += level
    this.#sum += Math.min(ratio, LONGEST)
    this.#samples += 1
  }

  /** The samples so far belong to another bound. */
  #restart(): void {
    const { tried } = this.#bound
    this.few = this.#phase === 'first' || this.#phase === 'steady' ? tried / 2 : tried - 1
    this.#samples = 0
    this.#levels = 0
    this.#sum = 0
    this.#onTheWay = 0
  }
}
