/** If the device breaks within this time (ms) after one more request came to it, that request was too many. */
const AT_ONCE = 1_000
/** A refusal, an answer and a refusal within this time (ms) show that the device is there, and refuses. */
export const ALIVE = 1_000

/** When the device went away (ms), and how many requests it had then, as far as that many had worked at once. */
export interface Outage {
  readonly at: number
  readonly had: number
}

/** When the device was away, and what may have broken it. Times in ms. Only this class writes its fields, as in `Bound`. */
export class Outages {
  /** How many requests that may change the device are at it, and when one last came or left. */
  #changing = 0
  #changedAt = Number.NEGATIVE_INFINITY
  /** When the device last answered. */
  answeredAt = Number.NEGATIVE_INFINITY
  #refusedAt = Number.NEGATIVE_INFINITY
  /** Since when the device refuses everything. */
  #awaySince = Number.POSITIVE_INFINITY
  #last: Outage = { at: Number.NEGATIVE_INFINITY, had: 0 }
  /** The device has answered since `#last`. */
  #isBack = true
  #struckAt = Number.NEGATIVE_INFINITY
  /** The bound that may have broken the device. It becomes a wall if no answer comes. */
  #suspected: number | undefined

  get last(): Outage {
    return this.#last
  }

  /** When the ceiling was last struck. */
  get struckAt(): number {
    return this.#struckAt
  }

  /** A request that may change the device comes to it (1) or has left it (-1). The device may reboot because of it. */
  changing(by: 1 | -1, now: number): void {
    this.#changing += by
    this.#changedAt = now
  }

  /** The device has answered. */
  answered(now: number): void {
    this.answeredAt = now
    this.#isBack = true
    this.#awaySince = Number.POSITIVE_INFINITY
    this.#suspected = undefined
  }

  /** The device refuses or drops a connection. @param had how many requests at it had worked at once */
  goesAway(had: number, now: number): void {
    if (this.#isBack) this.#last = { at: now, had }
    this.#isBack = false
  }

  /**
   * The device refuses a connection. Returns what it did since the last refusal. `answers`: it has answered, and that refusal was less than
   * a second ago. `nothing`: it has not answered. Undefined: there was no refusal before, or it is too long ago to tell.
   */
  refused(now: number): 'answers' | 'nothing' | undefined {
    const before = this.#refusedAt
    const answered = this.answeredAt
    this.#refusedAt = now
    this.#awaySince = Math.min(this.#awaySince, now)
    if (before > answered) return 'nothing'
    return before < answered && now - before < ALIVE ? 'answers' : undefined
  }

  /** Whether the device refuses everything since before `now`. */
  isAway(now: number): boolean {
    return this.#awaySince < now
  }

  /**
   * Whether this is another outage than the one of the last strike: the device has answered since that strike, and has been away for longer
   * than a device that is only crowded.
   */
  isAnother(now: number): boolean {
    const hasAnswered = this.answeredAt > this.#struckAt && this.#awaySince > this.answeredAt
    return hasAnswered && now - this.#awaySince >= ALIVE
  }

  /** Whether the device went away as soon as one more request came to it, at `peakAt`. */
  follows(peakAt: number, now: number): boolean {
    return Math.min(now, this.#awaySince) - peakAt <= AT_ONCE
  }

  /** Whether a request that may change the device is at it, or was a moment ago. */
  mayBeChanged(now: number): boolean {
    return this.#changing > 0 || now - this.#changedAt < AT_ONCE
  }

  /** The ceiling is struck. @param suspected the bound that may have broken the device; undefined if another cause is as likely */
  struck(suspected: number | undefined, now: number): void {
    this.#suspected = suspected
    this.#struckAt = now
  }

  /** The fleet reports a strike at another sidecar. */
  struckElsewhere(now: number): void {
    this.#struckAt = now
  }

  /** The bound that broke the device: it has been suspected for at least `silence` (ms), and no answer has come since. Returned once. */
  broke(silence: number, now: number): number | undefined {
    const limit = this.#suspected
    if (limit === undefined || now - this.#struckAt < silence) return undefined
    this.#suspected = undefined
    return limit
  }
}
