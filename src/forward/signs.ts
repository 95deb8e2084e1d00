/** This many answers, over at least this time (ms), show that the device carries the requests that are at it. */
const ENOUGH_ANSWERS = 32
const A_WHILE = 100
/** If the device breaks within this time (ms) after one more request came to it, that request was too many. */
const AT_ONCE = 1_000
/** A refusal, an answer and a refusal within this time (ms) show that the device is there, and refuses. */
export const ALIVE = 1_000

/** When the device went away (ms), and how many requests it had then, as far as that many had worked at once. */
export interface Outage {
  readonly at: number
  readonly had: number
}

/**
 * What the device has shown so far: how many requests at once it carries, when it was away, and what may have broken it. Times in ms. Only
 * this class writes its fields; they are no getters, because each request at a busy device reads them.
 */
export class Signs {
  /** This many requests at once were answered for a while. */
  carries = 0
  /** The most requests at the device since it was last struck, and when they were reached. */
  peak = 0
  peakAt = Number.NEGATIVE_INFINITY
  answeredAt = Number.NEGATIVE_INFINITY
  /** When the ceiling was last struck. */
  struckAt = Number.NEGATIVE_INFINITY
  /** When the device last went away. */
  outage: Outage = { at: Number.NEGATIVE_INFINITY, had: 0 }
  #refusedAt = Number.NEGATIVE_INFINITY
  /** Since when the device refuses everything. */
  #awaySince = Number.POSITIVE_INFINITY
  /** How many requests that may change the device are at it, and when one last came or left. The device may reboot because of it. */
  #changing = 0
  #changedAt = Number.NEGATIVE_INFINITY
  /** The number of places that may have broken the device. It becomes a wall if no answer comes. */
  #suspected: number | undefined
  /** The answers that may show that the device carries more than `carries`. */
  #answers = 0
  #since = 0
  #least = Number.POSITIVE_INFINITY

  /** So many requests are at the device. A device that is away has none, whatever was sent to it. */
  came(inside: number, now: number): void {
    if (inside <= this.peak || this.#awaySince < now) return
    this.peak = inside
    this.peakAt = now
  }

  /** The device has answered. */
  answered(now: number): void {
    this.answeredAt = now
    this.#awaySince = Number.POSITIVE_INFINITY
    this.#suspected = undefined
  }

  /** The device has answered one of `inside` requests at `now`, or `count` of them since `first`. Returns whether it carries more than was known. */
  carriesMore(inside: number, now: number, count: number, first: number): boolean {
    if (inside <= this.carries) return false
    if (this.#answers === 0) this.#since = first
    this.#answers += count
    this.#least = Math.min(this.#least, inside)
    if (this.#answers < ENOUGH_ANSWERS || now - this.#since < A_WHILE) return false
    this.carries = this.#least
    this.#beginAnew()
    return true
  }

  /** A request that may change the device comes to it (1) or has left it (-1). */
  changing(by: 1 | -1, now: number): void {
    this.#changing += by
    this.#changedAt = now
  }

  /** The device refuses or drops a connection. @param inside how many requests are at it */
  goesAway(inside: number, now: number): void {
    if (this.answeredAt < this.outage.at) return
    this.outage = { at: now, had: Math.min(inside, this.carries) }
  }

  /**
   * The device refuses a connection. Returns what it did since the last refusal. `answers`: it has answered, and that refusal was less than
   * a second ago. `nothing`: it has not answered. Undefined: there was no refusal before, or it is too long ago to tell.
   */
  refused(now: number): 'answers' | 'nothing' | undefined {
    const [before, answered] = [this.#refusedAt, this.answeredAt]
    this.#refusedAt = now
    this.#awaySince = Math.min(this.#awaySince, now)
    if (before > answered) return 'nothing'
    return before < answered && now - before < ALIVE ? 'answers' : undefined
  }

  /**
   * Whether this is another outage than the one of the last strike: the device has answered since that strike, and has been away for longer
   * than a device that is only crowded.
   */
  isAnotherOutage(now: number): boolean {
    const hasAnswered = this.answeredAt > this.struckAt && this.#awaySince > this.answeredAt
    return hasAnswered && now - this.#awaySince >= ALIVE
  }

  /** Whether the device went away as soon as one more request came to it. */
  brokeAtPeak(now: number): boolean {
    return Math.min(now, this.#awaySince) - this.peakAt <= AT_ONCE
  }

  /** Whether only the number of requests is a likely cause: none of them may change the device, and none did a moment ago. */
  onlyReads(now: number): boolean {
    return this.#changing === 0 && now - this.#changedAt >= AT_ONCE
  }

  /**
   * The device had no room above `places`. What it carries above that has to be shown again.
   *
   * @param broke so many places may have broken the device
   */
  struck(places: number, broke: boolean, now: number): void {
    this.#suspected = broke ? places : undefined
    this.struckAt = now
    this.carries = Math.min(this.carries, places)
    this.peak = places
    this.#beginAnew()
  }

  /** The number of places that broke the device: it has been suspected for at least `silence` (ms), and no answer has come since. Returned once. */
  broken(silence: number, now: number): number | undefined {
    const places = this.#suspected
    if (places === undefined || now - this.struckAt < silence) return undefined
    this.#suspected = undefined
    return places
  }

  /** The fleet leaves so many places to this sidecar. What has worked above that no longer counts: other sidecars have these places now. */
  shared(places: number): void {
    this.carries = Math.min(this.carries, places)
    this.peak = Math.min(this.peak, places)
  }

  #beginAnew(): void {
    this.#answers = 0
    this.#since = 0
    this.#least = Number.POSITIVE_INFINITY
  }
}
