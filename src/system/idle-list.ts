import type { Clock } from './clock.ts'
import { MovingDeadline } from './moving-deadline.ts'

/** A connection or a tunnel that ends when it is idle for too long. All times are in ms of the clock. */
export interface Idling {
  /** The time of the last activity, at most `now`. The list asks only when the member is due, so activity itself costs no call. */
  lastActive(now: number): number
  /** Called when the member was idle for the time of the list. It has left the list by then. */
  onIdle(): void
}

/** An entry of the list. `idling` is undefined after the member has left. */
interface Entry {
  idling: Idling | undefined
  due: number
}

/**
 * Ends members that were idle for `time`, which is the same for all. The entries are sorted by the earliest time at which they can be due,
 * and one timer waits for the first. A check runs after the sockets are read (see `Clock.after`), and costs n log n for n entries.
 */
export class IdleList {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #time: number
  readonly #deadline: MovingDeadline
  /** Sorted by `due`. */
  #entries: Entry[] = []
  readonly #entryOf = new Map<Idling, Entry>()

  /** @param time ms without activity */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, time: number) {
    this.#clock = clock
    this.#time = time
    this.#deadline = new MovingDeadline(clock, () => this.#check())
  }

  join(idling: Idling): void {
    const now = this.#clock.monotonic()
    const entry = { idling, due: idling.lastActive(now) + this.#time }
    this.#entryOf.set(idling, entry)
    this.#entries.splice(this.#countUntil(entry.due), 0, entry)
    this.#waitForFirst(now)
  }

  /** Does nothing for a member that is not on the list. */
  leave(idling: Idling): void {
    const entry = this.#entryOf.get(idling)
    if (entry === undefined) return
    this.#entryOf.delete(idling)
    entry.idling = undefined
    // The list is compacted when more than half of its entries are empty, so `leave` costs little on average.
    if (this.#entryOf.size < this.#entries.length / 2)
      this.#entries = this.#entries.filter((each) => each.idling !== undefined)
    if (this.#entries.length === 0) this.#deadline.cancel()
  }

  /** The number of entries that are due at this time. */
  #countUntil(time: number): number {
    let [from, to] = [0, this.#entries.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#entries[middle]?.due ?? 0) <= time) from = middle + 1
      else to = middle
    }
    return from
  }

  #waitForFirst(now: number): void {
    const [first] = this.#entries
    if (first !== undefined) this.#deadline.move(first.due - now)
  }

  #check(): void {
    const now = this.#clock.monotonic()
    const due = this.#entries.splice(0, this.#countUntil(now))
    let judged = 0
    try {
      for (const entry of due) {
        judged += 1
        this.#judge(entry, now)
      }
    } finally {
      // These entries stay: members that were active since, and after a bug in one member those behind it.
      const left = due.filter((each, i) => each.idling !== undefined && (i >= judged || each.due > now))
      this.#entries = [...left, ...this.#entries].sort((one, other) => one.due - other.due)
      this.#waitForFirst(now)
    }
  }

  #judge(entry: Entry, now: number): void {
    const { idling } = entry
    if (idling === undefined) return
    entry.due = idling.lastActive(now) + this.#time
    if (entry.due > now) return
    this.#entryOf.delete(idling)
    entry.idling = undefined
    idling.onIdle()
  }
}
