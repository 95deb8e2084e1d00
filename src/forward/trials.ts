/** The share of what more places could bring that they have to bring. */
const PAYS = 0.5
/** Responses take so many times their usual time: is the device quicker with half as many requests? */
const SLOWER = 1.5
/** The fewest responses that judge a bound, and the most. */
const FEW = 8
const MANY = 64
/** So much of the work at least is done with each place on the way to more; otherwise the rest of the way is worth nothing. */
const ON_THE_WAY = 0.75
/** One response counts as at most so many times its usual time. */
const LONGEST = 16
/** The longest pauses (rounds of samples) between two attempts with more places, and with half of them. */
const LONGEST_UP = 16
const LONGEST_DOWN = 512

/** `first`: the bound doubles. `steady`: at what was found. `more`, `half`: an attempt with more places, or with half of them. */
type Phase = 'first' | 'steady' | 'more' | 'half'

/** What a round of samples found. `drift`: how many times slower the device is, though its load is not the reason. */
export interface Finding {
  readonly reason: 'keeps_up' | 'latency'
  readonly drift?: number
}

/**
 * Compares the useful work of the device at two bounds, one after the other. By Little's law that is the bound divided by the time of a
 * response, as a multiple of its usual time. A device that slows down for reasons of its own does so at both. More places stay if they
 * bring half of what they could; a device that only queues them is given fewer.
 */
export class Trials {
  readonly #min: number
  /** The bound now. */
  limit: number
  /** What is found so far; `limit` differs from it during an attempt. */
  found: number
  /** A response tells about the bound if more requests than this were at the device. */
  few = 0
  #phase: Phase = 'first'
  /** The work at `found`. */
  #work = 0
  #step = 1
  #upIn = 1
  #upWait = 1
  #downIn = FEW
  #downWait = FEW
  #samples = 0
  #levels = 0
  #sum = 0
  /** The level of the samples of an approach. */
  #onTheWay = 0

  constructor(min: number, limit: number) {
    this.#min = min
    this.limit = this.found = limit
    this.#restart()
  }

  /** Whether a response tells what the device does at the usual bound, so that its time may be learned. */
  learns(level: number): boolean {
    return this.#phase === 'steady' || (this.#phase === 'first' && level <= this.limit / 2)
  }

  /**
   * Begins anew at a bound that something else than the time of responses has found.
   *
   * @param doubles whether the bound doubles while the device keeps up
   */
  begin(limit: number, doubles: boolean): void {
    this.#phase = doubles ? 'first' : 'steady'
    this.#work = 0
    this.#upIn = this.#upWait
    this.#find(limit)
  }

  /** More places are tried with the next samples. */
  tryMore(): void {
    this.#upIn = 0
  }

  /**
   * @param ratio how many times its usual time the response took
   * @param most the bound now has to stay below
   */
  sample(level: number, ratio: number, most: number): Finding | undefined {
    if (this.#onTheWay !== 0) this.#restart()
    this.#levels += level
    this.#sum += Math.min(ratio, LONGEST)
    this.#samples += 1
    const enough =
      this.#phase === 'first'
        ? Math.min(FEW, Math.max(1, this.limit >> 2))
        : Math.min(MANY, Math.max(FEW, 2 * this.limit))
    const hopeless = this.#phase === 'more' && this.#sum * this.#worth > enough * this.limit
    return hopeless || this.#samples >= enough ? this.#judge(most) : undefined
  }

  /**
   * A response on the way to a higher bound, which is approached place by place.
   *
   * @returns the finding that the device already does less work than before
   */
  approach(level: number, ratio: number): Finding | undefined {
    if (level !== this.#onTheWay) this.#restart()
    this.#onTheWay = level
    this.#levels += level
    this.#sum += Math.min(ratio, LONGEST)
    this.#samples += 1
    if (this.#samples < FEW || this.#work === 0) return undefined
    const work = this.#levels / Math.max(this.#sum, 0.01)
    if (work >= ON_THE_WAY * this.#work) return undefined
    if (this.#phase === 'more') return this.#more(work)
    this.#phase = 'steady'
    this.#find(Math.max(this.#min, level - 1))
    return { reason: 'latency' }
  }

  /** Ends an attempt with more places: they bring nothing. */
  giveUp(): void {
    this.#more(0)
  }

  /** The work that more places have to bring. */
  get #worth(): number {
    return this.#work * (1 + (PAYS * (this.limit - this.found)) / this.found)
  }

  #judge(most: number): Finding | undefined {
    const ratio = Math.max(this.#sum / this.#samples, 0.01)
    const work = this.#levels / this.#samples / ratio
    switch (this.#phase) {
      case 'first':
        return this.#double(work, ratio, most)
      case 'steady':
        return this.#rest(work, ratio, most)
      case 'more':
        return this.#more(work)
      case 'half':
        return this.#half(work)
    }
  }

  #double(work: number, ratio: number, most: number): Finding {
    const gain = this.#work > 0 ? work / this.#work : ratio > SLOWER ? 1 : 2
    if (gain < 1 + PAYS) {
      this.#phase = 'steady'
      this.#find(Math.max(this.#min, Math.round((this.found / 2) * Math.min(Math.max(gain, 1), 2))))
      return { reason: 'latency' }
    }
    this.#work = work
    if (this.limit >= most) this.#phase = 'steady'
    this.#find(Math.min(2 * this.limit, most))
    return { reason: 'keeps_up' }
  }

  #rest(work: number, ratio: number, most: number): undefined {
    this.#work = work
    this.#upIn -= 1
    this.#downIn -= 1
    // Exactly 1: nothing took longer than what no device can be blamed for.
    if (this.found > this.#min && ratio !== 1 && (ratio > SLOWER || this.#downIn <= 0)) {
      this.#attempt('half', Math.max(this.#min, this.found >> 1))
    } else if (this.#upIn <= 0 && this.found < most) {
      this.#attempt('more', Math.min(this.found + this.#step, most))
    } else this.#restart()
  }

  #more(work: number): Finding {
    const pays = work >= this.#worth
    this.#step = pays ? 2 * this.#step : 1
    this.#upWait = pays ? 1 : Math.min(2 * this.#upWait, LONGEST_UP)
    this.#upIn = pays ? 0 : this.#upWait
    this.#phase = 'steady'
    if (pays) this.#work = work
    this.#find(pays ? this.limit : this.found)
    return { reason: 'keeps_up' }
  }

  #half(work: number): Finding {
    const enough = Math.max(this.limit, Math.min(Math.round((this.limit * this.#work) / work), this.found))
    const lower = enough < 0.7 * this.found
    this.#downWait = lower ? 1 : Math.min(4 * this.#downWait, LONGEST_DOWN)
    this.#downIn = this.#downWait
    this.#phase = 'steady'
    const drift = this.found / this.#work
    this.#find(lower ? enough : this.found)
    return lower ? { reason: 'latency' } : { reason: 'latency', drift }
  }

  #attempt(phase: 'more' | 'half', limit: number): void {
    this.#phase = phase
    this.limit = limit
    this.#restart()
  }

  #find(limit: number): void {
    this.found = this.limit = limit
    this.#restart()
  }

  /** The samples so far belong to another bound. */
  #restart(): void {
    this.few = this.#phase === 'first' || this.#phase === 'steady' ? this.limit / 2 : this.limit - 1
    this.#samples = 0
    this.#levels = 0
    this.#sum = 0
    this.#onTheWay = 0
  }
}
